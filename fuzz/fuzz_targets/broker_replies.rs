//! Any bytes as replies of Redis and NATS.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use linerate_broker::{nats, redis};
use linerate_hub::{ClientInfo, Publication};
use linerate_testkit::Cuts;

const ELEMENT_BYTES_MAX: usize = 100;

// The result does not depend on how the bytes are split. Tags and publishers in publications are
// parsed or ignored, and what we write is parsed again.
fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    match choice % 4 {
        0 => replies(*choice, data),
        1 => envelope(data),
        2 => meta(data),
        _ => messages(data),
    }
});

fn replies(choice: u8, data: &[u8]) {
    let read = |cuts: Cuts| {
        let mut pieces = Vec::new();
        cuts.for_each_piece(data, |piece| pieces.push(piece.to_vec()));
        redis::fuzzing::replies(pieces.iter().map(Vec::as_slice), ELEMENT_BYTES_MAX)
    };
    let whole = read(Cuts::Whole);
    for cuts in [Cuts::Every(1), Cuts::Random(u64::from(choice))] {
        assert_eq!(read(cuts), whole, "{cuts:?}");
    }
}

fn envelope(data: &[u8]) {
    if let Some(publication) = redis::fuzzing::envelope(data) {
        assert!(publication.position().is_some());
        again(&publication);
    }
}

/// The first line is a user, the second and third are a tag, the rest may be JSON about the
/// publisher.
fn meta(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.splitn(4, '\n').map(str::to_owned);
    let mut line = || lines.next().unwrap_or_default();
    let (user, tag) = (line(), (line(), line()));
    let json = line();
    // Claims of tokens are already valid JSON here.
    let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&json).is_ok();
    let info = ClientInfo {
        client: user.as_str().into(),
        user: user.into(),
        connection: is_json.then(|| json.trim().as_bytes().into()),
        channel: None,
    };
    let publication = Publication::build(Bytes::from_static(b"x"))
        .with_info(Some(info))
        .with_tags(vec![tag])
        .finish();
    again(&publication);
}

fn again(publication: &Publication) {
    let again = redis::fuzzing::meta_again(publication);
    assert_eq!(again.info(), publication.info());
    assert_eq!(again.tags(), publication.tags());
}

/// Lines up to an empty one are headers; the payload follows. The first two lines also serve as a
/// prefix and a channel.
fn messages(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    if let (Some(prefix), Some(name)) = (lines.next(), lines.next()) {
        nats::fuzzing::names(prefix, name);
    }
    let head = text.split("\n\n").next().unwrap_or_default();
    let headers = head.lines().filter_map(|line| line.split_once(':'));
    let payload = &data[head.len().min(data.len())..];
    let publications = nats::fuzzing::publications(payload, headers);
    let payloads: Vec<_> = publications.iter().map(|one| &one.payload()[..]).collect();
    assert!(payloads.is_empty() || payloads.concat() == payload);
}
