//! Inputs that are small to send but expensive to parse: each is refused or accepted, and other
//! clients are not affected.

use bytes::BufMut;
use linerate::Client;
use linerate_testkit::Frame;
use serde_json::json;

use crate::{
    bare::{Bare, is_closed_with},
    http::request,
    support::{Gateway, Json, message, signed},
};

/// Slightly less than the maximum size of a client message.
const BYTES: usize = 65_000;

#[tokio::test]
async fn r10_commands_that_are_dear_to_parse_end_their_connection_only() {
    let gateway = Gateway::open("").await;
    let mut other = Json::connect(&gateway).await;
    let nines = "9".repeat(BYTES);
    for (what, frame) in [
        ("arrays", "[".repeat(BYTES)),
        ("objects", r#"{"a":"#.repeat(BYTES / 5)),
        ("lines", "\n".repeat(BYTES)),
        ("pongs", "{}\n".repeat(BYTES / 3)),
        ("an id", format!(r#"{{"id":{nines},"ping":{{}}}}"#)),
        ("an exponent", r#"{"id":1e999999999,"ping":{}}"#.to_owned()),
        ("an offset", offset(&nines)),
        ("a string", format!("\"{}", "\\".repeat(BYTES))),
    ] {
        let mut client = Json::connect(&gateway).await;
        client.send(&frame).await;
        let reason = client.closed(3501).await;
        assert!(reason.len() <= 123, "{what}: {reason}");
        assert_eq!(other.ask(r#"{"id":9,"ping":{}}"#).await["id"], 9, "{what}");
    }
}

fn offset(digits: &str) -> String {
    format!(r#"{{"id":2,"subscribe":{{"channel":"a","recover":true,"offset":{digits}}}}}"#)
}

#[tokio::test]
async fn r10_protobuf_that_is_nested_without_end_ends_its_connection() {
    let gateway = Gateway::open("").await;
    // FilterNode.nodes, each nested in the previous one.
    let mut nested = Vec::new();
    while nested.len() < BYTES {
        nested = field(6, &nested);
    }
    let subscribe = field(4, &field(13, &nested));
    let mut frame = Vec::new();
    varint(subscribe.len(), &mut frame);
    frame.put_slice(&subscribe);
    let path = "/connection/websocket?cf_protocol=protobuf";
    let mut client = Bare::open(&gateway, path).await;
    let frame = Frame::new(2, &frame).with_mask(Some(*b"mask"));
    client.write(&frame.to_bytes()).await;
    let said = client.rest().await;
    assert!(is_closed_with(&said, 3501), "{}", said.escape_ascii());
}

/// Encodes a length-delimited Protobuf field.
fn field(number: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len() + 8);
    varint(number << 3 | 2, &mut bytes);
    varint(value.len(), &mut bytes);
    bytes.extend(value);
    bytes
}

fn varint(mut number: usize, into: &mut Vec<u8>) {
    while number > 0x7F {
        into.put_u8((number & 0x7F | 0x80) as u8);
        number >>= 7;
    }
    into.put_u8(number as u8);
}

#[tokio::test]
async fn r10_payloads_that_are_dear_to_parse_match_no_filter_and_pass_without_one() {
    let gateway = Gateway::open("").await;
    let path = "channel=a&filter=n+%3E+1&conflate=/n";
    let mut filtered = gateway.raw(&Client::new(), path).await;
    let mut plain = gateway.raw(&Client::new(), "channel=a").await;
    for bomb in [
        "[".repeat(1_000_000),
        r#"{"n":"#.repeat(100_000),
        "\n".repeat(1_000_000),
        format!(r#"{{"n":{}}}"#, "9".repeat(1_000_000)),
        r#"{"n":1e999999999}"#.to_owned(),
        format!(r#"{{"m":[{}1]}}"#, "1,".repeat(400_000)),
    ] {
        gateway.publish("a", &bomb).await;
        let passed = message(&mut plain).await;
        assert!(passed.as_text() == Some(&*bomb), "byte for byte");
    }
    gateway.publish("a", r#"{"n":2}"#).await;
    let matched = message(&mut filtered).await;
    assert_eq!(matched.as_text(), Some(r#"{"n":2}"#));
}

#[tokio::test]
async fn r10_tokens_and_requests_that_are_dear_to_parse_are_refused() {
    let gateway = Gateway::guarded("").await;
    let claims = format!(r#"{{"sub":"ann","info":{}"#, "[".repeat(5_000));
    let mut client = Json::open(&gateway).await;
    let command = json!({"id": 1, "connect": {"token": signed(&claims)}});
    client.send(&command.to_string()).await;
    client.closed(3500).await;
    for body in ["[".repeat(BYTES), "\n".repeat(BYTES)] {
        let answer = request(gateway.address, "POST /emulation", "", body.as_bytes()).await;
        assert_eq!(answer.status, 400);
    }
}
