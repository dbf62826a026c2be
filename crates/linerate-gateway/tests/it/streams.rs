//! Centrifuge without WebSocket: HTTP streams, event streams, and commands in separate requests.

use serde_json::{Value, json};

use crate::{
    http::{Answer, request},
    support::{Gateway, Json, error},
};

/// The two transports, which differ in how they are opened and how messages are framed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    EventStream,
    HttpStream,
}

pub(crate) const KINDS: [Kind; 2] = [Kind::EventStream, Kind::HttpStream];

/// A client with a one-way stream.
pub(crate) struct Client {
    kind: Kind,
    answer: Answer,
    address: std::net::SocketAddr,
    session: Value,
    node: Value,
}

impl Client {
    pub(crate) async fn connect(gateway: &Gateway, kind: Kind) -> Self {
        let address = gateway.address;
        let connect = r#"{"id":1,"connect":{}}"#;
        let answer = match kind {
            Kind::EventStream => {
                let query: String =
                    url::form_urlencoded::byte_serialize(connect.as_bytes()).collect();
                let target = format!("GET /connection/sse?cf_connect={query}");
                request(address, &target, "", b"").await
            }
            Kind::HttpStream => {
                let target = "POST /connection/http_stream";
                let headers = "Content-Type: application/json\r\n";
                request(address, target, headers, connect.as_bytes()).await
            }
        };
        assert_eq!(answer.status, 200);
        let mut client = Self {
            kind,
            answer,
            address,
            session: Value::Null,
            node: Value::Null,
        };
        let reply = client.next().await;
        client.session = reply["connect"]["session"].clone();
        client.node = reply["connect"]["node"].clone();
        assert!(client.session.is_string(), "{reply}");
        client
    }

    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let piece = match self.kind {
                Kind::EventStream => {
                    let event = self.answer.until(b"\n\n").await.unwrap();
                    event.strip_prefix(b"data: ").unwrap().to_vec()
                }
                Kind::HttpStream => self.answer.until(b"\n").await.unwrap(),
            };
            let value: Value = serde_json::from_slice(&piece).unwrap();
            if value != json!({}) {
                return value;
            }
        }
    }

    /// Sends commands in a separate request, and returns the status.
    async fn send(&self, commands: &str) -> u16 {
        let body = json!({"session": self.session, "node": self.node, "data": commands});
        let headers = "Content-Type: application/json\r\n";
        let body = body.to_string();
        let answer = request(self.address, "POST /emulation", headers, body.as_bytes()).await;
        answer.status
    }

    pub(crate) async fn ask(&mut self, commands: &str) -> Value {
        assert_eq!(self.send(commands).await, 204);
        self.next().await
    }
}

#[tokio::test]
async fn commands_beside_a_stream_are_answered_on_it() {
    for kind in KINDS {
        let gateway = Gateway::open("").await;
        let mut client = Client::connect(&gateway, kind).await;
        let reply = client
            .ask(r#"{"id":2,"subscribe":{"channel":"demo:x"}}"#)
            .await;
        assert!(reply["subscribe"].is_object(), "{kind:?}: {reply}");
        gateway.publish("demo:x", r#"{"a":1}"#).await;
        assert_eq!(client.next().await["push"]["pub"]["data"], json!({"a": 1}));
        let publish = r#"{"id":3,"publish":{"channel":"demo:x","data":2}}"#;
        assert_eq!(client.send(publish).await, 204);
        let (one, two) = (client.next().await, client.next().await);
        let is_reply = |value: &Value| value["id"] == 3;
        assert!(is_reply(&one) ^ is_reply(&two), "{kind:?}: {one} {two}");
        let refused = client
            .ask(r#"{"id":4,"subscribe":{"channel":"demo:x"}}"#)
            .await;
        assert_eq!(error(&refused).0, 105);
    }
}

#[tokio::test]
async fn protobuf_is_spoken_on_http_streams() {
    let gateway = Gateway::open("").await;
    let headers = "Content-Type: application/octet-stream\r\n";
    // {"id": 1, "connect": {}}, after its length.
    let connect = b"\x04\x08\x01\x22\x00";
    let mut answer = request(
        gateway.address,
        "POST /connection/http_stream",
        headers,
        connect,
    )
    .await;
    assert_eq!(answer.status, 200);
    assert!(
        answer.head.contains("application/octet-stream"),
        "{}",
        answer.head
    );
    let version = answer.until(b"linerate ").await.unwrap();
    // The reply: its length in one byte, id 1, connect.
    assert_eq!(version[1..4], *b"\x08\x01\x2a");
}

#[tokio::test]
async fn a_client_that_hangs_up_is_gone_at_once() {
    for kind in KINDS {
        let gateway = Gateway::open("").await;
        let mut watcher = Json::connect(&gateway).await;
        watcher
            .ask(r#"{"id":2,"subscribe":{"channel":"demo:x","join_leave":true}}"#)
            .await;
        watcher.next().await;
        let mut client = Client::connect(&gateway, kind).await;
        client
            .ask(r#"{"id":2,"subscribe":{"channel":"demo:x"}}"#)
            .await;
        watcher.next().await;
        let Client { session, node, .. } = &client;
        let late = json!({"session": session, "node": node, "data": "{}"}).to_string();
        drop(client);
        let leave = watcher.next().await;
        assert!(leave["push"]["leave"].is_object(), "{kind:?}: {leave}");
        let answer = request(gateway.address, "POST /emulation", "", late.as_bytes()).await;
        assert_eq!(answer.status, 404, "{kind:?}");
    }
}

#[tokio::test]
async fn the_end_of_a_session_is_told_before_its_stream_ends() {
    for kind in KINDS {
        let gateway = Gateway::open("").await;
        let mut client = Client::connect(&gateway, kind).await;
        assert_eq!(client.send(r#"{"id":2,"connect":{}}"#).await, 204);
        let push = client.next().await;
        assert_eq!(push["push"]["disconnect"]["code"], 3501, "{kind:?}: {push}");
        assert_eq!(client.answer.rest().await, "");
    }
}

#[tokio::test]
async fn requests_that_are_no_commands_are_refused() {
    let gateway = Gateway::open("[client]\nmessage_bytes_max = 200").await;
    let long = vec![b' '; 201];
    for (target, body, status) in [
        ("POST /emulation", &b"{"[..], 400),
        (
            "POST /emulation",
            br#"{"session":"x","node":"y","data":"{}"}"#,
            404,
        ),
        ("POST /emulation", &long, 413),
        ("GET /emulation", b"", 405),
        ("POST /connection/http_stream", &long, 413),
        ("GET /connection/http_stream", b"", 405),
        ("GET /connection/sse", b"", 400),
        ("POST /connection/sse", &long, 413),
    ] {
        let answer = request(gateway.address, target, "", body).await;
        assert_eq!(answer.status, status, "{target}");
    }
    let unknown = json!({"session": "x", "node": gateway.info().id, "data": "{}"}).to_string();
    let answer = request(gateway.address, "POST /emulation", "", unknown.as_bytes()).await;
    assert_eq!(answer.status, 404);
    let long = format!("GET /connection/sse?cf_connect={}", "%20".repeat(201));
    let answer = request(gateway.address, &long, "", b"").await;
    assert_eq!(answer.status, 413);
    assert!(answer.text().await.contains("200"));
}

#[tokio::test]
async fn a_stream_whose_first_command_is_none_ends_with_its_code() {
    let gateway = Gateway::open("").await;
    for body in [&b"no json"[..], b"", b"{\"id\":1,\"ping\":{}}"] {
        let mut answer = request(gateway.address, "POST /connection/http_stream", "", body).await;
        assert_eq!(answer.status, 200);
        let rest = answer.rest().await;
        assert!(rest.contains("\"code\":3501"), "{rest}");
    }
}

#[tokio::test]
async fn pages_of_other_origins_are_refused_and_those_that_are_listed_may_read() {
    let gateway = Gateway::open("[server]\norigins = [\"https://good.com\"]").await;
    for target in [
        "GET /sse?channel=x",
        "GET /connection/sse?cf_connect={}",
        "POST /connection/http_stream",
        "POST /emulation",
        "OPTIONS /emulation",
    ] {
        let evil = "Origin: https://evil.com\r\n";
        let answer = request(gateway.address, target, evil, b"").await;
        assert_eq!(answer.status, 403, "{target}");
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
    let good = "Origin: https://good.com\r\n";
    let answer = request(gateway.address, "OPTIONS /emulation", good, b"").await;
    assert_eq!(answer.status, 204);
    assert!(answer.head.contains(
        "access-control-allow-headers: authorization, content-type, x-phoenix-authtoken"
    ));
    let answer = request(gateway.address, "GET /sse?channel=x", good, b"").await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .head
            .contains("access-control-allow-origin: https://good.com")
    );
}
