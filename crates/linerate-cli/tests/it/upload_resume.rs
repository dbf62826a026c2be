//! Tests of uploads whose connections are lost.

use std::{net::SocketAddr, time::Duration};

use linerate::{Client, CloseCode, WebSocket};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::support::{PATIENCE, Server, made_log};

/// Forwards one connection to the server, and resets both ends after `bytes` bytes from the client.
async fn gate(server: SocketAddr, bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(server).await.unwrap();
        for end in [&client, &server] {
            socket2::SockRef::from(end)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
        }
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let answers = tokio::spawn(async move { copy(&mut from_server, &mut to_client).await });
        let mut buffer = vec![0; bytes];
        let mut room = &mut buffer[..];
        while !room.is_empty() {
            match from_client.read(room).await {
                Ok(read @ 1..) => {
                    let (taken, rest) = room.split_at_mut(read);
                    if to_server.write_all(taken).await.is_err() {
                        break;
                    }
                    room = rest;
                }
                _ => break,
            }
        }
        answers.abort();
    });
    address
}

async fn connect(address: SocketAddr) -> Option<WebSocket> {
    let client = Client::new().with_subprotocol("linerate.logs.v1");
    client
        .connect(&format!("ws://{address}/logs/upload"))
        .await
        .ok()
}

async fn next(ws: &mut WebSocket) -> Option<Value> {
    let message = timeout(PATIENCE, ws.recv()).await.expect("a reply in time");
    let message = message.ok()??;
    Some(serde_json::from_str(message.as_text().unwrap()).unwrap())
}

/// Reads up to a message of this type. Returns `None` if the connection is lost before that.
async fn awaited(ws: &mut WebSocket, kind: &str) -> Option<Value> {
    loop {
        let reply = next(ws).await?;
        assert_ne!(reply["type"], "error", "{reply}");
        if reply["type"] == kind && reply["final"] != false {
            return Some(reply);
        }
    }
}

/// Starts or resumes an upload on one connection, and reads up to the final statistics. Returns
/// `None` if the connection is lost before that.
async fn attempt(address: SocketAddr, log: &[u8], id: &mut Option<String>) -> Option<Value> {
    let mut ws = connect(address).await?;
    let first = match id {
        Some(id) => json!({"type": "resume", "id": id}),
        None => json!({"type": "start", "files": [{"name": "a.log", "size": log.len()}]}),
    };
    ws.send(first.to_string()).await.ok()?;
    let ready = awaited(&mut ws, "ready").await?;
    *id = Some(ready["id"].as_str().unwrap().to_owned());
    let from = usize::try_from(ready["bytes"].as_u64().unwrap()).unwrap();
    for message in log[from..].chunks(100_000) {
        ws.send_binary(message).await.ok()?;
    }
    ws.send(r#"{"type":"finish"}"#).await.ok()?;
    let figures = awaited(&mut ws, "snapshot").await?;
    ws.close(CloseCode::NORMAL, "").await.ok()?;
    Some(figures["summary"].clone())
}

#[tokio::test]
async fn upload_that_is_cut_off_again_and_again_has_the_figures_of_an_uncut_one() {
    let server = Server::start();
    let (log, bytes_sent) = made_log(40_000);
    let log = log.as_bytes();
    let uncut = attempt(server.address, log, &mut None).await.unwrap();
    assert_eq!(uncut["bytes_sent"], bytes_sent);

    let mut seed = 7u64;
    let mut id = None;
    for cut in 0..12 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let bytes = 600 + usize::try_from(seed >> 33).unwrap() % 400_000;
        let gate = gate(server.address, bytes).await;
        assert_eq!(attempt(gate, log, &mut id).await, None, "cut {cut}");
    }
    let figures = attempt(server.address, log, &mut id).await.unwrap();
    assert_eq!(figures, uncut);

    let mut watching = server.connect("/counters").await;
    loop {
        let push = next(&mut watching).await.unwrap();
        if push["uploads"] == 0 && push["uploads_kept"] == 0 {
            break;
        }
    }
}

#[tokio::test]
async fn session_goes_on_elsewhere_while_its_old_connection_seems_to_live() {
    let server = Server::start();
    let (log, _) = made_log(1_000);
    let log = log.as_bytes();
    let mut old = connect(server.address).await.unwrap();
    let start = json!({"type": "start", "files": [{"name": "a.log", "size": log.len()}]});
    old.send(start.to_string()).await.unwrap();
    let ready = awaited(&mut old, "ready").await.unwrap();
    old.send_binary(&log[..5_000]).await.unwrap();
    awaited(&mut old, "ack").await.unwrap();

    let mut id = Some(ready["id"].as_str().unwrap().to_owned());
    let figures = attempt(server.address, log, &mut id).await.unwrap();
    assert_eq!(figures["requests"], 1_000);
    while next(&mut old).await.is_some() {}
}

#[tokio::test]
async fn session_that_is_unknown_or_over_can_not_be_resumed() {
    let server = Server::start_with(&["--set", "logs.resume_s=1"]);
    let (log, _) = made_log(10);
    let mut ws = connect(server.address).await.unwrap();
    let start = json!({"type": "start", "files": [{"name": "a.log", "size": log.len()}]});
    ws.send(start.to_string()).await.unwrap();
    let ready = awaited(&mut ws, "ready").await.unwrap();
    std::thread::spawn(move || drop(ws)).join().unwrap();
    sleep(Duration::from_secs(2)).await;

    let unknown = "0".repeat(32);
    for id in [ready["id"].as_str().unwrap(), &unknown, "x"] {
        let mut ws = connect(server.address).await.unwrap();
        let resume = json!({"type": "resume", "id": id});
        ws.send(resume.to_string()).await.unwrap();
        assert_eq!(next(&mut ws).await.unwrap()["type"], "files");
        assert_eq!(next(&mut ws).await.unwrap()["code"], "unknown_session");
        let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
        assert_eq!(closed.code, 1008);
    }
}

/// Uploads a log without closing the connection; returns it with the `ready` message.
async fn uploaded(server: &Server, log: &[u8]) -> (WebSocket, Value) {
    let mut ws = connect(server.address).await.unwrap();
    let start = json!({"type": "start", "files": [{"name": "a.log", "size": log.len()}]});
    ws.send(start.to_string()).await.unwrap();
    let ready = awaited(&mut ws, "ready").await.unwrap();
    ws.send_binary(log).await.unwrap();
    ws.send(r#"{"type":"finish"}"#).await.unwrap();
    awaited(&mut ws, "snapshot").await.unwrap();
    (ws, ready)
}

/// Asks to view an upload; returns the connection after the server's first message.
async fn view(server: &Server, name: &Value) -> WebSocket {
    let mut ws = connect(server.address).await.unwrap();
    assert_eq!(next(&mut ws).await.unwrap()["type"], "files");
    let view = json!({"type": "view", "name": name});
    ws.send(view.to_string()).await.unwrap();
    ws
}

#[tokio::test]
async fn upload_is_viewed_by_several_and_after_its_page_was_left() {
    let server = Server::start();
    let (log, _) = made_log(1_000);
    let (mut page, ready) = uploaded(&server, log.as_bytes()).await;
    let (mut one, mut other) = (
        view(&server, &ready["view"]).await,
        view(&server, &ready["view"]).await,
    );
    for viewer in [&mut one, &mut other] {
        let ready = awaited(viewer, "ready").await.unwrap();
        assert_eq!(ready["files"][0]["size"], log.len());
        let figures = awaited(viewer, "snapshot").await.unwrap();
        assert_eq!(figures["summary"]["requests"], 1_000);
    }
    // A page that is left closes its connection with 1001.
    page.close(CloseCode::GOING_AWAY, "").await.unwrap();
    let query = json!({"type": "query", "seq": 1, "query": {"filters": ["status == 999"]}});
    one.send(query.to_string()).await.unwrap();
    let none = awaited(&mut one, "figures").await.unwrap();
    assert_eq!(none["summary"]["requests"], 0);
    for mut viewer in [one, other] {
        viewer.close(CloseCode::NORMAL, "").await.unwrap();
    }

    let mut late = view(&server, &ready["view"]).await;
    let figures = awaited(&mut late, "snapshot").await.unwrap();
    assert_eq!(figures["summary"]["requests"], 1_000);
    let mut owner = connect(server.address).await.unwrap();
    let resume = json!({"type": "resume", "id": ready["id"]});
    owner.send(resume.to_string()).await.unwrap();
    awaited(&mut owner, "snapshot").await.unwrap();
    owner.send(r#"{"type":"cancel"}"#).await.unwrap();
    loop {
        let told = next(&mut late).await.unwrap();
        if told["type"] == "error" {
            assert_eq!(told["code"], "unknown_session");
            break;
        }
    }
}

#[tokio::test]
async fn all_names_that_cannot_be_viewed_get_the_same_answer() {
    let server = Server::start_with(&["--set", "logs.resume_s=0"]);
    let (log, _) = made_log(10);
    let (mut page, ready) = uploaded(&server, log.as_bytes()).await;
    let mut answers = Vec::new();
    for name in [
        &ready["id"],
        &json!("0".repeat(32)),
        &json!(""),
        &json!("../a"),
    ] {
        let mut ws = view(&server, name).await;
        answers.push(next(&mut ws).await.unwrap());
        assert_eq!(ws.close(CloseCode::NORMAL, "").await.unwrap().code, 1008);
    }
    page.close(CloseCode::GOING_AWAY, "").await.unwrap();
    let mut ws = view(&server, &ready["view"]).await;
    answers.push(next(&mut ws).await.unwrap());
    assert_eq!(answers[0]["code"], "unknown_session");
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
}

#[tokio::test]
async fn upload_has_a_limited_number_of_viewers() {
    let server = Server::start_with(&["--set", "logs.viewers_max=1"]);
    let (log, _) = made_log(10);
    let (_page, ready) = uploaded(&server, log.as_bytes()).await;
    let mut one = view(&server, &ready["view"]).await;
    awaited(&mut one, "ready").await.unwrap();
    let mut more = view(&server, &ready["view"]).await;
    assert_eq!(next(&mut more).await.unwrap()["code"], "busy");
    assert_eq!(more.close(CloseCode::NORMAL, "").await.unwrap().code, 1013);
}
