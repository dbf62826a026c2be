use linerate_logview::{
    aggregate::{Aggregator, Limits},
    query::{ChangesQuery, Period},
};

use super::{Layout, changes, report};

const NARROW: Layout = Layout {
    width: 80,
    cuts_values: true,
    rows_max: 3,
};

/// A log of twenty minutes in which a third of the requests fail.
fn log() -> Aggregator {
    let mut log = Aggregator::new(Limits::default());
    log.handle_input(b"\x1b[31mno request\n");
    for i in 0..1_200 {
        let (minute, status) = (i / 60, if i % 3 == 0 { 404 } else { 200 });
        let line = format!(
            "192.0.2.{} - - [22/Jan/2021:01:{minute:02}:05 +0000] \"GET /{} HTTP/1.1\" {status} 1000 \"-\" \"{}\"\n",
            i % 5,
            "x".repeat(if i == 0 { 300 } else { 3 }),
            if i % 2 == 0 {
                "Googlebot/2.1"
            } else {
                "\u{202e}curl"
            },
        );
        log.handle_input(line.as_bytes());
    }
    log
}

#[test]
fn a_report_says_what_was_counted() {
    let text = report(&log().summary(), NARROW);
    let expected = "\
requests      1,200
did not parse 1
bytes sent    1,200,000 (1.20 MB)
addresses     5
paths         2
format        combined
from          2021-01-22 01:00 UTC
to            2021-01-22 01:19 UTC

Requests over time: each column is 20 seconds, peak 60
  all   █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █
  4xx   █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █
        2021-01-22 01:00:05 UTC            2021-01-22 01:19:10 UTC

Statuses: 2
     requests    share                 sent   errors
          800   66.7 %  ██████████   800 kB        0  200
          400   33.3 %  █████        400 kB      400  404

Methods: 1
     requests    share                 sent   errors
        1,200  100.0 %  ██████████  1.20 MB      400  GET

Paths: 2
     requests    share       sent   errors
        1,199   99.9 %    1.20 MB      399  /xxx
            1    0.1 %    1.00 kB        1  /xxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxx

Addresses: 5
     requests    share                 sent   errors
          240   20.0 %  ██████████   240 kB       80  192.0.2.0
          240   20.0 %  ██████████   240 kB       80  192.0.2.1
          240   20.0 %  ██████████   240 kB       80  192.0.2.2

Agents: 2
     requests    share                 sent   errors
          600   50.0 %  ██████████   600 kB      200  Googlebot/2.1
          600   50.0 %  ██████████   600 kB      200  \\u{202e}curl

Bots: 600 requests
     requests    share                 sent   errors
          600   50.0 %  ██████████   600 kB      200  Googlebot

Paths with client errors (4xx)
     requests    share       sent   errors
          399   33.2 %    1.20 MB      399  /xxx
            1    0.1 %    1.00 kB        1  /xxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxx

Addresses by busiest minute
   per minute   requests   errors  busiest minute        address
           12        240       80  2021-01-22 01:00 UTC  192.0.2.0
           12        240       80  2021-01-22 01:00 UTC  192.0.2.1
           12        240       80  2021-01-22 01:00 UTC  192.0.2.2

Addresses by errors
   per minute   requests   errors  busiest minute        address
           12        240       80  2021-01-22 01:00 UTC  192.0.2.0
           12        240       80  2021-01-22 01:00 UTC  192.0.2.1
           12        240       80  2021-01-22 01:00 UTC  192.0.2.2

Lines that did not parse: 1 bad address
  line 1: \\u{1b}[31mno request
";
    assert_eq!(text, expected);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn an_empty_log_has_neither_charts_nor_tables() {
    let text = report(&Aggregator::new(Limits::default()).summary(), NARROW);
    assert_eq!(text.lines().count(), 6);
}

#[test]
fn tables_have_as_many_rows_as_are_asked_for() {
    let layout = Layout {
        rows_max: 1,
        ..NARROW
    };
    let text = report(&log().summary(), layout);
    assert!(text.contains("192.0.2.0") && !text.contains("192.0.2.1\n"));
}

#[test]
fn durations_are_shown_where_the_format_has_them() {
    use linerate_logview::format::Format;
    let mut log = Aggregator::new(Limits::default());
    log.set_format(Format::parse("$msec $request_time $status").unwrap());
    for i in 1..=1_000 {
        log.handle_input(format!("1611280025 {}.{:03} 200\n", i / 1_000, i % 1_000).as_bytes());
    }
    let text = report(&log.summary(), NARROW);
    assert!(text.contains("Duration of 1,000 requests: p50 5"), "{text}");
    assert!(text.contains(", max 1.00 s\n"), "{text}");
}

#[test]
fn values_are_whole_where_no_terminal_limits_their_length() {
    let layout = Layout {
        cuts_values: false,
        ..NARROW
    };
    let text = report(&log().summary(), layout);
    assert!(
        text.contains(&format!("  /{}\n", "x".repeat(300))),
        "{text}"
    );
    assert!(!text.contains('…'));
}

#[test]
fn counts_of_one_are_singular() {
    let mut log = Aggregator::new(Limits::default());
    log.handle_input(b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"Googlebot\"\n");
    let text = report(&log.summary(), NARROW);
    assert!(text.contains("\nBots: 1 request\n"), "{text}");
    assert!(text.contains("each column is 1 second, peak 1\n"), "{text}");
}

#[test]
fn what_has_changed_is_said_with_both_counts() {
    let after = Period {
        from: 1_611_278_100,
        until: 1_611_278_400,
    };
    let mut log = log();
    for i in 0..900 {
        let line = format!(
            "198.51.100.7 - - [22/Jan/2021:01:{:02}:05 +0000] \"GET /login\x1b HTTP/1.1\" 401 10 \"-\" \"-\"\n",
            15 + i % 5
        );
        log.handle_input(line.as_bytes());
    }
    let query = ChangesQuery::new(after.preceding(), after);
    let text = changes(&log.changes(&query).unwrap(), NARROW);
    let expected = "
              requests     sent   errors  from
  before           300   300 kB      100  2021-01-22 01:10:00 UTC, 5 minutes
  after          1,200   309 kB    1,000  2021-01-22 01:15:00 UTC, 5 minutes

900 requests more than at the rate before.

Values that stand out
       before      after    share  field     value
            0        900  100.0 %  agent     (none)
            0        900  100.0 %  path      /login\\u{1b}
            0        900  100.0 %  address   198.51.100.7
";
    assert_eq!(format!("\n{text}"), expected);
    let quiet = ChangesQuery::new(query.before, query.before);
    let text = changes(&log.changes(&quiet).unwrap(), NARROW);
    assert!(
        text.ends_with("\nAs many requests as at the rate before.\nNo value stands out.\n"),
        "{text}"
    );
}
