//! One day of a real nginx log, whose figures are known from other programs.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::time::Duration;

use flate2::read::GzDecoder;
use linerate_logview::aggregate::{Aggregator, Limits};
use linerate_logview::session::{self, Session, SessionId};
use linerate_logview::summary::Summary;
use serde_json::json;

use crate::{oracle, random_queries};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/data/nginx-access-rhit.log.gz"
);

/// Returns the log. If the file does not exist, prints a note and returns `None`.
fn real_log() -> Option<Vec<u8>> {
    let file = match File::open(FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            linerate_testkit::skip(format!("{FILE} not found"));
            return None;
        }
        Err(error) => panic!("{FILE}: {error}"),
    };
    let mut log = Vec::new();
    GzDecoder::new(file)
        .read_to_end(&mut log)
        .expect("the file is gzip");
    assert_eq!(log.len(), 8_570_485);
    Some(log)
}

fn figures(log: &[u8], piece_bytes: usize) -> Summary {
    let mut aggregator = Aggregator::new(Limits::default());
    for piece in log.chunks(piece_bytes) {
        aggregator.handle_input(piece);
    }
    aggregator.handle_eof();
    aggregator.summary()
}

#[test]
fn real_log_has_the_known_figures() {
    let Some(log) = real_log() else { return };
    let summary = figures(&log, 256 << 10);
    assert_eq!(summary.lines, 33_469);
    assert_eq!(
        (summary.requests, summary.unparsed, summary.blank),
        (33_468, 1, 0)
    );
    assert_eq!(summary.bytes_read, 8_570_485);
    assert_eq!(summary.bytes_sent, 404_908_179);
    assert_eq!(summary.unique_addresses, 1_085);
    assert_eq!(summary.unique_paths, 611);
    assert!(summary.unique_addresses_exact && summary.paths_exact);
    // 5 RDP probes, 5 other binary ones, 2 empty requests and a bare path.
    assert_eq!(summary.requests_without_path, 13);
    assert_eq!(summary.unparsed_samples[0].line, 1);
    assert!(
        summary.unparsed_samples[0]
            .text
            .ends_with("logfile turned over")
    );
    let statuses = [
        ("101", 1_595),
        ("200", 26_484),
        ("206", 2),
        ("301", 594),
        ("302", 687),
        ("304", 3_696),
        ("400", 52),
        ("404", 274),
        ("405", 4),
        ("499", 77),
        ("502", 1),
        ("504", 2),
    ];
    let statuses = statuses.map(|(status, count)| (status.to_string(), count));
    assert_eq!(summary.statuses.into_iter().collect::<Vec<_>>(), statuses);
    let methods = [
        ("CONNECT", 2),
        ("GET", 28_181),
        ("HEAD", 497),
        ("POST", 4_775),
    ];
    let methods = methods.map(|(method, count)| (method.to_string(), count));
    assert_eq!(summary.methods.into_iter().collect::<Vec<_>>(), methods);
    let top: Vec<_> = summary
        .top_paths
        .iter()
        .map(|(path, n)| (&**path, *n))
        .collect();
    let expected = [
        ("/socket.io/", 9_993),
        ("/gogo/json", 5_942),
        ("/json/messages/last", 3_978),
        ("/sciz-webhook", 2_477),
    ];
    assert_eq!(top[..4], expected);
    let timeline = summary.timeline;
    assert_eq!((timeline.bucket_seconds, timeline.outside), (60, 0));
    let counted: u64 = timeline.classes.values().flatten().sum();
    assert_eq!(counted, 33_468);
}

#[test]
fn real_log_in_odd_pieces_has_the_same_figures() {
    let Some(log) = real_log() else { return };
    let whole = figures(&log, log.len());
    for piece_bytes in [7, 1_000, 65_537] {
        assert_eq!(figures(&log, piece_bytes), whole);
    }
}

#[test]
fn upload_of_the_real_log_ends_with_its_figures() {
    let Some(log) = real_log() else { return };
    let now = Duration::ZERO;
    let id = SessionId::from_bytes([0; 16]);
    let mut session = Session::new(session::Limits::default(), id, now);
    let start = format!(
        r#"{{"type":"start","files":[{{"name":"access.log","size":{}}}]}}"#,
        log.len()
    );
    session.handle_text(&start, now);
    for message in log.chunks(4 << 20) {
        for (place, piece) in message.chunks(64 << 10).enumerate() {
            let message_ends = (place + 1) * (64 << 10) >= message.len();
            session.handle_chunk(piece, message_ends, now);
            while session.poll_reply(now).is_some() {}
        }
    }
    session.handle_text(r#"{"type":"finish"}"#, now);
    let reply = session.poll_reply(now).unwrap();
    let mut reply: serde_json::Value = serde_json::from_str(&reply).unwrap();
    let fit = reply["summary"]["format_fit"].take();
    let expected = json!({
        "format": "combined", "lines": 256, "requests": 255, "certain": true, "runner_up": null,
    });
    assert_eq!(fit, expected);
    let expected = serde_json::to_value(figures(&log, 1 << 20)).unwrap();
    assert_eq!(reply["summary"], expected);
    assert_eq!(reply["final"], true);
}

#[test]
fn oracle_agrees_on_the_real_log() {
    let Some(log) = real_log() else { return };
    oracle::compare(&log);
    let query = serde_json::json!({"from": 1_611_280_000, "until": 1_611_300_000, "conditions": [
        {"dimension": "path", "value": "/socket*"},
        {"dimension": "status_class", "value": "2xx", "exclude": true},
    ]});
    let filter = r#"path.startsWith("/socket") && !(status >= 200 && status < 300)"#;
    oracle::compare_chosen(&log, query, &[filter]);
}

#[test]
fn oracle_agrees_on_random_queries_of_the_real_log() {
    let Some(log) = real_log() else { return };
    random_queries::compare(&oracle::read(&log), &log, 50, 7);
}

#[test]
fn gigabyte_of_the_real_log_fits_into_the_columns() {
    let Some(log) = real_log() else { return };
    let filterable = figures(&log, 1 << 20).filterable;
    assert!(filterable.complete);
    // Pending requests and the packing buffer have a fixed size, also in a long log.
    let fixed = (288 + 64) << 10;
    let gigabyte = (filterable.bytes - fixed) * (1 << 30) / log.len() as u64 + fixed;
    assert!(gigabyte < filterable.bytes_max, "{gigabyte}");
}
