//! Input that no client sends.

use linerate::Client;

use super::{
    ON,
    client::{PATH, SocketIo},
};
use crate::{backend::support::until, http::request, support::Gateway};

/// Asserts that a connected client that sends this is closed, and returns the reason.
async fn refused(gateway: &Gateway, packets: &[&str]) -> String {
    let (mut client, _) = SocketIo::connect(gateway).await;
    for packet in packets {
        client.send(packet).await;
    }
    client.expect(&["41"]).await;
    client.closed(3501).await
}

/// Returns the bytes of the budget that are for messages of clients.
async fn message_bytes(gateway: &Gateway) -> u64 {
    let answer = request(gateway.address, "GET /metrics", "", b"").await;
    let text = answer.text().await;
    let name = "linerate_memory_used_bytes{consumer=\"messages\"} ";
    let mut lines = text.lines();
    let bytes = lines.find_map(|line| line.strip_prefix(name));
    bytes
        .unwrap_or_else(|| panic!("{text}"))
        .parse::<f64>()
        .unwrap() as u64
}

#[tokio::test]
async fn malformed_packets_are_refused_with_what_is_wrong() {
    let gateway = Gateway::open(ON).await;
    for (packet, reason) in [
        ("", "malformed packet: type of the Engine.IO packet"),
        ("2probe", "malformed packet: type of the Engine.IO packet"),
        ("5", "malformed packet: type of the Engine.IO packet"),
        ("4", "malformed packet: no type"),
        ("49", "malformed packet: type of the Socket.IO packet"),
        ("42[]", "malformed packet: event without a name"),
        (
            "42[\"disconnect\"]",
            "malformed packet: name of the event is reserved",
        ),
        (
            "42[\"a\"",
            "command 1 is malformed JSON at byte 4 of its line",
        ),
        ("45x-[\"a\"]", "malformed packet: number of attachments"),
        (
            "42/chat,[\"a\"]",
            "event in a namespace that is not connected",
        ),
    ] {
        assert_eq!(refused(&gateway, &[packet]).await, reason, "{packet}");
    }
    let deep = format!("42[\"a\",{}{}]", "[".repeat(64), "]".repeat(64));
    let reason = refused(&gateway, &[&deep]).await;
    assert_eq!(reason, "command 1 is nested deeper than 64 levels");
}

#[tokio::test]
async fn the_first_packet_must_connect() {
    let gateway = Gateway::open(ON).await;
    for packet in ["42[\"a\"]", "41", "431[]"] {
        let mut client = SocketIo::open(&gateway).await;
        client.send(packet).await;
        let reason = client.closed(3501).await;
        assert_eq!(reason, "client is not connected to a namespace");
    }
}

#[tokio::test]
async fn attachments_are_limited_in_number() {
    let gateway = Gateway::open(ON).await;
    let reason = refused(&gateway, &["4511-[\"a\"]"]).await;
    assert_eq!(reason, "packet has 11 attachments; at most 10 are allowed");
    let reason = refused(&gateway, &["464294967295-1[]"]).await;
    assert_eq!(
        reason,
        "packet has 4294967295 attachments; at most 10 are allowed"
    );
}

#[tokio::test]
async fn attachments_are_limited_in_size() {
    let gateway = Gateway::open(&format!("{ON}[client]\nmessage_bytes_max = 1_000\n")).await;
    for (size, is_allowed) in [(500, true), (501, false)] {
        let (mut client, _) = SocketIo::connect(&gateway).await;
        let holes = r#"{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}"#;
        client.send(&format!("452-[\"a\",{holes}]")).await;
        client.attach(&[7; 500]).await;
        client.attach(&vec![7; size]).await;
        if is_allowed {
            let error = client.text().await;
            assert!(error.contains(r#""event":"a""#), "{error}");
            continue;
        }
        client.expect(&["41"]).await;
        let reason = client.closed(3501).await;
        let expected = "packet has 1001 bytes of attachments; at most 1000 are allowed";
        assert_eq!(reason, expected);
    }
}

#[tokio::test]
async fn attachments_must_follow_their_packet() {
    let gateway = Gateway::open(ON).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    client.attach(b"a").await;
    client.expect(&["41"]).await;
    let reason = client.closed(3501).await;
    assert_eq!(reason, "binary message is not an attachment of a packet");
    let expected = "packet arrives before the last attachment of the one before it";
    for packet in ["42[\"b\"]", "40/chat,", "451-[\"b\"]"] {
        assert_eq!(refused(&gateway, &["451-[\"a\"]", packet]).await, expected);
    }
}

#[tokio::test]
async fn pongs_may_arrive_between_attachments() {
    let gateway = Gateway::open(ON).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    client
        .send(r#"451-["a",{"_placeholder":true,"num":0}]"#)
        .await;
    client.send("3").await;
    client.attach(b"a").await;
    let error = client.text().await;
    assert!(error.contains(r#""event":"a""#), "{error}");
}

#[tokio::test]
async fn each_attachment_is_used_once() {
    let gateway = Gateway::open(ON).await;
    let twice = r#"451-["a",{"_placeholder":true,"num":0},{"_placeholder":true,"num":0}]"#;
    for packet in [twice, r#"451-["a",{"_placeholder":true,"num":1}]"#] {
        let (mut client, _) = SocketIo::connect(&gateway).await;
        client.send(packet).await;
        client.attach(b"a").await;
        client.expect(&["41"]).await;
        let reason = client.closed(3501).await;
        let expected = "placeholder does not name one of the 1 attachments, each of them once";
        assert_eq!(reason, expected);
    }
}

#[tokio::test]
async fn what_has_arrived_of_an_event_is_charged_until_the_connection_ends() {
    let gateway = Gateway::open(ON).await;
    let mut clients = Vec::new();
    for _ in 0..40 {
        let (mut client, _) = SocketIo::connect(&gateway).await;
        client.send("452-[\"a\"]").await;
        client.attach(&[7; 60_000]).await;
        clients.push(client);
    }
    until(async || message_bytes(&gateway).await > 40 * 60_000).await;
    drop(clients);
    // The worker keeps some of its part of the budget for the next messages.
    until(async || message_bytes(&gateway).await < 20 * 60_000).await;
}

#[tokio::test]
async fn a_client_that_closes_at_once_does_no_harm() {
    let gateway = Gateway::open(ON).await;
    for _ in 0..50 {
        let mut ws = Client::new().connect(&gateway.url(PATH)).await.unwrap();
        ws.send("40").await.unwrap();
        drop(ws);
    }
    SocketIo::connect(&gateway).await;
}
