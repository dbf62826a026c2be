//! Publications as deltas from those before them.

use bytes::Bytes;
use linerate_hub::{Payloads, Publication, Unencodable, fossil};

use super::{encode_as, publication, publications::frames};
use crate::protocol::{
    centrifuge::{
        stream,
        websocket::{JSON, PROTOBUF},
    },
    dialects,
    reply::{Answer, Recovery, Reply, ServerMessage, Subscribed},
};

const FIRST: &[u8] = b"{\"name\":\"a name of some length\",\n\"value\":1}";
const SECOND: &[u8] = b"{\"name\":\"a name of some length\",\n\"value\":2}";

/// The two with a line end that JSON escapes, and the delta of the second.
const FIRST_TEXT: &str = r#""{\"name\":\"a name of some length\",\n\"value\":1}""#;
const SECOND_TEXT: &str = r#""{\"name\":\"a name of some length\",\n\"value\":2}""#;
const DELTA_TEXT: &str = r#""g\ne@0,2:2}3SlOJI;""#;

fn json_lines(publications: &[Publication], previous: Option<&Publication>) -> Vec<String> {
    let payloads = Payloads::Deltas { previous };
    let out = encode_as(&stream::JSON, "c", publications, payloads).unwrap();
    let out = String::from_utf8(out).unwrap();
    out.lines().map(str::to_owned).collect()
}

fn push(data: &str, rest: &str) -> String {
    format!(r#"{{"push":{{"channel":"c","pub":{{"data":{data}{rest}}}}}}}"#)
}

#[test]
fn json_payloads_are_strings_once_deltas_are_agreed_on() {
    let publications = [publication(FIRST, 1), publication(SECOND, 2)];
    let lines = json_lines(&publications, None);
    let delta = push(DELTA_TEXT, r#","delta":true,"offset":2"#);
    assert_eq!(lines, [push(FIRST_TEXT, r#","offset":1"#), delta.clone()]);
    let [first, second] = &publications;
    assert_eq!(json_lines(&publications[1..], Some(first)), [delta]);
    let other = publication(b"null", 1);
    for previous in [None, Some(&other)] {
        let lines = json_lines(&publications[1..], previous);
        assert_eq!(lines, [push(SECOND_TEXT, r#","offset":2"#)]);
    }
    let delta = second.delta_from(first).unwrap();
    assert_eq!(fossil::apply(FIRST, &delta, 100).unwrap(), SECOND);
}

#[test]
fn json_frames_and_events_hold_the_same() {
    let publications = [publication(FIRST, 1), publication(SECOND, 2)];
    let payloads = Payloads::Deltas { previous: None };
    let lines = json_lines(&publications, None);
    let out = encode_as(&JSON, "c", &publications, payloads).unwrap();
    let [(_, frame)] = frames(&out)[..] else {
        panic!("one frame")
    };
    assert_eq!(str::from_utf8(frame).unwrap(), lines.join("\n"));
    let out = encode_as(&stream::EVENTS, "c", &publications, payloads).unwrap();
    let events = lines.iter().map(|line| format!("data: {line}\n\n"));
    assert_eq!(String::from_utf8(out).unwrap(), String::from_iter(events));
}

#[test]
fn a_payload_that_is_no_json_cannot_be_a_string_either() {
    let first = publication(b"{\"name\":\"a name of some length\"}", 1);
    let second = publication(b"{\"name\":\"a name of some length\"", 2);
    for publications in [&[first.clone(), second.clone()][..], &[second]] {
        let payloads = Payloads::Deltas {
            previous: Some(&first),
        };
        assert_eq!(
            encode_as(&JSON, "c", publications, payloads),
            Err(Unencodable)
        );
    }
}

#[test]
fn protobuf_payloads_are_bytes_and_deltas_have_a_flag() {
    let publications = [publication(FIRST, 1), publication(SECOND, 2)];
    let payloads = Payloads::Deltas { previous: None };
    let [first, second] = &publications;
    let delta = second.delta_from(first).unwrap();
    let data = |data: &[u8], rest: &[u8]| {
        let publication = [&[0x22, data.len() as u8], data, rest].concat();
        let push = [
            b"\x12\x01c\x22",
            &[publication.len() as u8][..],
            &publication,
        ]
        .concat();
        let reply = [b"\x22", &[push.len() as u8][..], &push].concat();
        [&[reply.len() as u8][..], &reply].concat()
    };
    let expected = [data(FIRST, b"\x30\x01"), data(&delta, b"\x30\x02\x40\x01")].concat();
    let out = encode_as(&stream::PROTOBUF, "c", &publications, payloads).unwrap();
    assert_eq!(out, expected);
    let out = encode_as(&PROTOBUF, "c", &publications, payloads).unwrap();
    assert_eq!(out[2..], expected);
}

#[test]
fn a_reply_begins_with_a_whole_payload() {
    let subscribed = Subscribed {
        recovery: Some(Recovery {
            is_recovered: true,
            publications: vec![publication(FIRST, 1), publication(SECOND, 2)],
        }),
        with_deltas: true,
        ..Subscribed::default()
    };
    let reply = ServerMessage::Reply(Reply {
        id: 1,
        result: Ok(Answer::Subscribe(subscribed)),
    });
    let mut out = Vec::new();
    super::commands(&stream::JSON)
        .encode(std::slice::from_ref(&reply), &mut out)
        .unwrap();
    let expected = format!(
        r#"{{"id":1,"subscribe":{{"was_recovering":true,"recovered":true,"publications":[{{"data":{FIRST_TEXT},"offset":1}},{{"data":{DELTA_TEXT},"delta":true,"offset":2}}],"delta":true}}}}"#
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected + "\n");
    let mut out = Vec::new();
    super::commands(&stream::PROTOBUF)
        .encode(&[reply], &mut out)
        .unwrap();
    let delta = b"g\ne@0,2:2}3SlOJI;\x30\x02\x40\x01\x40\x01\x60\x01\x68\x01";
    assert!(out.ends_with(delta), "{}", out.escape_ascii());
}

#[test]
fn only_clients_of_centrifuge_can_ask_for_deltas() {
    for dialect in dialects() {
        let is_centrifuge = dialect.name.0.starts_with("centrifuge-");
        assert_eq!(dialect.has_deltas(), is_centrifuge, "{:?}", dialect.name);
        if is_centrifuge {
            continue;
        }
        let publications = [Publication::new(Bytes::from_static(FIRST))];
        let payloads = Payloads::Deltas { previous: None };
        let out = encode_as(dialect, "c", &publications, payloads).unwrap();
        assert_eq!(out, super::encode(dialect, "c", &publications).unwrap());
    }
}
