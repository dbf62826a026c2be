//! Successful uploads, in virtual time.

use std::{io::Write, time::Duration};

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::aggregate::{self, Aggregator};
use crate::format::{Format, FormatFit};
use crate::session::{Limits, Outcome, Session, SessionId};

pub(super) const LINE: &[u8] =
    b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654 \"-\" \"curl/8.5\"\n";

/// A session with its replies parsed as JSON, and a clock that moves only when told to.
pub(super) struct Client {
    pub(super) session: Session,
    pub(super) now: Duration,
}

impl Client {
    pub(super) fn new(limits: Limits) -> Self {
        let now = Duration::from_secs(1_000);
        let id = SessionId::from_bytes([0x5A; 16]);
        Self {
            session: Session::new(limits, id, now),
            now,
        }
    }

    /// Creates a client that has started to upload `size` bytes.
    pub(super) fn started(limits: Limits, size: u64) -> Self {
        Self::started_with(limits, &[Some(size)])
    }

    /// Creates a client that has started to upload files of these sizes.
    pub(super) fn started_with(limits: Limits, sizes: &[Option<u64>]) -> Self {
        let mut client = Self::new(limits);
        let replies = client.say(&start(sizes));
        assert_eq!(replies[0]["type"], "ready", "{replies:?}");
        client
    }

    pub(super) fn say(&mut self, text: &str) -> Vec<Value> {
        self.session.handle_text(text, self.now);
        self.replies()
    }

    pub(super) fn finish(&mut self) -> Vec<Value> {
        self.say(r#"{"type":"finish"}"#)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Vec<Value> {
        self.session.handle_chunk(bytes, true, self.now);
        self.replies()
    }

    pub(super) fn replies(&mut self) -> Vec<Value> {
        let poll = || self.session.poll_reply(self.now);
        std::iter::from_fn(poll)
            .map(|json| serde_json::from_str(&json).unwrap())
            .collect()
    }

    fn wait(&mut self, ms: u64) -> Vec<Value> {
        self.now += Duration::from_millis(ms);
        self.session.handle_timeout(self.now);
        self.replies()
    }
}

/// Returns the message that announces files of these sizes.
pub(super) fn start(sizes: &[Option<u64>]) -> String {
    let files = sizes.iter();
    let files: Vec<_> = files
        .map(|size| json!({"name": "a.log", "size": size}))
        .collect();
    json!({"type": "start", "files": files}).to_string()
}

pub(super) fn gzip(log: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(log).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn types(replies: &[Value]) -> Vec<&str> {
    let types = replies.iter().map(|reply| &reply["type"]);
    types.map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn upload_ends_with_the_figures_of_the_whole_file() {
    let log = [&LINE.repeat(3)[..], &LINE[..LINE.len() - 1]].concat();
    let mut client = Client::started(Limits::default(), log.len() as u64);
    let (a, b) = log.split_at(100);
    let acks = client.send(a);
    assert_eq!(acks, [json!({"type": "ack", "bytes": 100})]);
    client.send(b);
    let replies = client.finish();
    assert_eq!(types(&replies), ["snapshot"]);
    assert_eq!(replies[0]["final"], true);
    assert_eq!(replies[0]["summary"]["requests"], 4);
    assert_eq!(replies[0]["summary"]["bytes_sent"], 4 * 654);
    assert_eq!(
        client.session.outcome(),
        None,
        "the figures stay for questions"
    );
}

fn zstd(log: &[u8]) -> Vec<u8> {
    zstd::encode_all(log, 1).unwrap()
}

/// A log of lines that compress badly, so that half of the file has about half of the lines.
fn varied_log() -> Vec<u8> {
    let mut number = 1u64;
    let mut next = || {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        number
    };
    let line = |_| {
        let (path, query) = (next(), next());
        format!(
            "192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /{path:x}{query:x} HTTP/1.1\" 200 654\n"
        )
    };
    (0..20_000).map(line).collect::<String>().into_bytes()
}

#[test]
fn compressed_files_that_end_early_have_the_figures_of_their_whole_lines() {
    let log = varied_log();
    for mut file in [gzip(&log), zstd(&log)] {
        file.truncate(file.len() / 2);
        let sizes = [Some(file.len() as u64), Some(LINE.len() as u64)];
        let mut client = Client::started_with(Limits::default(), &sizes);
        for piece in file.chunks(10_007) {
            client.send(piece);
        }
        client.send(LINE);
        let replies = client.finish();
        let summary = &replies.last().unwrap()["summary"];
        let lines = summary["damaged"][0]["lines"].as_u64().unwrap();
        assert!((5_000..15_000).contains(&lines), "{lines}");
        let expected = json!({
            "file": "a.log", "reason": "truncated", "bytes": file.len(), "lines": lines,
        });
        assert_eq!(summary["damaged"], json!([expected]));
        assert_eq!(
            (&summary["requests"], &summary["unparsed"]),
            (&json!(lines + 1), &json!(0))
        );
    }
}

#[test]
fn corrupt_file_has_the_figures_of_the_lines_before_the_damage() {
    let mut file = gzip(&varied_log());
    let middle = file.len() / 2;
    file[middle..middle + 64].fill(0xFF);
    let mut client = Client::started(Limits::default(), file.len() as u64);
    for piece in file.chunks(10_007) {
        client.send(piece);
    }
    let replies = client.finish();
    let summary = &replies.last().unwrap()["summary"];
    assert_eq!(summary["damaged"][0]["reason"], "corrupt");
    assert!(summary["damaged"][0]["bytes"].as_u64().unwrap() >= middle as u64);
    assert!(summary["requests"].as_u64().unwrap() > 5_000);
}

#[test]
fn short_file_that_ends_early_is_counted_although_its_format_was_not_known_yet() {
    let whole = gzip(&[LINE, LINE].concat());
    let file = &whole[..whole.len() - 8];
    let mut client = Client::started(Limits::default(), file.len() as u64);
    client.send(file);
    let replies = client.finish();
    assert_eq!(replies[0]["summary"]["requests"], 2, "{replies:?}");
    assert_eq!(replies[0]["summary"]["damaged"][0]["lines"], 2);
}

#[test]
fn ready_contains_the_window() {
    let mut client = Client::new(Limits::default());
    let replies = client.say(&start(&[Some(0)]));
    let id = "5a".repeat(16);
    let ready = json!({"type": "ready", "id": id, "window_bytes": 67_108_864, "bytes": 0});
    assert_eq!(replies, [ready]);
}

#[test]
fn empty_file_has_figures_of_zeros() {
    let mut client = Client::started(Limits::default(), 0);
    assert_eq!(types(&client.send(b"")), ["ack"]);
    let replies = client.finish();
    assert_eq!(replies[0]["final"], true);
    assert_eq!(replies[0]["summary"]["lines"], 0);
}

#[test]
fn acknowledgements_are_sent_at_the_end_of_messages_and_every_mib() {
    let log = LINE.repeat(40_000);
    let mut client = Client::started(Limits::default(), log.len() as u64);
    let mut acked = Vec::new();
    let pieces: Vec<_> = log.chunks(256 << 10).collect();
    let (last, pieces) = pieces.split_last().unwrap();
    for piece in pieces {
        client.session.handle_chunk(piece, false, client.now);
        acked.extend(client.replies());
    }
    let mibs: Vec<_> = acked
        .iter()
        .map(|ack| ack["bytes"].as_u64().unwrap())
        .collect();
    assert_eq!(mibs, [1 << 20, 2 << 20, 3 << 20]);
    let replies = client.send(last);
    assert_eq!(replies[0]["bytes"], log.len());
}

#[test]
fn replies_that_are_not_polled_do_not_pile_up() {
    let mut client = Client::started(Limits::default(), 1 << 20);
    let mut sent = 0;
    for _ in 0..100 {
        client.session.handle_chunk(LINE, true, client.now);
        client.now += Duration::from_millis(300);
        sent += LINE.len();
    }
    let replies = client.replies();
    assert_eq!(types(&replies), ["ack", "snapshot"]);
    assert_eq!(replies[0]["bytes"], sent);
    assert_eq!(replies[1]["summary"]["requests"], 100);
}

#[test]
fn snapshots_come_soon_then_every_200_ms_if_there_is_news() {
    let mut client = Client::started(Limits::default(), 1 << 20);
    assert_eq!(
        client.session.poll_timeout(),
        Some(client.now + Duration::from_secs(60))
    );
    assert_eq!(types(&client.send(LINE)), ["ack"]);
    assert_eq!(
        client.session.poll_timeout(),
        Some(client.now + Duration::from_millis(50))
    );
    assert!(client.wait(49).is_empty());
    let first = client.wait(1);
    assert_eq!(first[0]["final"], false);
    assert_eq!(first[0]["summary"]["requests"], 1);
    assert!(client.wait(1_000).is_empty(), "no bytes arrived");
    assert_eq!(types(&client.send(LINE)), ["ack", "snapshot"]);
}

#[test]
fn snapshots_slow_down_to_one_per_second_at_full_speed() {
    let mut client = Client::started(Limits::default(), 1 << 30);
    client.send(LINE);
    let mut snapshots = Vec::new();
    for ms in 1..=5_000 {
        client.now += Duration::from_millis(1);
        if types(&client.send(LINE)).contains(&"snapshot") {
            snapshots.push(ms);
        }
    }
    assert_eq!(snapshots, [50, 250, 450, 850, 1_650, 2_650, 3_650, 4_650]);
}

#[test]
fn cancelled_upload_ends_silently() {
    let mut client = Client::started(Limits::default(), 1 << 20);
    client.session.handle_chunk(LINE, false, client.now);
    assert!(client.say(r#"{"type":"cancel"}"#).is_empty());
    assert!(client.session.is_finished());
    assert_eq!(client.session.outcome(), Some(&Outcome::Cancelled));
    assert!(client.send(LINE).is_empty());
    assert!(client.wait(100_000).is_empty());

    let mut early = Client::new(Limits::default());
    early.say(r#"{"type":"cancel"}"#);
    assert_eq!(early.session.outcome(), Some(&Outcome::Cancelled));
}

#[test]
fn end_frees_the_figures() {
    let mut client = Client::started(Limits::default(), LINE.len() as u64);
    client.send(LINE);
    client.finish();
    client.say(r#"{"type":"cancel"}"#);
    assert!(matches!(
        client.session.state,
        crate::session::State::Ended(Outcome::Cancelled, None)
    ));
    assert!(client.session.is_finished());
    assert_eq!(client.session.poll_timeout(), None);
}

#[test]
fn sessions_can_move_between_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Session>();
    is_send_and_sync::<Aggregator>();
}

#[test]
fn files_share_one_stream_and_the_end_of_a_file_ends_a_line() {
    let torn = &LINE[..LINE.len() - 1];
    let files = [torn, b"", LINE, torn, b""];
    let sizes: Vec<_> = files.iter().map(|file| Some(file.len() as u64)).collect();
    for piece_len in [1, 7, LINE.len(), 1_000] {
        let mut client = Client::started_with(Limits::default(), &sizes);
        for piece in files.concat().chunks(piece_len) {
            client.send(piece);
        }
        let summary = &client.finish()[0]["summary"];
        assert_eq!(
            (&summary["requests"], &summary["unparsed"]),
            (&3.into(), &0.into())
        );
    }
}

#[test]
fn each_file_has_its_own_compression_and_format() {
    let json = br#"{"ts":1611280025,"status":200,"request":{"method":"GET","uri":"/a"}}"#;
    let files = [
        gzip(&LINE.repeat(3)),
        LINE.to_vec(),
        json.to_vec(),
        gzip(json),
    ];
    let sizes: Vec<_> = files.iter().map(|file| Some(file.len() as u64)).collect();
    for piece_len in [1, 50, 10_000] {
        let mut client = Client::started_with(Limits::default(), &sizes);
        for piece in files.concat().chunks(piece_len) {
            client.send(piece);
        }
        let summary = &client.finish()[0]["summary"];
        assert_eq!(
            (&summary["requests"], &summary["unparsed"]),
            (&6.into(), &0.into())
        );
        assert_eq!(summary["methods"]["GET"], 6);
    }
}

#[test]
fn given_format_applies_to_all_files() {
    let mut client = Client::new(Limits::default());
    let format = "$remote_addr [$time_local] $status";
    let line = "192.0.2.7 [22/Jan/2021:01:47:05 +0000] 404\n";
    let files = [json!({"name": "a", "size": null})];
    client.say(&json!({"type": "start", "files": files, "format": format}).to_string());
    client.send(line.repeat(2).as_bytes());
    assert_eq!(client.finish()[0]["summary"]["statuses"], json!({"404": 2}));
}

#[test]
fn last_file_may_be_open_ended() {
    let sizes = [Some(LINE.len() as u64), None];
    let mut client = Client::started_with(Limits::default(), &sizes);
    client.send(&LINE.repeat(5)[..LINE.len() * 5 - 1]);
    let replies = client.finish();
    assert_eq!(replies[0]["final"], true);
    assert_eq!(replies[0]["summary"]["requests"], 5);
}

#[test]
fn repeated_finish_repeats_the_figures() {
    let mut client = Client::started(Limits::default(), LINE.len() as u64);
    client.send(LINE);
    assert_eq!(client.finish(), client.finish());
}

#[test]
fn figures_are_kept_while_they_are_queried_and_then_dropped() {
    let mut client = Client::started(Limits::default(), LINE.len() as u64);
    client.send(LINE);
    client.finish();
    client.now += Duration::from_secs(599);
    assert_eq!(
        types(&client.say(r#"{"type":"query","seq":1,"query":{}}"#)),
        ["figures"]
    );
    assert!(client.wait(599_999).is_empty());
    let replies = client.wait(1);
    assert_eq!(replies[0]["code"], "idle");
    assert!(client.session.is_finished());
}

proptest! {
    #[test]
    fn any_splits_and_pauses_give_the_figures_of_the_file(
        cuts in prop::collection::vec((0usize..2_000, any::<bool>(), 0u64..150), 0..40),
    ) {
        let log = LINE.repeat(200);
        let mut client = Client::started(Limits::default(), log.len() as u64);
        let mut rest = &log[..];
        let mut acked = 0;
        for (size, message_ends, pause) in cuts {
            let (piece, more) = rest.split_at(size.min(rest.len()));
            rest = more;
            client.session.handle_chunk(piece, message_ends, client.now);
            client.now += Duration::from_millis(pause);
            for reply in client.replies() {
                if reply["type"] == "ack" {
                    let bytes = reply["bytes"].as_u64().unwrap();
                    prop_assert!(bytes >= acked);
                    prop_assert_eq!(bytes, (log.len() - rest.len()) as u64);
                    acked = bytes;
                }
            }
        }
        client.send(rest);
        let mut whole = Aggregator::new(aggregate::Limits::default());
        whole.set_fit(FormatFit::of(&Format::default(), &log));
        whole.handle_input(&log);
        let expected = serde_json::to_value(whole.summary()).unwrap();
        prop_assert_eq!(&client.finish()[0]["summary"], &expected);
    }
}
