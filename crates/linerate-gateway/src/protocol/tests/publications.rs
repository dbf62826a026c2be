//! Publications in each protocol and transport.

use bytes::Bytes;
use linerate_hub::{Batch, Payloads, Publication, Unencodable};
use linerate_proto::{Header, Opcode};

use super::{bytes, channel, encode, full, publication};
use crate::protocol::{
    centrifuge::{
        stream,
        websocket::{JSON, PROTOBUF},
    },
    event_stream, raw,
};

/// Splits server frames into opcodes and payloads.
pub(super) fn frames(mut rest: &[u8]) -> Vec<(Opcode, &[u8])> {
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let (header, bytes) = Header::decode(rest).unwrap().unwrap();
        assert!(header.fin && header.mask.is_none());
        let (payload, behind) = rest[bytes..].split_at(header.payload_bytes as usize);
        frames.push((header.opcode, payload));
        rest = behind;
    }
    frames
}

#[test]
fn centrifuge_json_is_a_line_a_publication() {
    let publications = [publication(b"{\"p\":1}", 46), publication(b"[\n]", 47)];
    let lines = [
        r#"{"push":{"channel":"ticks:AAPL","pub":{"data":{"p":1},"offset":46}}}"#,
        r#"{"push":{"channel":"ticks:AAPL","pub":{"data":[ ],"offset":47}}}"#,
    ];
    let encoded = |dialect| {
        let out = encode(dialect, "ticks:AAPL", &publications).unwrap();
        String::from_utf8_lossy(&out).into_owned()
    };
    let out = encode(&JSON, "ticks:AAPL", &publications).unwrap();
    assert_eq!(&out[..4], b"\x81\x7e\x00\x85");
    assert_eq!(String::from_utf8_lossy(&out[4..]), lines.join("\n"));
    assert_eq!(
        encoded(&stream::JSON),
        format!("{}\n{}\n", lines[0], lines[1])
    );
    assert_eq!(
        encoded(&stream::EVENTS),
        format!("data: {}\n\ndata: {}\n\n", lines[0], lines[1])
    );
}

#[test]
fn centrifuge_json_holds_all_there_is() {
    let out = encode(&JSON, "ticks:*", &[full(b"1")]).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&out[4..]),
        r#"{"push":{"channel":"ticks:*","pub":{"data":1,"offset":300,"info":{"user":"u","client":"x","conn_info":{},"chan_info":1},"tags":{"k":"v"},"channel":"ticks:A"}}}"#
    );
    let out = encode(
        &JSON,
        "a\"\\ü",
        &[Publication::new(Bytes::from_static(b"1"))],
    )
    .unwrap();
    let expected = r#"{"push":{"channel":"a\"\\ü","pub":{"data":1}}}"#;
    assert_eq!(String::from_utf8_lossy(&out[2..]), expected);
}

#[test]
fn centrifuge_json_names_channels_by_ids_where_clients_know_them() {
    for (channel_id, id) in [(0, "1"), (300, "301"), (u32::MAX, "4294967295")] {
        let batch = Batch {
            channel: &channel("ticks:AAPL"),
            channel_id,
            publications: &[publication(b"1", 46)],
            conflated: 0,
            payloads: Payloads::Full,
            with_channel_id: true,
            with_positions: false,
        };
        let mut out = Vec::new();
        (stream::JSON.encode)(&batch, &mut out).unwrap();
        let expected = format!(r#"{{"push":{{"id":{id},"pub":{{"data":1,"offset":46}}}}}}"#);
        assert_eq!(String::from_utf8_lossy(&out), expected + "\n");
    }
}

#[test]
fn centrifuge_protobuf_is_what_its_codec_writes() {
    let expected = bytes("1b2219120a7469636b733a4141504c220b22077b2270223a317d302e");
    let publications = [publication(b"{\"p\":1}", 46), publication(b"{\"p\":1}", 46)];
    let out = encode(&PROTOBUF, "ticks:AAPL", &publications).unwrap();
    assert_eq!(out, [b"\x82\x38", &expected[..], &expected].concat());
    let dialect = &stream::PROTOBUF;
    let out = encode(dialect, "ticks:AAPL", &publications).unwrap();
    assert_eq!(out, [&expected[..], &expected].concat());

    let expected = bytes(
        "33223112077469636b733a2a22262201ff2a0d0a01751201781a027b7d22013130ac023a060a016b1201765207\
         7469636b733a41",
    );
    let out = encode(dialect, "ticks:*", &[full(b"\xff")]).unwrap();
    assert_eq!(out, expected);
}

#[test]
fn a_payload_that_is_no_json_has_no_place_in_centrifuge_json() {
    let publications = [publication(b"1", 1), publication(b"hello", 2)];
    for dialect in [&JSON, &stream::JSON, &stream::EVENTS] {
        assert_eq!(
            encode(dialect, "c", &publications),
            Err(Unencodable),
            "{:?}",
            dialect.name
        );
    }
    assert!(encode(&PROTOBUF, "c", &publications).is_ok());
}

#[test]
fn raw_is_a_frame_a_publication_byte_for_byte() {
    let publications = [
        publication(b"{\n\"a\": 1}", 1),
        publication(b"\xff\x00", 2),
        publication(b"", 3),
        publication("ü".as_bytes(), 4),
    ];
    let out = encode(&raw::RAW, "c", &publications).unwrap();
    assert_eq!(
        out,
        b"\x81\x09{\n\"a\": 1}\x82\x02\xff\x00\x81\x00\x81\x02\xc3\xbc"
    );
}

#[test]
fn events_have_ids_and_a_data_line_for_each_line() {
    let publications = [
        publication(b"{\"a\":1}", 41),
        publication(b"one\ntwo\r\nthree\rfour\n", 42),
        publication(b"", 43),
        Publication::new(Bytes::from_static(b" x")),
    ];
    let out = encode(&event_stream::EVENTS, "c", &publications).unwrap();
    let expected = "id: e:41\ndata: {\"a\":1}\n\n\
                    id: e:42\ndata: one\ndata: two\ndata: three\ndata: four\ndata: \n\n\
                    id: e:43\ndata: \n\n\
                    data:  x\n\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
    let binary = [publication(b"\xff", 1)];
    assert_eq!(
        encode(&event_stream::EVENTS, "c", &binary),
        Err(Unencodable)
    );
}

#[test]
fn many_publications_are_several_frames() {
    // Each line is 105 bytes long, so 618 lines with their separators are 65,507 bytes.
    let payload: &'static [u8] = Box::leak(format!("\"{}\"", "x".repeat(63)).into_bytes().into());
    let publications = vec![Publication::new(Bytes::from_static(payload)); 1_400];
    let out = encode(&JSON, "c", &publications).unwrap();
    let frames = frames(&out);
    let lengths: Vec<_> = frames.iter().map(|(_, payload)| payload.len()).collect();
    assert_eq!(lengths, [65_507, 65_507, 17_383]);
    let lines = frames
        .iter()
        .flat_map(|(_, payload)| payload.split(|byte| *byte == b'\n'));
    let line = [
        &br#"{"push":{"channel":"c","pub":{"data":"#[..],
        payload,
        b"}}}",
    ]
    .concat();
    assert!(lines.clone().all(|found| found == line));
    assert_eq!(lines.count(), 1_400);
}

#[test]
fn a_frame_is_full_at_64_kib_and_a_longer_publication_has_its_own() {
    let line_bytes = |payload: usize| r#"{"push":{"channel":"c","pub":{"data":}}}"#.len() + payload;
    let payload = |bytes: usize| {
        let text = format!("\"{}\"", "x".repeat(bytes - 2));
        Publication::new(Bytes::from(text))
    };
    let first = payload(1_000);
    let rest = 0xFFFF - 1 - line_bytes(1_000) - line_bytes(0);
    let lengths = |publications: &[Publication]| {
        let out = encode(&JSON, "c", publications).unwrap();
        frames(&out)
            .iter()
            .map(|(_, payload)| payload.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(lengths(&[first.clone(), payload(rest)]), [0xFFFF]);
    let split = [line_bytes(1_000), line_bytes(rest + 1)];
    assert_eq!(lengths(&[first.clone(), payload(rest + 1)]), split);
    let long = [first.clone(), payload(100_000), first];
    let expected = [line_bytes(1_000), line_bytes(100_000), line_bytes(1_000)];
    assert_eq!(lengths(&long), expected);
}
