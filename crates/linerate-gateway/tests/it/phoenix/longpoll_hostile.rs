//! Requests of sessions that no Phoenix client sends, and limits on sessions that are polled.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

use super::{
    ON,
    client::Phoenix,
    longpoll_client::{LongPoll, PATH, body, unknown},
};
use crate::{
    backend::support::until,
    http::{Answer, request, sessions_until_full},
    support::{Gateway, in_time},
};

/// Returns the status in the body of a response that is refused with a status of HTTP.
async fn refused(answer: Answer, status: u16) -> Value {
    assert_eq!(answer.status, status);
    serde_json::from_str(&answer.text().await).unwrap()
}

#[tokio::test]
async fn unknown_sessions_are_gone() {
    let gateway = Gateway::open(ON).await;
    let session = "00000000-0000-0000-0000-000000000007";
    let other = LongPoll::open(&gateway).await;
    let node = other.token.split_once('.').unwrap().1;
    for token in [
        format!("{session}.{node}"),
        format!("{session}.nowhere"),
        format!("{session}."),
    ] {
        for method in ["GET", "POST"] {
            let target = format!("{method} {PATH}token={token}");
            let answer = request(gateway.address, &target, "", b"[]").await;
            assert_eq!(body(answer).await, unknown(), "{target}");
        }
    }
    for token in ["", "a", "a.b.c", "%FF", &"x".repeat(4_000)] {
        let target = format!("POST {PATH}token={token}");
        let answer = request(gateway.address, &target, "", b"[]").await;
        assert_eq!(body(answer).await, unknown(), "{token}");
    }
}

#[tokio::test]
async fn other_methods_are_refused() {
    let gateway = Gateway::open(ON).await;
    let client = LongPoll::open(&gateway).await;
    for method in ["PUT", "DELETE", "PATCH"] {
        let answer = request(gateway.address, &client.target(method), "", b"").await;
        assert_eq!(refused(answer, 400).await["status"], 400, "{method}");
    }
}

#[tokio::test]
async fn the_protocol_is_off_unless_it_is_switched_on() {
    let gateway = Gateway::open("").await;
    for method in ["GET", "POST"] {
        let answer = request(gateway.address, &format!("{method} {PATH}"), "", b"").await;
        assert_eq!(answer.status, 404);
        let text = answer.text().await;
        assert!(text.contains("protocols.phoenix = false"), "{text}");
    }
}

#[tokio::test]
async fn two_polls_at_once_end_the_session() {
    let gateway = Gateway::open(ON).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    let both = async { tokio::join!(client.poll(), client.poll()) };
    let (first, second) = in_time(both).await;
    assert_eq!(
        (&first["status"], &second["status"]),
        (&json!(410), &json!(410))
    );
    client.is_unknown().await;
    until(async || gateway.info().clients == 0).await;
}

#[tokio::test]
async fn two_bodies_at_once_end_the_session() {
    // Further events wait for the backend, which does not answer.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let toml = format!(
        "{ON}[channel]\nrpc_backend = \"app\"\n[[backend]]\nname = \"app\"\nurl = \"http://{address}\"\n"
    );
    let gateway = Gateway::open(&toml).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    let many = vec![r#"["1","2","room:1","a",{}]"#; 200].join("\n");
    let second = async {
        // The first body is being handled.
        let asked = silent.accept().await.unwrap();
        (client.post(b"[]").await, asked)
    };
    let bodies = async { tokio::join!(client.post(many.as_bytes()), second) };
    let (_, (second, _asked)) = in_time(bodies).await;
    assert_eq!(body(second).await["status"], 410);
    client.is_unknown().await;
    until(async || gateway.info().clients == 0).await;
}

#[tokio::test]
async fn a_client_that_drops_its_poll_loses_the_session() {
    let gateway = Gateway::open(ON).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    let poll = tokio::time::timeout(Duration::from_millis(300), client.ask());
    assert!(poll.await.is_err(), "there is nothing to fetch");
    until(async || gateway.info().clients == 0).await;
    client.is_unknown().await;
}

/// Returns an event of this length.
fn event(bytes: usize) -> String {
    let empty = r#"["1","2","room:1","a",""]"#;
    empty.replace(
        ",\"\"",
        &format!(",\"{}\"", "x".repeat(bytes - empty.len())),
    )
}

#[tokio::test]
async fn messages_are_limited_in_size_and_bodies_may_have_several() {
    let toml = format!("{ON}[client]\nmessage_bytes_max = 1_000\n");
    let gateway = Gateway::open(&toml).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    // Each line takes 1,000 bytes with the line break, and 16 times as much is allowed.
    let lines = vec![event(999); 16].join("\n");
    client.send_lines(&lines).await;
    let mut answered = 0;
    while answered < 16 {
        answered += client.messages().await.len();
    }
    client.send_lines(&event(1_000)).await;
    for (lines, reason) in [
        (event(1_001), "message exceeds the limit of 1000 bytes"),
        (
            vec![event(999); 17].join("\n"),
            "body exceeds the limit of 16000 bytes",
        ),
    ] {
        let answer = refused(client.post(lines.as_bytes()).await, 413).await;
        assert_eq!(answer, json!({"status": 413, "reason": reason}));
    }
}

#[tokio::test]
async fn a_body_that_does_not_end_is_refused_at_the_limit() {
    let toml = format!("{ON}[client]\nmessage_bytes_max = 1_000\n");
    let gateway = Gateway::open(&toml).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    let chunked = "Transfer-Encoding: chunked\r\n";
    let heartbeat = r#"[null,"1","phoenix","heartbeat",{}]"#;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let (target, address) = (client.target("POST"), gateway.address);
    let head = format!("{target} HTTP/1.1\r\nHost: {address}\r\n{chunked}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let line = format!("{:x}\r\n{heartbeat}\n\r\n", heartbeat.len() + 1);
    for _ in 0..500 {
        if stream.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    let answer = in_time(Answer::read(stream)).await;
    assert_eq!(refused(answer, 413).await["status"], 413);
}

#[tokio::test]
async fn malformed_bodies_end_the_session() {
    let gateway = Gateway::open(ON).await;
    for lines in [
        &b""[..],
        b"\n",
        b"{}",
        b"[]",
        b"%%%",
        b"AP8",
        b"AA==",
        b"WzFd",
        b"[null,\"1\",\"phoenix\",\"heartbeat\",{}]\n[",
        b"[null,\"1\",\"phoenix\",\"heartbeat\",\"\xff\"]",
        b"[null,\"1\",\"phoenix\",\"heartbeat\",{}][null,\"1\",\"phoenix\",\"heartbeat\",{}]",
    ] {
        let client = LongPoll::joined(&gateway, "room:1").await;
        client.post(lines).await;
        let reason = client.ends().await;
        assert!(reason.ends_with("(1007)"), "{reason}");
    }
    until(async || gateway.info().clients == 0).await;
}

#[tokio::test]
async fn a_body_of_many_messages_counts_each_of_them() {
    let toml = format!("{ON}[client]\ncommands_per_second_max = 100\n");
    let gateway = Gateway::open(&toml).await;
    let client = LongPoll::open(&gateway).await;
    let many = vec![r#"[null,"1","phoenix","heartbeat",{}]"#; 300].join("\n");
    client.post(many.as_bytes()).await;
    assert_eq!(client.ends().await, "too many requests (1013)");
}

#[tokio::test]
async fn sessions_count_as_connections() {
    let toml = format!("{ON}[server]\nconnections_max = 10\n");
    let gateway = Gateway::open(&toml).await;
    let sessions = sessions_until_full(gateway.address, PATH).await;
    assert!((8..=10).contains(&sessions), "{sessions}");
}

#[tokio::test]
async fn a_client_that_does_not_poll_is_told_of_what_it_missed_and_others_do_not_notice() {
    let toml = format!("{ON}[channel]\nring_messages_max = 4\ngaps = \"told\"\n");
    let gateway = Gateway::open(&toml).await;
    let slow = LongPoll::joined(&gateway, "room:1").await;
    let mut live = Phoenix::connect(&gateway).await;
    live.join("room:1", json!({})).await;
    let payload = format!("\"{}\"", "x".repeat(10_000));
    for _ in 0..100 {
        gateway.publish("room:1", &payload).await;
        assert_eq!(live.json().await[3], "message");
    }
    let mut received = 0;
    loop {
        let messages = slow.messages().await;
        if messages.iter().any(|message| message[3] == "phx_error") {
            break;
        }
        received += messages.len();
    }
    assert!(received < 40, "{received}");
}
