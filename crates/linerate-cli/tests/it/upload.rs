//! Tests of `/logs/upload` over the network.

use std::time::Duration;

use linerate::{CloseCode, MessageKind, WebSocket};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::support::{PATIENCE, Server, close_code, made_log};

async fn next(ws: &mut WebSocket) -> Option<Value> {
    let message = timeout(PATIENCE, ws.recv())
        .await
        .expect("a reply in time")
        .unwrap()?;
    Some(serde_json::from_str(message.as_text().expect("text")).unwrap())
}

async fn start(ws: &mut WebSocket, size: usize) {
    assert_eq!(next(ws).await.expect("a reply")["type"], "files");
    let files = [json!({"name": "access.log", "size": size})];
    let start = json!({"type": "start", "files": files});
    ws.send(start.to_string()).await.unwrap();
    assert_eq!(next(ws).await.expect("a reply")["type"], "ready");
}

/// Finishes the upload, and reads up to the final snapshot.
async fn finish(ws: &mut WebSocket) -> Value {
    ws.send(r#"{"type":"finish"}"#).await.unwrap();
    loop {
        let reply = next(ws).await.expect("a reply");
        if reply["type"] == "snapshot" && reply["final"] == true {
            return reply;
        }
    }
}

/// Reads until the connection is closed; returns the last reply and the close code.
async fn last_reply(ws: &mut WebSocket) -> (Value, u16) {
    let mut last = Value::Null;
    while let Some(reply) = next(ws).await {
        last = reply;
    }
    (last, close_code(ws).await)
}

#[tokio::test]
async fn an_uploaded_log_comes_back_as_figures() {
    let server = Server::start();
    let (log, bytes_sent) = made_log(50_000);
    for message_bytes in [1_000, 300_000, usize::MAX] {
        let mut ws = server.connect_upload().await;
        assert_eq!(ws.subprotocol().as_deref(), Some("linerate.logs.v1"));
        start(&mut ws, log.len()).await;
        for message in log.as_bytes().chunks(message_bytes) {
            ws.send_binary(message).await.unwrap();
        }
        let figures = finish(&mut ws).await;
        let summary = &figures["summary"];
        assert_eq!(
            (&summary["requests"], &summary["unparsed"]),
            (&50_000.into(), &1.into())
        );
        assert_eq!(summary["bytes_sent"], bytes_sent);
        assert_eq!(summary["unique_addresses"], 64);
        assert_eq!(summary["statuses"], json!({"200": 44_444, "404": 5_556}));
        let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
        assert_eq!(closed.code, 1000);
    }
}

#[tokio::test]
async fn figures_and_acknowledgements_come_while_a_message_is_still_being_sent() {
    let server = Server::start();
    let (log, _) = made_log(20_000);
    let mut ws = server.connect_upload().await;
    start(&mut ws, log.len() * 2).await;
    let (sender, mut receiver) = {
        let mut writer = ws.writer(MessageKind::Binary);
        writer.write(log.as_bytes()).await.unwrap();
        // The message is not finished yet, and dropping its writer would close the connection.
        std::mem::forget(writer);
        ws.split()
    };
    // 1.6 MB cause more than one acknowledgement.
    let mut awaited = vec!["ack", "snapshot"];
    while !awaited.is_empty() {
        let message = timeout(PATIENCE, receiver.recv())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let reply: Value = serde_json::from_str(message.as_text().unwrap()).unwrap();
        awaited.retain(|kind| reply["type"] != *kind);
    }
    drop(sender);
}

#[tokio::test]
async fn what_is_no_log_is_refused_with_a_reason() {
    let server = Server::start();
    let mut ws = server.connect_upload().await;
    let text = "dear diary\n".repeat(200_000);
    start(&mut ws, text.len()).await;
    ws.send_binary(text.as_bytes()).await.unwrap();
    let (last, code) = last_reply(&mut ws).await;
    assert_eq!(
        (&last["type"], &last["code"]),
        (&"error".into(), &"not_a_log".into())
    );
    assert_eq!(code, 1003);
}

#[tokio::test]
async fn what_is_no_message_of_the_protocol_is_refused() {
    let server = Server::start();
    for text in ["{}", "Spam", &" ".repeat(70_000), &"€".repeat(500_000)] {
        let mut ws = server.connect_upload().await;
        ws.send(text).await.unwrap();
        let (last, code) = last_reply(&mut ws).await;
        assert_eq!(
            (&last["type"], &last["code"]),
            (&"error".into(), &"protocol".into())
        );
        assert_eq!(code, 1008);
    }
}

#[tokio::test]
async fn a_cancelled_upload_is_closed() {
    let server = Server::start();
    let mut ws = server.connect_upload().await;
    start(&mut ws, 1_000_000).await;
    ws.send(r#"{"type":"cancel"}"#).await.unwrap();
    assert_eq!(next(&mut ws).await, None);
    assert_eq!(close_code(&mut ws).await, 1000);
}

#[tokio::test]
async fn without_the_subprotocol_there_is_no_upload() {
    let server = Server::start();
    let error = linerate::connect(&server.url("/logs/upload"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("400"), "{error}");
}

/// Waits until the server counts this number of uploads.
async fn wait_for_uploads(watching: &mut WebSocket, uploads: u64) {
    while next(watching).await.expect("a push")["uploads"] != uploads {}
}

#[tokio::test]
async fn one_upload_too_many_is_told_to_come_again_and_each_end_makes_room() {
    let server = Server::start_with(&["--uploads-max", "1"]);
    let mut watching = server.connect("/counters").await;
    let mut first = server.connect_upload().await;
    start(&mut first, 1_000).await;
    wait_for_uploads(&mut watching, 1).await;

    let mut second = server.connect_upload().await;
    let files = json!({"type": "start", "files": [{"name": "b", "size": 1}]});
    second.send(files.to_string()).await.unwrap();
    let (last, code) = last_reply(&mut second).await;
    assert_eq!(
        (&last["type"], &last["code"]),
        (&"error".into(), &"busy".into())
    );
    assert_eq!(code, 1013);

    // One client leaves with a closing handshake, the other loses its connection.
    first.close(CloseCode::NORMAL, "").await.unwrap();
    wait_for_uploads(&mut watching, 0).await;
    let mut third = server.connect_upload().await;
    start(&mut third, 1_000).await;
    wait_for_uploads(&mut watching, 1).await;
    let runtime = std::thread::spawn(move || drop(third));
    runtime.join().unwrap();
    timeout(PATIENCE, wait_for_uploads(&mut watching, 0))
        .await
        .unwrap();
    // The session is kept for its client, but not at the expense of a client that is connected.
    let mut fourth = server.connect_upload().await;
    start(&mut fourth, 1_000).await;
}

#[tokio::test]
async fn upload_that_stalls_lies_or_is_left_idle_is_told_and_keeps_nothing() {
    let limits = ["--set", "logs.silence_s=1", "--set", "logs.idle_s=1"];
    let server = Server::start_with(&limits);
    let mut watching = server.connect("/counters").await;
    let (log, _) = made_log(10);

    let mut stalling = server.connect_upload().await;
    start(&mut stalling, log.len()).await;
    let mut lying = server.connect_upload().await;
    start(&mut lying, log.len() - 1).await;
    lying.send_binary(log.as_bytes()).await.unwrap();
    let mut idle = server.connect_upload().await;
    start(&mut idle, log.len()).await;
    idle.send_binary(log.as_bytes()).await.unwrap();
    finish(&mut idle).await;

    for (ws, expected) in [
        (&mut stalling, ("stalled", 1008)),
        (&mut lying, ("size_mismatch", 1008)),
        (&mut idle, ("idle", 1000)),
    ] {
        let (last, code) = last_reply(ws).await;
        assert_eq!((last["code"].as_str().unwrap(), code), expected);
    }
    loop {
        let push = next(&mut watching).await.expect("a push");
        if push["uploads"] == 0 {
            assert_eq!(push["uploads_kept"], 0);
            break;
        }
    }
}

#[tokio::test]
async fn keyed_server_takes_no_log_without_the_key_and_takes_it_with_it() {
    let key = ["--set", "auth.admin_key=0123456789-admin-key"];
    let server = Server::start_with(&key);
    for text in [
        r#"{"type":"start","files":[{"name":"a","size":1}]}"#,
        r#"{"type":"key","key":"wrong"}"#,
    ] {
        let mut ws = server.connect_upload().await;
        assert_eq!(next(&mut ws).await.unwrap()["uploads"], "key");
        ws.send(text).await.unwrap();
        let (last, code) = last_reply(&mut ws).await;
        assert_eq!((&last["code"], code), (&"wrong_key".into(), 1008));
    }
    let (log, _) = made_log(100);
    let mut ws = server.connect_upload().await;
    assert_eq!(next(&mut ws).await.unwrap()["uploads"], "key");
    ws.send(r#"{"type":"key","key":"0123456789-admin-key"}"#)
        .await
        .unwrap();
    start(&mut ws, log.len()).await;
    ws.send_binary(log.as_bytes()).await.unwrap();
    assert_eq!(finish(&mut ws).await["summary"]["requests"], 100);
}

#[tokio::test]
async fn address_that_shows_20_wrong_keys_for_logs_has_to_wait_as_at_the_api() {
    let server = Server::start_logging(&["--set", "auth.logs_key=0123456789-logs-key"]);
    let refused = async |key: &str| {
        let mut ws = server.connect_upload().await;
        let shown = json!({"type": "key", "key": key});
        ws.send(shown.to_string()).await.unwrap();
        let (last, code) = last_reply(&mut ws).await;
        (last["code"].as_str().unwrap().to_owned(), code)
    };
    let wrong = futures_util::future::join_all((0..20).map(|_| refused("guess"))).await;
    assert!(wrong.iter().all(|it| *it == ("wrong_key".to_owned(), 1008)));
    for key in ["guess", "0123456789-logs-key"] {
        assert_eq!(refused(key).await, ("keys_limited".to_owned(), 1013));
    }
    let log = server.stop_and_read_log();
    let told = log.lines().filter(|line| line.contains("wrong key"));
    assert!((1..=3).contains(&told.count()), "{log}");
}

#[tokio::test]
async fn keyed_server_without_a_key_for_logs_takes_none() {
    let server = Server::start_with(&["--set", "auth.api_key=0123456789-api-key"]);
    let mut ws = server.connect_upload().await;
    assert_eq!(next(&mut ws).await.unwrap()["uploads"], "closed");
    let (last, code) = last_reply(&mut ws).await;
    assert_eq!((&last["code"], code), (&"closed".into(), 1008));
}

/// Returns lines of about 1 kB each, with incompressible texts and few distinct values.
fn random_lines(bytes: usize) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut seed = 7_u64;
    let mut log = Vec::with_capacity(bytes + 1_100);
    while log.len() < bytes {
        log.extend_from_slice(b"192.0.2.7 - ");
        for _ in 0..1_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            log.push(LETTERS[(seed >> 58) as usize]);
        }
        log.extend_from_slice(b" [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n");
    }
    log
}

#[tokio::test]
async fn upload_that_holds_the_most_gives_way_to_one_that_asks_for_little() {
    let server = Server::start_with(&["--set", "logs.memory_bytes_max=67108864"]);
    let mut large = server.connect_upload().await;
    assert_eq!(next(&mut large).await.unwrap()["type"], "files");
    let files = [json!({"name": "large.log", "size": null})];
    let start_large = json!({"type": "start", "files": files, "rows": true});
    large.send(start_large.to_string()).await.unwrap();
    // Three quarters of this are kept, which leaves too little memory for another upload's turn but
    // enough for this upload's next one.
    let lines = random_lines(41 << 20);
    for message in lines.chunks(1 << 20) {
        large.send_binary(message).await.unwrap();
    }
    loop {
        let reply = next(&mut large).await.unwrap();
        assert_ne!(reply["type"], "error", "{reply}");
        if reply["type"] == "ack" && reply["bytes"] == lines.len() {
            break;
        }
    }
    let (log, _) = made_log(100);
    let mut small = server.connect_upload().await;
    start(&mut small, log.len()).await;
    small.send_binary(log.as_bytes()).await.unwrap();
    assert_eq!(finish(&mut small).await["summary"]["requests"], 100);

    let (last, code) = last_reply(&mut large).await;
    assert_eq!((&last["code"], code), (&"no_memory".into(), 1013));
    let message = last["message"].as_str().unwrap();
    assert!(message.contains("this one held the most"), "{message}");
    let metrics = server.get("/metrics").await;
    let shed = r#"linerate_memory_sheds_total{consumer="uploads"} 1"#;
    assert!(metrics.text().contains(shed), "{}", metrics.text());
}

/// Returns the number of bytes of the memory budget that uploads use.
async fn bytes_of_uploads(server: &Server) -> u64 {
    let metrics = server.get("/metrics").await;
    let metrics = metrics.text();
    let name = r#"linerate_memory_used_bytes{consumer="uploads"} "#;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.expect(name).parse::<f64>().unwrap() as u64
}

#[tokio::test]
async fn many_uploads_stay_within_their_budget_and_give_all_of_it_back() {
    // The count includes what leases reserve in advance: at most 256 KiB each for a session and its
    // lane.
    const BYTES_MAX: u64 = (64 << 20) + 24 * (256 << 10);
    let server = Server::start_with(&[
        "--set",
        "logs.memory_bytes_max=67108864",
        "--set",
        "logs.resume_s=1",
    ]);
    let lines = random_lines(41 << 20);
    let uploads = (0..12).map(async |_| {
        let mut ws = server.connect_upload().await;
        let files = [json!({"name": "a.log", "size": lines.len()})];
        let start = json!({"type": "start", "files": files, "rows": true});
        ws.send(start.to_string()).await.unwrap();
        let (sender, mut receiver) = ws.split();
        let send = async {
            for message in lines.chunks(256 << 10) {
                // The server may have ended this upload.
                if sender.send(message.to_vec()).await.is_err() {
                    return;
                }
            }
            _ = sender.send(r#"{"type":"finish"}"#).await;
        };
        let hear = async {
            loop {
                let message = timeout(PATIENCE, receiver.recv()).await.unwrap().unwrap();
                let message = message.expect("an end is told");
                let reply: Value = serde_json::from_str(message.as_text().unwrap()).unwrap();
                if reply["type"] == "error" {
                    return reply["code"].as_str().unwrap().to_owned();
                }
                if reply["final"] == true {
                    return "done".to_owned();
                }
            }
        };
        let (end, ()) = tokio::join!(hear, send);
        end
    });
    let uploads = futures_util::future::join_all(uploads);
    let watched = async {
        loop {
            let used = bytes_of_uploads(&server).await;
            assert!(used <= BYTES_MAX, "{used}");
            sleep(Duration::from_millis(20)).await;
        }
    };
    let ends = tokio::select! {
        ends = uploads => ends,
        () = watched => Vec::new(),
    };
    assert!(ends.iter().any(|end| end == "no_memory"), "{ends:?}");
    assert!(ends.iter().any(|end| end == "done"), "{ends:?}");
    assert!(
        ends.iter().all(|end| end == "done" || end == "no_memory"),
        "{ends:?}"
    );
    let all_back = async {
        while bytes_of_uploads(&server).await > 0 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, all_back).await.unwrap();
}

#[tokio::test]
async fn uploads_can_be_switched_off() {
    let server = Server::start_with(&["--uploads-max", "0"]);
    let mut ws = server.connect_upload().await;
    assert_eq!(next(&mut ws).await.unwrap()["uploads"], "off");
    ws.send(r#"{"type":"start","files":[{"name":"a","size":1}]}"#)
        .await
        .unwrap();
    let (last, code) = last_reply(&mut ws).await;
    assert_eq!((&last["code"], code), (&"off".into(), 1008));
}
