//! Tests of `linerate serve --tail` over the network.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use linerate::{CloseCode, WebSocket};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{PATIENCE, Server, made_log};

const LINE: &str =
    "192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /live HTTP/1.1\" 200 5 \"-\" \"-\"\n";

fn append(path: &Path, text: &str) {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

async fn next(ws: &mut WebSocket) -> Option<Value> {
    let message = timeout(PATIENCE, ws.recv()).await.expect("a reply in time");
    let message = message.unwrap()?;
    Some(serde_json::from_str(message.as_text().unwrap()).unwrap())
}

/// Starts to follow a file, and waits until the server confirms it.
async fn follow(server: &Server, name: &str) -> WebSocket {
    let mut ws = server.connect_upload().await;
    let files = next(&mut ws).await.unwrap();
    assert_eq!(
        files,
        json!({"type": "files", "files": ["access.log"], "uploads": "allowed", "kept_s": 600})
    );
    let follow = json!({"type": "follow", "name": name});
    ws.send(follow.to_string()).await.unwrap();
    ws
}

/// Waits for a snapshot with this number of requests.
async fn wait_for_requests(ws: &mut WebSocket, requests: u64) {
    loop {
        let reply = next(ws).await.unwrap();
        if reply["type"] == "snapshot" && reply["summary"]["requests"] == requests {
            assert_eq!(reply["final"], false);
            return;
        }
    }
}

#[tokio::test]
async fn log_is_shown_from_its_beginning_and_then_as_it_grows_and_is_rotated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    append(&path, &made_log(1_000).0);
    let server = Server::start_with(&["--tail", path.to_str().unwrap()]);
    let mut early = follow(&server, "access.log").await;
    assert_eq!(next(&mut early).await.unwrap()["type"], "ready");
    wait_for_requests(&mut early, 1_000).await;

    append(&path, LINE);
    wait_for_requests(&mut early, 1_001).await;
    let mut late = follow(&server, "access.log").await;
    wait_for_requests(&mut late, 1_001).await;

    fs::rename(&path, folder.path().join("access.log.1")).unwrap();
    append(&path, &LINE.repeat(2));
    for ws in [&mut early, &mut late] {
        wait_for_requests(ws, 1_003).await;
    }
    let filters = [r#"path == "/live""#];
    let query = json!({"type": "query", "seq": 5, "query": {"filters": filters}});
    late.send(query.to_string()).await.unwrap();
    let figures = loop {
        let reply = next(&mut late).await.unwrap();
        if reply["type"] != "snapshot" {
            break reply;
        }
    };
    assert_eq!(
        (&figures["type"], &figures["seq"]),
        (&"figures".into(), &5.into())
    );
    assert_eq!(figures["summary"]["requests"], 3);
    late.send(r#"{"type":"cancel"}"#).await.unwrap();
    while next(&mut late).await.is_some() {}
    assert_eq!(late.close(CloseCode::NORMAL, "").await.unwrap().code, 1000);
}

#[tokio::test]
async fn file_of_another_name_can_not_be_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let server = Server::start_with(&["--tail", path.to_str().unwrap()]);
    let mut ws = follow(&server, "../access.log").await;
    assert_eq!(next(&mut ws).await.unwrap()["code"], "unknown_file");
    assert_eq!(ws.close(CloseCode::NORMAL, "").await.unwrap().code, 1008);
}

#[tokio::test]
async fn followed_log_is_shown_to_nobody_without_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    append(&path, LINE);
    let flags = [
        "--tail",
        path.to_str().unwrap(),
        "--set",
        "auth.logs_key=0123456789-logs-key",
    ];
    let server = Server::start_with(&flags);
    let mut ws = server.connect_upload().await;
    let offer = next(&mut ws).await.unwrap();
    assert_eq!(
        offer,
        json!({"type": "files", "files": [], "uploads": "key", "kept_s": 600})
    );
    ws.send(r#"{"type":"follow","name":"access.log"}"#)
        .await
        .unwrap();
    assert_eq!(next(&mut ws).await.unwrap()["code"], "wrong_key");
    assert_eq!(ws.close(CloseCode::NORMAL, "").await.unwrap().code, 1008);

    let mut ws = server.connect_upload().await;
    next(&mut ws).await.unwrap();
    ws.send(r#"{"type":"key","key":"0123456789-logs-key"}"#)
        .await
        .unwrap();
    let offer = next(&mut ws).await.unwrap();
    assert_eq!(offer["files"], json!(["access.log"]));
    ws.send(r#"{"type":"follow","name":"access.log"}"#)
        .await
        .unwrap();
    wait_for_requests(&mut ws, 1).await;
}

#[tokio::test]
async fn figures_of_followed_logs_count_for_the_memory_budget_and_have_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    append(&path, &made_log(20_000).0);
    let flags = [
        "--tail",
        path.to_str().unwrap(),
        "--set",
        "logs.tails_bytes_max=8388608",
    ];
    let server = Server::start_with(&flags);
    let mut ws = follow(&server, "access.log").await;
    wait_for_requests(&mut ws, 20_000).await;
    let metrics = server.get("/metrics").await;
    let metrics = metrics.text();
    let name = r#"linerate_memory_used_bytes{consumer="tails"} "#;
    let used = metrics.lines().find_map(|line| line.strip_prefix(name));
    let used = used.expect(name).parse::<f64>().unwrap() as u64;
    assert!((1 << 20..=9 << 20).contains(&used), "{used}");
}
