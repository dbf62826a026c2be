//! Private parsers, for fuzzers.

use linerate_source::Template;
use serde_json::Value;

use crate::{
    convert::{Raw, convert},
    field::Field,
    options::TopicOptions,
    position::Position,
};

/// The limit on records.
const RECORD_BYTES_MAX: usize = 64;

/// Converts a record: after three bytes with the options and the lengths of its key and of its
/// header, `data` has the key, the header and the value.
///
/// # Panics
/// A record that is too large is published, or a part of the value as something that is not JSON.
pub fn kafka(data: &[u8]) {
    let Some(([choice, key, header], rest)) = data.split_first_chunk() else {
        return;
    };
    let (key, rest) = rest.split_at(usize::from(*key).min(rest.len()));
    let (header, value) = rest.split_at(usize::from(*header).min(rest.len()));
    let channel = [
        "{key}",
        "{header.h}",
        "a:{value.a.b}",
        "{topic}:{partition}",
    ];
    let channel = channel[usize::from(choice & 3)];
    let field = |name: &str| name.parse::<Field>().expect("the field is valid");
    let topic = TopicOptions {
        topic: "t".to_owned(),
        channel: Template::new(channel).expect("the template is valid"),
        payload: (choice & 4 > 0).then(|| field("value.a")),
        tags: vec![("b".to_owned(), field("value.b"))],
    };
    let raw = Raw {
        position: Position {
            topic: "t".to_owned(),
            partition: 0,
            offset: 1,
            at: 2,
        },
        key: (choice & 8 > 0).then_some(key),
        value: (choice & 16 > 0).then_some(value),
        headers: vec![("h", (choice & 32 > 0).then_some(header))],
    };
    if let Ok(Some(record)) = convert(raw, &topic, false, RECORD_BYTES_MAX) {
        assert!(record.payload.len() <= RECORD_BYTES_MAX);
        if topic.payload.is_some() {
            let json = serde_json::from_slice::<Value>(&record.payload);
            json.expect("a member of the value is JSON");
        }
    }
}
