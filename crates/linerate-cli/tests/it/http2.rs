//! Tests of `linerate serve` and `linerate echo` over HTTP/2, with HTTP/1.1 on the same port.

use std::process::Command;

use bytes::Bytes;
use h2::{
    RecvStream,
    client::{SendRequest, handshake},
};
use http::{Request, Response};
use linerate::{Client, CloseCode, Error, Message, Options, WebSocket, tls};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

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
    assert!(
        matches!(error, Error::StatusUnexpected(response) if response.status == 503),
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

/// An HTTP/2 connection for requests that are not WebSockets.
struct Plain {
    requests: SendRequest<Bytes>,
    authority: String,
}

impl Plain {
    async fn connect(server: &Server) -> Self {
        Self::connect_as(server, b"").await
    }

    /// Connects, and sends `header` before the HTTP/2 preface.
    async fn connect_as(server: &Server, header: &[u8]) -> Self {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(header).await.unwrap();
        let (requests, connection) = handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self {
            requests,
            authority: server.address.to_string(),
        }
    }

    /// Sends a request; returns the response with its streaming body.
    async fn ask(&self, path: &str, body: Option<&'static str>) -> Response<RecvStream> {
        let uri = format!("http://{}{path}", self.authority);
        let request = match body {
            Some(_) => Request::post(uri),
            None => Request::get(uri),
        };
        let request = request.body(()).unwrap();
        let mut requests = self.requests.clone().ready().await.unwrap();
        let (response, mut send) = requests.send_request(request, body.is_none()).unwrap();
        if let Some(body) = body {
            send.send_data(Bytes::from_static(body.as_bytes()), true)
                .unwrap();
        }
        timeout(PATIENCE, response).await.unwrap().unwrap()
    }
}

/// Opens streams; returns those that were accepted, and checks how the others were refused.
async fn open(
    connections: &[Plain],
    count: usize,
    (path, body): (&str, Option<&'static str>),
    refusal: u16,
) -> Vec<Response<RecvStream>> {
    let mut opened = Vec::new();
    for number in 0..count {
        let response = connections[number % connections.len()]
            .ask(path, body)
            .await;
        if response.status() == 200 {
            opened.push(response);
        } else {
            assert_eq!(response.status(), refusal, "{path}");
            assert!(response.headers().contains_key("retry-after"), "{path}");
        }
    }
    opened
}

const CONNECT: &str = r#"{"id":1,"connect":{}}"#;
const STREAMS: [(&str, Option<&str>); 4] = [
    ("/sse?channel=demo:x", None),
    ("/connection/http_stream", Some(CONNECT)),
    ("/connection/sse", Some(CONNECT)),
    (
        "/connection/sse?cf_connect=%7B%22id%22:1,%22connect%22:%7B%7D%7D",
        None,
    ),
];

#[tokio::test]
async fn streams_of_http2_escape_no_limit_and_give_their_places_back() {
    for stream in STREAMS {
        let server = Server::start_with(&["--connections-max", "12"]);
        let connections = [Plain::connect(&server).await, Plain::connect(&server).await];
        let opened = open(&connections, 100, stream, 503).await;
        assert_eq!(opened.len(), 10, "{stream:?}");
        // The existing connections still work, but new ones are refused.
        assert_eq!(connections[0].ask("/", None).await.status(), 200);
        assert_eq!(server.get("/live").await.status, 503);
        drop(opened);
        let free = async { while connections[1].ask(stream.0, stream.1).await.status() != 200 {} };
        timeout(PATIENCE, free)
            .await
            .expect("places are given back");
        drop(connections);
        let free = async { while server.get("/live").await.status != 200 {} };
        timeout(PATIENCE, free)
            .await
            .expect("places are given back");
    }
}

#[tokio::test]
async fn streams_of_http2_count_towards_the_limit_of_an_address() {
    let flags = [
        "--set",
        "server.trusted_proxies=127.0.0.1/32",
        "--set",
        "server.proxy_protocol=true",
        "--set",
        "server.connections_per_address_max=5",
    ];
    let proxy = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\x7f\0\0\x01\x04\xd2\x1f\x90";
    for stream in STREAMS {
        let server = Server::start_with(&flags);
        let connection = [Plain::connect_as(&server, proxy).await];
        let opened = open(&connection, 20, stream, 429).await;
        assert_eq!(opened.len(), 4, "{stream:?}");
        drop(opened);
        let free = async {
            let mut again = Vec::new();
            while again.len() < 4 {
                again.extend(open(&connection, 1, stream, 429).await);
            }
        };
        timeout(PATIENCE, free)
            .await
            .expect("places are given back");
    }
}

#[tokio::test]
async fn streams_of_http2_count_towards_the_limit_of_a_user() {
    let secret = "a secret of tests only";
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["token", "--user", "ann"])
        .env("LINERATE_AUTH_TOKEN_HMAC_SECRET_KEY", secret)
        .output()
        .unwrap();
    let token = String::from_utf8(output.stdout).unwrap();
    let server = Server::start_with(&[
        "--set",
        &format!("auth.token.hmac_secret_key={secret}"),
        "--set",
        "server.connections_per_user_max=3",
        "--set",
        "channel.allow_subscribe=true",
    ]);
    let connection = Plain::connect(&server).await;
    let path = format!("/sse?channel=x&token={}", token.trim());
    let mut opened = Vec::new();
    for _ in 0..10 {
        let response = connection.ask(&path, None).await;
        match response.status().as_u16() {
            200 => opened.push(response),
            status => assert_eq!(status, 429),
        }
    }
    assert_eq!(opened.len(), 3);
}

#[tokio::test]
async fn a_name_that_leads_here_by_dns_rebinding_reaches_no_route_over_http2() {
    let server = Server::start();
    let mut connection = Plain::connect(&server).await;
    let port = server.address.port();
    for (authority, is_ours) in [
        (format!("evil.example:{port}"), false),
        (format!("localhost:{port}"), true),
    ] {
        connection.authority = authority;
        for route in crate::support::routes() {
            let response = connection.ask(&route, None).await;
            let mut body = response.into_body();
            let text = timeout(std::time::Duration::from_secs(2), body.data()).await;
            let text = text.ok().flatten().map(|data| data.unwrap_or_default());
            let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
            let is_refused = text.starts_with("host name is not allowed");
            assert_eq!(is_refused, !is_ours, "{route}: {text}");
        }
    }
}

#[tokio::test]
async fn what_clients_do_over_http2_does_not_fill_the_log() {
    let server = Server::start_logging(&[]);
    for _ in 0..200 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        // SETTINGS, and the acknowledgement of a PING that was never sent.
        stream.write_all(b"\0\0\0\x04\0\0\0\0\0").await.unwrap();
        stream
            .write_all(b"\0\0\x08\x06\x01\0\0\0\x0012345678")
            .await
            .unwrap();
        // Once the server answers the PING that follows, it has processed everything before it.
        stream
            .write_all(b"\0\0\x08\x06\0\0\0\0\0abcdefgh")
            .await
            .unwrap();
        let mut answer = Vec::new();
        while !answer.windows(8).any(|bytes| bytes == b"abcdefgh") {
            let mut bytes = [0; 256];
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut bytes);
            let count = timeout(PATIENCE, read).await.unwrap().unwrap();
            assert_ne!(count, 0);
            answer.extend_from_slice(&bytes[..count]);
        }
    }
    let log = server.stop_and_read_log();
    assert!(log.contains("serving") && !log.contains("WARN"), "{log}");
}
