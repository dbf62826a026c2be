//! What happens at each limit, and one beyond it.

use crate::aggregate::{Aggregator, Limits};
use crate::format::Format;
use crate::summary::Summary;

/// Returns the figures of requests given as address, method and path.
fn figures(limits: Limits, requests: &[[&str; 3]]) -> Summary {
    let mut aggregator = Aggregator::new(limits);
    for [address, method, path] in requests {
        let line = format!(
            "{address} - - [22/Jan/2021:01:47:05 +0000] \"{method} {path} HTTP/1.1\" 200 1\n"
        );
        aggregator.handle_input(line.as_bytes());
    }
    aggregator.summary()
}

#[test]
fn addresses_beyond_the_limit_make_their_number_an_estimate() {
    let limits = Limits {
        addresses_max: 2,
        ..Limits::default()
    };
    let requests = ["::1", "::2", "::1", "::3", "::3"].map(|address| [address, "GET", "/"]);
    let full = figures(limits.clone(), &requests[..3]);
    assert_eq!(
        (full.unique_addresses, full.unique_addresses_exact),
        (2, true)
    );
    assert!(!full.approximate);
    let over = figures(limits, &requests);
    assert_eq!(
        (over.unique_addresses, over.unique_addresses_exact),
        (3, false)
    );
    assert!(over.approximate);
    assert_eq!((over.requests, over.panels.address.not_counted), (5, 2));
    let top = &over.panels.address.top;
    assert_eq!((&*top[0].value, top[0].requests), ("::1", 2));
    assert_eq!((&*top[1].value, top[1].requests), ("::3", 2));
}

#[test]
fn bytes_of_addresses_beyond_the_limit_make_their_number_an_estimate() {
    let limits = Limits {
        address_bytes_max: 6,
        ..Limits::default()
    };
    let requests = ["::1", "::2", "::3"].map(|address| [address, "GET", "/"]);
    assert!(figures(limits.clone(), &requests[..2]).unique_addresses_exact);
    assert!(!figures(limits, &requests).unique_addresses_exact);
}

#[test]
fn paths_beyond_the_limit_are_counted_as_untracked() {
    let limits = Limits {
        paths_max: 2,
        ..Limits::default()
    };
    let requests = ["/a", "/b?1", "/b?2", "/c", "/a", "/c"].map(|path| ["::1", "GET", path]);
    let full = figures(limits.clone(), &requests[..3]);
    assert_eq!(
        (full.unique_paths, full.paths_exact, full.paths_not_counted),
        (2, true, 0)
    );
    let over = figures(limits, &requests);
    assert_eq!(
        (over.unique_paths, over.paths_exact, over.paths_not_counted),
        (3, false, 2)
    );
    let listed: u64 = over.top_paths.iter().map(|(_, count)| count).sum();
    assert_eq!((listed, over.panels.path.error_max), (over.requests, 0));
}

#[test]
fn bytes_of_paths_beyond_the_limit_are_counted_as_untracked() {
    let limits = Limits {
        path_bytes_max: 5,
        ..Limits::default()
    };
    let requests = ["/a", "/bc", "/"].map(|path| ["::1", "GET", path]);
    assert_eq!(figures(limits.clone(), &requests[..2]).paths_not_counted, 0);
    assert_eq!(figures(limits, &requests).paths_not_counted, 1);
}

#[test]
fn methods_beyond_the_limit_are_summed_up() {
    let limits = Limits {
        methods_max: 2,
        ..Limits::default()
    };
    let requests = ["GET", "PUT", "A", "B"].map(|method| ["::1", method, "/"]);
    let full = figures(limits.clone(), &requests[..2]);
    assert!(!full.methods.contains_key("(other)"));
    let over = figures(limits, &requests);
    assert_eq!(over.methods["(other)"], 2);
}

#[test]
fn top_paths_are_limited_in_number() {
    let limits = Limits {
        top_max: 2,
        ..Limits::default()
    };
    let requests = ["/a", "/b", "/c"].map(|path| ["::1", "GET", path]);
    assert_eq!(figures(limits.clone(), &requests[..2]).top_paths.len(), 2);
    assert_eq!(figures(limits, &requests).top_paths.len(), 2);
}

#[test]
fn top_paths_are_listed_with_at_most_1000_characters() {
    let paths = [999, 1_000].map(|letters| format!("/{}", "a".repeat(letters)));
    let requests = paths.each_ref().map(|path| ["::1", "GET", path]);
    let summary = figures(Limits::default(), &requests);
    let lengths: Vec<_> = summary
        .top_paths
        .iter()
        .map(|(path, _)| path.len())
        .collect();
    assert_eq!(lengths, [1_000, 1_000]);
    assert_eq!(summary.unique_paths, 2);
}

/// Returns the figures of lines in a custom nginx format, with limits of two agents, referrers and
/// hosts.
fn headers(values: &[&str]) -> Summary {
    let limits = Limits {
        agents_max: 2,
        referrers_max: 2,
        hosts_max: 2,
        ..Limits::default()
    };
    let mut log = Aggregator::new(limits);
    let format = r#"$msec $status "$http_user_agent" "$http_referer" "$host""#;
    log.set_format(Format::parse(format).unwrap());
    for value in values {
        let line = format!("1611280025.000 200 \"{value}\" \"{value}\" \"{value}\"\n");
        log.handle_input(line.as_bytes());
    }
    assert_eq!(log.requests(), values.len() as u64);
    log.summary()
}

#[test]
fn agents_referrers_and_hosts_beyond_the_limit_are_estimated() {
    let full = headers(&["a", "b", "b", "-"]);
    assert!(!full.approximate);
    let over = headers(&["a", "b", "b", "-", "c", "d", "c", "c"]);
    assert!(over.approximate);
    for (panel, none) in [
        (over.panels.agent, 1),
        (over.panels.referrer, 1),
        (over.panels.host, 1),
    ] {
        assert_eq!((panel.distinct, panel.exact, panel.none), (4, false, none));
        assert_eq!((panel.not_counted, panel.error_max), (4, 0));
        let top = panel.top.iter().map(|it| (&*it.value, it.requests));
        assert!(top.eq([("c", 3), ("b", 2), ("a", 1), ("d", 1)]));
    }
    assert_eq!(over.timeline.by_host["(other)"], [4]);
}

#[test]
fn line_of_64_kib_is_parsed_and_one_byte_more_is_not() {
    let parsed = |line_bytes: usize| {
        let head = "::1 - - [22/Jan/2021:01:47:05 +0000] \"GET /";
        let tail = " HTTP/1.1\" 200 1";
        let path = "a".repeat(line_bytes - head.len() - tail.len());
        let mut aggregator = Aggregator::new(Limits::default());
        aggregator.handle_input(format!("{head}{path}{tail}\n").as_bytes());
        aggregator.summary()
    };
    assert_eq!(parsed(65_536).requests, 1);
    let too_long = parsed(65_537);
    assert_eq!((too_long.requests, too_long.unparsed), (0, 1));
    assert_eq!(too_long.unparsed_samples[0].reason, "too long");
    assert_eq!(too_long.unparsed_samples[0].text.len(), 200);
}
