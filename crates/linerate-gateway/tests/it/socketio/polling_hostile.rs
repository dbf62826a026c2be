//! Requests of sessions that no client sends, and limits on sessions that are polled.

use std::time::Duration;

use serde_json::json;

use super::{ON, client::SocketIo, polling_client::Polling};
use crate::{
    backend::support::until,
    http::{request, sessions_until_full},
    support::{Gateway, in_time},
};

const UPGRADE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[tokio::test]
async fn refused_requests_get_the_errors_of_engine_io() {
    let gateway = Gateway::open(ON).await;
    let foreign = "00000000-0000-0000-0000-000000000007.nowhere";
    for (target, headers, code) in [
        ("GET /socket.io/", "", 0),
        ("GET /socket.io/?EIO=4&transport=carrier-pigeon", "", 0),
        ("GET /socket.io/?EIO=4&transport=polling&sid=a", "", 1),
        ("POST /socket.io/?EIO=4&transport=polling&sid=a", "", 1),
        (
            &format!("GET /socket.io/?EIO=4&transport=polling&sid={foreign}"),
            "",
            1,
        ),
        (
            &format!("GET /socket.io/?EIO=4&transport=websocket&sid={foreign}"),
            UPGRADE,
            1,
        ),
        ("POST /socket.io/?EIO=4&transport=polling", "", 2),
        ("GET /socket.io/?EIO=4&transport=websocket", "", 3),
        ("GET /socket.io/?EIO=3&transport=polling", "", 5),
        ("GET /socket.io/?transport=polling", "", 5),
        ("GET /socket.io/?EIO=3&transport=websocket", UPGRADE, 5),
    ] {
        let answer = request(gateway.address, target, headers, b"").await;
        assert_eq!(answer.status, 400, "{target}");
        let error: serde_json::Value = serde_json::from_str(&answer.text().await).unwrap();
        assert_eq!(error["code"], json!(code), "{target}");
    }
    let client = Polling::open(&gateway).await;
    let answer = request(gateway.address, &client.target("PUT"), "", b"").await;
    assert_eq!(answer.text().await, r#"{"code":3,"message":"Bad request"}"#);
}

#[tokio::test]
async fn the_protocol_is_off_unless_it_is_switched_on() {
    let gateway = Gateway::open("").await;
    let target = "GET /socket.io/?EIO=4&transport=polling";
    let answer = request(gateway.address, target, "", b"").await;
    assert_eq!(answer.status, 404);
    assert!(answer.text().await.contains("protocols.socketio = false"));
}

#[tokio::test]
async fn two_polls_at_once_end_the_session() {
    let gateway = Gateway::open(ON).await;
    let (client, _) = Polling::connect(&gateway).await;
    let both = async { tokio::join!(client.ask(), client.ask()) };
    let (first, second) = in_time(both).await;
    assert_eq!((first.status, second.status), (400, 400));
    client.is_unknown().await;
    until(async || gateway.info().clients == 0).await;
}

#[tokio::test]
async fn two_bodies_at_once_end_the_session() {
    // Further commands wait for the backend, which does not answer.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let toml = format!(
        "{ON}[channel]\nrpc_backend = \"app\"\n[[backend]]\nname = \"app\"\nurl = \"http://{address}\"\n"
    );
    let gateway = Gateway::open(&toml).await;
    let (client, _) = Polling::connect(&gateway).await;
    let many = vec!["421[\"a\"]"; 200].join("\u{1e}");
    let second = async {
        // The first body is being handled.
        let asked = silent.accept().await.unwrap();
        (client.post(b"3").await, asked)
    };
    let bodies = async { tokio::join!(client.post(many.as_bytes()), second) };
    let (_, (second, _asked)) = in_time(bodies).await;
    assert_eq!(second.status, 400);
    client.is_unknown().await;
    until(async || gateway.info().clients == 0).await;
}

#[tokio::test]
async fn a_client_that_drops_its_poll_loses_the_session() {
    let gateway = Gateway::open(ON).await;
    let (client, _) = Polling::connect(&gateway).await;
    let poll = tokio::time::timeout(Duration::from_millis(300), client.ask());
    assert!(poll.await.is_err(), "there is nothing to fetch");
    until(async || gateway.info().clients == 0).await;
    client.is_unknown().await;
}

#[tokio::test]
async fn bodies_are_limited_in_size() {
    let toml = format!("{ON}[client]\nmessage_bytes_max = 1_000\n");
    let gateway = Gateway::open(&toml).await;
    let (client, _) = Polling::connect(&gateway).await;
    let event = |bytes: usize| format!("42[\"a\",\"{}\"]", "x".repeat(bytes - 10));
    let allowed = event(1_000);
    assert_eq!(allowed.len(), 1_000);
    client.send(&allowed).await;
    assert!(client.poll().await.contains(r#""event":"a""#));
    let answer = client.post(event(1_001).as_bytes()).await;
    assert_eq!(answer.status, 413);
    let expected = "body exceeds the limit of 1000 bytes\n";
    assert_eq!(answer.text().await, expected);
}

#[tokio::test]
async fn malformed_bodies_close_the_session() {
    let gateway = Gateway::open(ON).await;
    for body in [
        &b""[..],
        b"3\x1e",
        b"7",
        b"2probe",
        b"5",
        b"b%%%",
        b"bAA==",
        b"42[\"a\"]\x1e42[",
        b"42[\"\xff\"]",
        b"451-[\"a\"]\x1e42[\"b\"]",
    ] {
        let (client, _) = Polling::connect(&gateway).await;
        client.post(body).await;
        let mut last = client.poll().await;
        if !last.ends_with("41") {
            last = client.poll().await;
        }
        assert!(last.ends_with("41"), "{}: {last}", body.escape_ascii());
        assert_eq!(client.poll().await, "1");
        client.is_unknown().await;
    }
    until(async || gateway.info().clients == 0).await;
}

#[tokio::test]
async fn a_body_of_many_packets_counts_each_of_them() {
    let toml = format!("{ON}[client]\ncommands_per_second_max = 100\n");
    let gateway = Gateway::open(&toml).await;
    let (client, _) = Polling::connect(&gateway).await;
    client.send(&vec!["3"; 300].join("\u{1e}")).await;
    assert_eq!(client.poll().await, "1");
}

#[tokio::test]
async fn sessions_count_as_connections() {
    let toml = format!("{ON}[server]\nconnections_max = 10\n");
    let gateway = Gateway::open(&toml).await;
    let sessions =
        sessions_until_full(gateway.address, "/socket.io/?EIO=4&transport=polling").await;
    assert!((8..=10).contains(&sessions), "{sessions}");
}

#[tokio::test]
async fn publications_for_a_client_that_does_not_poll_are_bounded_and_others_do_not_notice() {
    let toml = format!("{ON}[channel]\nring_messages_max = 4\n");
    let gateway = Gateway::open(&toml).await;
    let (slow, _) = Polling::connect(&gateway).await;
    let (mut live, _) = SocketIo::connect(&gateway).await;
    let payload = format!("\"{}\"", "x".repeat(10_000));
    for _ in 0..100 {
        gateway.publish("all", &payload).await;
        assert!(live.text().await.len() > 10_000);
    }
    let text = slow.poll().await;
    assert!(text.len() < 400_000, "{}", text.len());
    let mut seen = text;
    while !seen.contains("linerate:gap") {
        seen = slow.poll().await;
    }
}
