//! What is published or sent arrives unchanged, in every encoding.

use bytes::Bytes;
use linerate_hub::{Batch, Payloads, Publication};
use proptest::prelude::*;
use serde_json::Value;

use super::{channel, commands, emulation, native::Block, position, publications::frames};
use crate::protocol::{Dialect, centrifuge::websocket, decode::Limits, native, raw};

fn publications() -> impl Strategy<Value = Vec<Publication>> {
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        any::<String>().prop_map(String::into_bytes),
        any::<(i32, String)>().prop_map(|pair| serde_json::to_vec_pretty(&pair).unwrap()),
        (60_000_usize..70_000).prop_map(|bytes| vec![b'1'; bytes]),
    ];
    let tags = prop::collection::btree_map(any::<String>(), any::<String>(), 0..3);
    let publication = (payload, 1_u64..1_000, tags, any::<bool>());
    prop::collection::vec(publication, 1..8).prop_map(|all| {
        let mut offset = 0;
        let build = |(payload, step, tags, is_sourced): (Vec<u8>, u64, _, bool)| {
            offset += step;
            let tags: std::collections::BTreeMap<String, String> = tags;
            let mut builder = Publication::build(payload.into())
                .with_position(position("e", offset))
                .with_tags(tags.into_iter().collect());
            if is_sourced {
                builder = builder.with_source(channel("ticks:A"));
            }
            builder.finish()
        };
        all.into_iter().map(build).collect()
    })
}

fn encoded(dialect: &Dialect, publications: &[Publication]) -> Option<Vec<u8>> {
    let batch = Batch {
        channel: &channel("c\"ü"),
        channel_id: 70_000,
        publications,
        conflated: 0,
        payloads: Payloads::Full,
        with_channel_id: false,
        with_positions: false,
    };
    let mut out = Vec::new();
    (dialect.encode)(&batch, &mut out).ok().map(|()| out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn native_blocks_hold_what_was_published(publications in publications()) {
        let out = encoded(&native::BLOCKS, &publications).unwrap();
        let mut found = Vec::new();
        for (_, mut payload) in frames(&out) {
            while !payload.is_empty() {
                let block = Block::read(&mut payload);
                prop_assert_eq!(block.channel_id, 70_000);
                found.extend(block.publications);
            }
        }
        prop_assert_eq!(found.len(), publications.len());
        for (found, publication) in found.iter().zip(&publications) {
            prop_assert_eq!(found.offset, Some(publication.offset()));
            prop_assert_eq!(&found.payload, publication.payload());
            let expected = publication.source().map_or("", |source| source.as_str());
            prop_assert_eq!(&found.source[..], expected.as_bytes());
            let tags: Value = serde_json::from_slice(&found.extras).unwrap_or(Value::Null);
            for (key, value) in publication.tags() {
                prop_assert_eq!(&tags["tags"][key], value);
            }
        }
    }

    #[test]
    fn raw_frames_hold_what_was_published(publications in publications()) {
        let out = encoded(&raw::RAW, &publications).unwrap();
        let payloads: Vec<_> = frames(&out).into_iter().map(|(_, payload)| payload).collect();
        let published: Vec<_> = publications.iter().map(|one| &one.payload()[..]).collect();
        prop_assert_eq!(payloads, published);
    }

    #[test]
    fn json_lines_hold_what_was_published(publications in publications()) {
        let publications: Vec<_> =
            publications.into_iter().filter(|one| one.value().is_some()).collect();
        prop_assume!(!publications.is_empty());
        let out = encoded(&websocket::JSON, &publications).unwrap();
        let frames = frames(&out);
        let lines = frames.iter().flat_map(|(_, payload)| payload.split(|byte| *byte == b'\n'));
        let found: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        prop_assert_eq!(found.len(), publications.len());
        for (found, publication) in found.iter().zip(&publications) {
            let push = &found["push"];
            prop_assert_eq!(&push["channel"], "c\"ü");
            prop_assert_eq!(&push["pub"]["data"], publication.value().unwrap());
            prop_assert_eq!(&push["pub"]["offset"], publication.offset());
        }
    }

    #[test]
    fn what_is_sent_to_emulation_is_taken_out(commands in ".{0,200}") {
        let body = serde_json::json!({"session": "s", "node": "n", "data": commands});
        let emulation = emulation("application/json", body.to_string().as_bytes()).unwrap();
        prop_assert_eq!(emulation.frame, commands.into_bytes());
    }

    #[test]
    fn any_bytes_are_commands_or_an_error(frame in prop::collection::vec(any::<u8>(), 0..400)) {
        for dialect in [&websocket::JSON, &websocket::PROTOBUF] {
            _ = commands(dialect).decode(&frame, &Limits::default());
        }
        for content_type in ["application/json", "application/octet-stream"] {
            _ = emulation(content_type, &frame);
        }
    }

    #[test]
    fn published_json_is_taken_byte_for_byte(value in any::<(String, Option<i64>, Vec<String>)>()) {
        let payload = serde_json::to_string(&value).unwrap();
        let frame = format!(r#"{{"id":1,"publish":{{"channel":"c","data": {payload} }}}}"#);
        let frame = frame.as_bytes();
        let commands = commands(&websocket::JSON).decode(frame, &Limits::default()).unwrap();
        let request = &commands[0].request;
        let expected = crate::protocol::command::Request::Publish {
            channel: "c".into(),
            data: Bytes::from(payload),
        };
        prop_assert_eq!(request, &expected);
    }
}
