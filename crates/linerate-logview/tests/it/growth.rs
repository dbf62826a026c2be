//! Checks with a counting allocator that a session uses no more memory than it announces, because
//! uploads reserve that much from a budget.

use std::{io::Write, time::Duration};

use allocation_counter::measure;
use flate2::{Compression, write::GzEncoder};
use linerate_logview::session::{Limits, Session, SessionId};
use serde_json::json;

use crate::{
    generator::{self, Random, Recipe},
    memory::write_distinct,
};

/// The work done in one call.
const WORK: usize = 256 << 10;
/// How much more the session may hold than it reports: "within a few KiB".
const SLACK: i64 = 16 << 10;

/// A session, and how much memory it actually holds.
struct Weighed {
    session: Session,
    held: i64,
    now: Duration,
}

impl Weighed {
    fn start(format: &str, rows: bool) -> Self {
        let now = Duration::ZERO;
        let mut session = Session::new(Limits::default(), SessionId::from_bytes([7; 16]), now);
        let files = [json!({"name": "a", "size": null})];
        let start = json!({"type": "start", "files": files, "format": format, "rows": rows});
        let cost = measure(|| session.handle_text(&start.to_string(), now));
        assert!(session.has_files(), "{format}: {:?}", session.outcome());
        Self {
            session,
            held: cost.bytes_current,
            now,
        }
    }

    /// Feeds a piece of a file in steps, and checks the announced memory of each step and of the
    /// replies.
    fn take(&mut self, mut piece: &[u8]) {
        loop {
            let announced = self.announced(self.session.growth_bytes_max(WORK));
            let mut progress = None;
            let cost = measure(|| {
                progress = Some(self.session.handle_some(piece, false, WORK, self.now));
            });
            self.weigh(&cost, announced, "work");
            let announced = self.announced(self.session.reply_bytes_max(None));
            let cost = measure(|| while self.session.poll_reply(self.now).is_some() {});
            self.weigh(&cost, announced, "replies");
            self.now += Duration::from_millis(40);
            let progress = progress.expect("the session was called");
            piece = &piece[progress.read..];
            if progress.is_done {
                break;
            }
        }
        assert!(self.session.has_files(), "{:?}", self.session.outcome());
    }

    /// Asks a question and returns the length of the answer in bytes.
    fn ask(&mut self, question: &str) -> usize {
        let announced = self.announced(self.session.reply_bytes_max(Some(question)));
        let mut reply = None;
        let cost = measure(|| {
            self.session.handle_text(question, self.now);
            reply = self.session.poll_reply(self.now).map(|reply| reply.len());
        });
        self.weigh(&cost, announced, question);
        reply.expect("the question is answered")
    }

    fn announced(&self, growth: usize) -> i64 {
        (self.session.memory_bytes() + growth) as i64
    }

    fn weigh(&mut self, cost: &allocation_counter::AllocationInfo, announced: i64, of: &str) {
        let most = self.held + cost.bytes_max as i64;
        assert!(most <= announced, "{of}: {most} of {announced} announced");
        self.held += cost.bytes_current;
        let said = self.session.memory_bytes() as i64;
        assert!(
            self.held <= said + SLACK,
            "{of}: {} of {said} said",
            self.held
        );
    }
}

/// Reads a log once, because the rules that recognize browsers are loaded when they are first
/// needed, and then stay for the whole process.
fn load_rules(format: &str, log: &[u8]) {
    let mut weighed = Weighed::start(format, false);
    weighed.session.handle_chunk(log, true, weighed.now);
}

fn gzip(log: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(log)
        .expect("writing to a vector succeeds");
    encoder.finish().expect("writing to a vector succeeds")
}

/// Feeds a log in pieces of random length, twice uncompressed and once compressed.
fn take_all(format: &str, log: &[u8], seed: u64) {
    load_rules(format, log);
    let mut random = Random(seed);
    for (file, rows) in [
        (log.to_vec(), false),
        (log.to_vec(), true),
        (gzip(log), true),
    ] {
        let mut weighed = Weighed::start(format, rows);
        let mut rest = &file[..];
        while !rest.is_empty() {
            let len = rest.len().min(1 + random.below(400_000) as usize);
            weighed.take(&rest[..len]);
            rest = &rest[len..];
        }
    }
}

fn combined(seed: u64) -> String {
    let log = generator::combined(Recipe {
        lines: 6_000,
        addresses: 3_000,
        paths: 3_000,
        seed,
    });
    String::from_utf8(log.text).expect("generated logs are UTF-8")
}

#[test]
fn logs_of_every_format_grow_by_no_more_than_is_announced() {
    let log = combined(1);
    take_all("auto", log.as_bytes(), 1);
    let fronted = |host: &str| -> String {
        let lines = log.lines().enumerate();
        lines
            .map(|(at, line)| format!("h{}.{host} {line}\n", at % 2_000))
            .collect()
    };
    take_all("vhost_combined", fronted("example.com:443").as_bytes(), 2);
    let common: String = log
        .lines()
        .map(|line| format!("{}\n", line.split(" \"https:").next().unwrap_or_default()))
        .collect();
    take_all("common", common.as_bytes(), 3);
    let json: String = (0..6_000)
        .map(|line| {
            let request = json!({
                "remote_ip": generator::address(line), "method": "GET",
                "host": format!("h{line}"), "uri": format!("/{line:060}"),
            });
            format!(
                "{}\n",
                json!({"ts": 1_611_280_025 + line, "request": request, "status": 200})
            )
        })
        .collect();
    take_all("json", json.as_bytes(), 4);
    let own: String = (0..20_000)
        .map(|line| {
            format!(
                "{} [22/Jan/2021:01:47:05 +0000] \"GET /{line} HTTP/1.1\" 200\n",
                generator::address(line)
            )
        })
        .collect();
    take_all(
        r#"$remote_addr [$time_local] "$request" $status"#,
        own.as_bytes(),
        5,
    );
    take_all(r#"%h %t "%r" %>s"#, own.as_bytes(), 6);
}

#[test]
fn logs_whose_values_are_all_distinct_grow_by_no_more_than_is_announced() {
    let mut log = Vec::new();
    (0..8_000).for_each(|line| write_distinct(line, &mut log));
    take_all("combined", &log, 7);
}

#[test]
fn shortest_lines_grow_by_no_more_than_is_announced() {
    let log = "1 [22/Jan/2021:01:47:05 +0000]\n".repeat(60_000);
    take_all("%h %t", log.as_bytes(), 8);
}

#[test]
fn largest_answers_take_no_more_than_is_announced() {
    let mut log = Vec::new();
    for line in 0..1_500_u64 {
        let long = format!("{line:0>990}");
        writeln!(
            log,
            "{} - - [22/Jan/2021:01:47:05 +0000] \"GET /{long} HTTP/1.1\" 404 6 \"{long}\" \"{long}\"",
            generator::address(line),
        )
        .expect("writing to a vector succeeds");
    }
    load_rules("combined", &log);
    let mut weighed = Weighed::start("combined", true);
    weighed.take(&log);
    let figures = weighed.ask(r#"{"type":"query","seq":1,"query":{"top_max":1000}}"#);
    assert!(figures > 3 << 20, "{figures}");
    let rows = weighed.ask(r#"{"type":"rows","seq":2,"query":{},"limit":1000}"#);
    assert!(rows > 2_000_000, "{rows}");
}
