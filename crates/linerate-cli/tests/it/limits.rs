//! Tests of limits: too many clients, slow clients, and silent clients.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::support::{PATIENCE, Response, Server, linerate};

/// Waits for the end of the connection and returns what came before.
async fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset also ends the connection.
    _ = timeout(PATIENCE, stream.read_to_end(&mut bytes))
        .await
        .expect("the server closes the connection");
    bytes
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    let server = Server::start();
    let started = Instant::now();
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let drip = tokio::spawn(async move {
        let mut drop = &b"GET / HTTP/1.1\r\nHost: localhost\r\n"[..];
        while writer.write_all(drop).await.is_ok() {
            drop = b"X-Slow: 1\r\n";
            sleep(Duration::from_millis(200)).await;
        }
    });
    let mut answer = Vec::new();
    _ = timeout(PATIENCE, reader.read_to_end(&mut answer))
        .await
        .expect("the server closes the connection");
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    assert!(
        started.elapsed() >= Duration::from_secs(9),
        "the head gets its time"
    );
    drip.abort();
}

#[tokio::test]
async fn a_silent_connection_is_closed_before_and_after_a_request() {
    let server = Server::start();
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let (silent, idle) = tokio::join!(read_to_end(&mut silent), read_to_end(&mut idle));
    assert!(!silent.starts_with(b"HTTP/1.1 200"));
    assert!(idle.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = Server::start();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: {}\r\n\r\n",
        "x".repeat(300_000)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(Response::read_from(&mut stream).await.status, 431);
}

#[tokio::test]
async fn one_connection_too_many_is_refused_and_each_end_makes_room() {
    let server = Server::start_with(&["--connections-max", "2"]);
    let mut websocket = server.connect("/echo").await;
    let plain = TcpStream::connect(server.address).await.unwrap();
    let refused = async {
        loop {
            // The plain connection counts once the server has accepted it.
            let response = server.get("/").await;
            if response.status != 200 {
                return response;
            }
        }
    };
    let refused = timeout(PATIENCE, refused).await.unwrap();
    assert_eq!(refused.status, 503);
    assert_eq!(refused.text(), "too many connections\n");
    assert!(refused.header("retry-after").is_some());

    drop(plain);
    let admitted = async {
        while server.get("/").await.status != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, admitted).await.unwrap();
    websocket.send("still there").await.unwrap();
    assert_eq!(
        websocket.recv().await.unwrap().unwrap().as_text(),
        Some("still there")
    );
}

#[test]
fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = linerate(&["serve", "--listen", &address]).output().unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains(&format!("cannot listen on {address}")),
        "{message}"
    );
    assert!(message.contains("in use"), "{message}");
}

#[test]
fn print_limits_shows_each_with_its_key_unit_and_value_in_force() {
    let flags = ["--set", "client.channels_max=5", "--connections-max", "77"];
    let arguments = [&["serve", "--print-limits"][..], &flags].concat();
    let output = linerate(&arguments).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |key: &str| -> Vec<&str> {
        let mut lines = text.lines();
        let line = lines.find(|line| line.split_whitespace().next() == Some(key));
        line.expect(key).split_whitespace().collect()
    };
    assert_eq!(row("client.channels_max")[1], "5");
    assert_eq!(row("server.connections_max")[1], "77");
    assert_eq!(row("client.message_bytes_max")[1..3], ["65536", "bytes"]);
    assert_eq!(row("request.head_bytes_max")[1..3], ["65536", "bytes"]);
    assert_eq!(row("message.fragments_max")[1], "131072");
    let wrong = linerate(&["serve", "--print-limits", "--set", "client.channels_max=0"]);
    let output = { wrong }.output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
}

#[tokio::test]
async fn presence_is_bounded_for_clients_and_applications_and_its_numbers_stay() {
    let server = Server::start_with(&["--set", "channel.presence_bytes_max=1024"]);
    let ask = async |ws: &mut linerate::WebSocket, command: &str| -> Value {
        ws.send(command).await.unwrap();
        let reply = timeout(PATIENCE, ws.recv())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        serde_json::from_str(reply.as_text().unwrap()).unwrap()
    };
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut ws = server.connect("/connection/websocket").await;
        ask(&mut ws, r#"{"id":1,"connect":{}}"#).await;
        ask(&mut ws, r#"{"id":2,"subscribe":{"channel":"room"}}"#).await;
        clients.push(ws);
    }
    let command = r#"{"id":3,"presence":{"channel":"room"}}"#;
    let reply = ask(&mut clients[0], command).await;
    assert_eq!(reply["error"]["code"], 106, "{reply}");
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("1024") && message.contains("presence_stats"),
        "{message}"
    );
    let body = json!({"channel": "room"}).to_string();
    let reply = server.post("/api/presence", &body).await;
    assert!(reply.text().contains(r#""code":106"#), "{}", reply.text());
    let stats = server
        .api("presence_stats", json!({"channel": "room"}))
        .await;
    assert_eq!(stats["num_clients"], 20);
    clients.truncate(5);
    let few = async {
        while ask(&mut clients[0], command).await.get("error").is_some() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, few).await.unwrap();
}
