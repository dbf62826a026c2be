//! `linerate serve` and `linerate echo` over HTTP/2, beside HTTP/1.1 on the same port.

use linerate::{Client, CloseCode, Error, HandshakeError, Message, Options, WebSocket, tls};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{PATIENCE, Server, close_code, made_log};

fn client() -> Client {
    Client::new().with_http2_prior_knowledge()
}

async fn next(ws: &mut WebSocket) -> Option<Message> {
    let message = timeout(PATIENCE, ws.recv()).await;
    message.expect("a message in time").unwrap()
}

#[tokio::test]
async fn a_channel_reaches_clients_of_both_versions() {
    let server = Server::start();
    let path = "/raw?channel=demo:news";
    let mut new = client().connect(&server.url(path)).await.unwrap();
    let mut old = server.connect(path).await;
    for number in 0..100 {
        let body = json!({"channel": "demo:news", "data": {"number": number}});
        server.api("publish", body).await;
        for ws in [&mut new, &mut old] {
            let message = next(ws).await.expect("a publication");
            let data: Value = serde_json::from_str(message.as_text().unwrap()).unwrap();
            assert_eq!(data["number"], number);
        }
    }
    let closed = new.close(CloseCode::NORMAL, "").await.unwrap();
    assert!(closed.clean);
}

#[tokio::test]
async fn an_uploaded_log_comes_back_as_figures() {
    let server = Server::start();
    let (log, bytes_sent) = made_log(200_000);
    let client = client().with_subprotocol("linerate.logs.v1");
    let mut ws = client.connect(&server.url("/logs/upload")).await.unwrap();
    let files = [json!({"name": "access.log", "size": log.len()})];
    let start = json!({"type": "start", "files": files});
    ws.send(start.to_string()).await.unwrap();
    for message in log.as_bytes().chunks(100_000) {
        ws.send_binary(message).await.unwrap();
    }
    ws.send(r#"{"type":"finish"}"#).await.unwrap();
    let mut last = Value::Null;
    while last["final"] != true {
        let reply = next(&mut ws).await.expect("a reply");
        last = serde_json::from_str(reply.as_text().unwrap()).unwrap();
    }
    let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
    assert_eq!(closed.code, 1000);
    let summary = &last["summary"];
    assert_eq!(summary["requests"], 200_000);
    assert_eq!(summary["bytes_sent"], bytes_sent);
}

#[tokio::test]
async fn each_websocket_takes_a_place_beside_that_of_its_connection() {
    for (connections_max, opens) in [("1", false), ("2", true)] {
        let server = Server::start_with(&["--connections-max", connections_max]);
        let opened = client().connect(&server.url("/echo")).await;
        match opened {
            Ok(mut ws) => {
                ws.send("Spam").await.unwrap();
                assert_eq!(next(&mut ws).await, Some("Spam".into()));
                assert!(opens);
                let refused = Client::new().connect(&server.url("/echo")).await;
                assert_refused(&refused.unwrap_err());
            }
            Err(error) => {
                assert_refused(&error);
                assert!(!opens);
            }
        }
    }
}

fn assert_refused(error: &Error) {
    let refused = HandshakeError::StatusUnexpected { status: 503 };
    assert!(
        matches!(error, Error::Handshake(error) if *error == refused),
        "{error}"
    );
}

#[tokio::test]
async fn a_signal_closes_streams_and_ends_in_order() {
    let mut server = Server::start();
    let mut ws = client().connect(&server.url("/echo")).await.unwrap();
    ws.send("Spam").await.unwrap();
    assert_eq!(next(&mut ws).await, Some("Spam".into()));
    server.signal("-TERM");
    assert_eq!(next(&mut ws).await, None);
    assert_eq!(close_code(&mut ws).await, 1001);
    assert!(server.child.wait().unwrap().success());
}

#[tokio::test]
async fn echo_speaks_http2_by_alpn() {
    let server = Server::start_verb("echo", &["--tls-self-signed"]);
    let url = format!("wss://{}/", server.address);
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 64 << 20;
    let trusting = Client::new().with_options(options);
    let trusting = trusting.with_tls(tls::danger_client_config_trusting_anybody().into());
    for client in [
        trusting.clone().with_http2(),
        trusting.clone().with_http2_prior_knowledge(),
        trusting,
    ] {
        let mut ws = client.connect(&url).await.unwrap();
        let message = Message::from(vec![7; 5 << 20]);
        ws.send(message.clone()).await.unwrap();
        let echoed = next(&mut ws).await;
        assert!(echoed == Some(message));
    }
}
