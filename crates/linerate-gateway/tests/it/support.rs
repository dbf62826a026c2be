//! A gateway with one worker, and clients for its protocols.

use std::{net::SocketAddr, sync::Arc, thread, time::Duration};

use futures_util::FutureExt;
use linerate::{
    Client, CloseCode, Message, WebSocket,
    tls::{
        provider,
        rustls::{
            ClientConfig, RootCertStore, SupportedProtocolVersion, pki_types::CertificateDer,
        },
    },
};
use linerate_broker::{BrokerOptions, Event, Gap, GapReason, Ingest, connect};
use linerate_gateway::{
    NodeInfo, Running,
    config::{Config, Loader, Secret},
};
use linerate_hub::ChannelName;
use linerate_testkit::PATIENCE;
use serde_json::Value;
use tokio::{net::TcpStream, time::sleep};

use crate::http::request;

/// The secret with which the tokens in tests are signed.
pub(crate) const SECRET: &str = "a secret for tests only";

/// The key for the server API of gateways that require tokens.
pub(crate) const API_KEY: &str = "a key for tests only";

/// A gateway that runs until it is dropped.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    /// `None` once it was shut down.
    running: Option<Running>,
    ingest: Arc<dyn Ingest>,
    /// The certificate for `localhost`; `None` without TLS.
    certificate: Option<CertificateDer<'static>>,
}

impl Gateway {
    /// Starts an open gateway with additional settings.
    pub(crate) async fn open(toml: &str) -> Self {
        Self::start(config(toml)).await
    }

    /// Starts a gateway that requires tokens, with additional settings.
    pub(crate) async fn guarded(toml: &str) -> Self {
        let token = format!("[auth.token]\nhmac_secret_key = \"{SECRET}\"\n{toml}");
        let mut config = config(&token);
        config.auth.api_key = Some(Secret::new(API_KEY));
        Self::start(config).await
    }

    pub(crate) async fn start(config: Config) -> Self {
        Self::start_on("memory:", config)
    }

    /// Starts a gateway that shares the broker with this URL with others.
    pub(crate) fn start_on(broker: &str, mut config: Config) -> Self {
        config.server.listen = ([127, 0, 0, 1], 0).into();
        config.server.workers = 1;
        let mut given = None;
        let gateway = linerate_gateway::Gateway::bind_with(config, |ingest| {
            given = Some(ingest.clone());
            connect(broker, BrokerOptions::default(), ingest)
        });
        let gateway = gateway.unwrap();
        Self {
            address: gateway.address(),
            running: Some(gateway.start().unwrap()),
            ingest: given.unwrap(),
            certificate: None,
        }
    }

    /// Starts an open gateway over TLS with additional settings.
    pub(crate) async fn encrypted(toml: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|it| directory.path().join(it));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let tls = format!("{toml}\n[server.tls]\ncertificate = {certificate:?}\nkey = {key:?}");
        let mut gateway = Self::start(config(&tls)).await;
        gateway.certificate = Some(made.cert.der().clone());
        gateway
    }

    /// Returns what the node says about itself.
    pub(crate) fn info(&self) -> NodeInfo {
        self.running().info()
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    /// Ends the gateway in the ordinary way.
    pub(crate) async fn shut_down(mut self) {
        let running = self.running.take().unwrap();
        running.shut_down().await.unwrap();
    }

    /// Disconnects all clients, and ends the gateway.
    pub(crate) async fn drain(mut self) {
        let running = self.running.take().unwrap();
        running.drain().await;
        running.shut_down().await.unwrap();
    }

    /// Applies a changed configuration.
    pub(crate) fn reload(&self, config: Config) {
        self.running().reload(config).unwrap();
    }

    /// Calls a method of the server API and returns its result.
    pub(crate) async fn api(&self, method: &str, body: &Value) -> Value {
        let target = format!("POST /api/{method}");
        let key = format!("X-API-Key: {API_KEY}\r\n");
        let answer = request(self.address, &target, &key, body.to_string().as_bytes()).await;
        let reply: Value = serde_json::from_str(&answer.text().await).unwrap();
        assert!(reply["error"].is_null(), "{method}: {reply}");
        reply["result"].clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.certificate.is_some() {
            "wss"
        } else {
            "ws"
        };
        format!("{scheme}://{}{path}", self.address)
    }

    /// Returns a request for a WebSocket.
    pub(crate) fn request(&self, path: &str, subprotocol: Option<&str>) -> Vec<u8> {
        let subprotocol = subprotocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n"));
        format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{}\r\n",
            self.address,
            subprotocol.unwrap_or_default(),
        )
        .into_bytes()
    }

    /// Returns a configuration for clients that trust the certificate and speak this version.
    pub(crate) fn client_config(&self, version: &'static SupportedProtocolVersion) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone().unwrap()).unwrap();
        ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// Publishes in the way that an application does.
    pub(crate) async fn publish(&self, channel: &str, payload: &str) {
        self.publish_bytes(channel, payload.as_bytes()).await;
    }

    /// Sends the node the event that a broker sends when an interrupted link is up again.
    pub(crate) async fn cut_link(&self) {
        let gap = Gap {
            channels: None,
            lasted: Duration::from_secs(2),
            reason: GapReason::LinkLost,
        };
        self.ingest.ingest(vec![Event::Gap(gap)]).await;
    }

    /// Opens a raw WebSocket.
    pub(crate) async fn raw(&self, client: &Client, query: &str) -> WebSocket {
        let url = self.url(&format!("/raw?{query}"));
        client.connect(&url).await.unwrap()
    }

    /// Returns the value of a metric of the source `shop`.
    pub(crate) async fn source_metric(&self, name: &str) -> Option<String> {
        let answer = request(self.address, "GET /metrics", "", b"").await;
        let line = format!("linerate_source_{name}{{source=\"shop\"}} ");
        let text = answer.text().await;
        let found = text.lines().find_map(|it| it.strip_prefix(&line));
        found.map(str::to_owned)
    }

    /// Waits until a metric of the source `shop` has this value.
    pub(crate) async fn wait_for_source(&self, name: &str, value: &str) {
        in_time(async {
            while self.source_metric(name).await.as_deref() != Some(value) {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    pub(crate) async fn publish_bytes(&self, channel: &str, payload: &[u8]) {
        let channel = ChannelName::new(channel).unwrap();
        let published = self.running().publish(&channel, payload.to_vec()).await;
        published.unwrap();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let Some(running) = &self.running else {
            return;
        };
        let has_failed = running.failed().now_or_never().is_some();
        assert!(thread::panicking() || !has_failed, "the worker ended");
    }
}

pub(crate) fn config(toml: &str) -> Config {
    Loader::new().with_text("test.toml", toml).load().unwrap()
}

/// Fails a test that waits too long.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("in time")
}

/// A Centrifuge client that speaks JSON over a WebSocket.
pub(crate) struct Json {
    pub(crate) ws: WebSocket,
    lines: std::collections::VecDeque<Value>,
}

impl Json {
    pub(crate) async fn open(gateway: &Gateway) -> Self {
        Self::open_as(gateway, &Client::new()).await
    }

    pub(crate) async fn open_as(gateway: &Gateway, client: &Client) -> Self {
        let url = gateway.url("/connection/websocket");
        Self::on(client.connect(&url).await.unwrap())
    }

    /// Opens a connection over a socket that is connected to the gateway.
    pub(crate) async fn open_over(gateway: &Gateway, client: &Client, socket: TcpStream) -> Self {
        let url = gateway.url("/connection/websocket");
        Self::on(client.connect_over(socket, &url).await.unwrap())
    }

    fn on(ws: WebSocket) -> Self {
        Self {
            ws,
            lines: Default::default(),
        }
    }

    /// Opens a connection and connects.
    pub(crate) async fn connect(gateway: &Gateway) -> Self {
        let mut client = Self::open(gateway).await;
        let reply = client.ask(r#"{"id":1,"connect":{}}"#).await;
        assert!(reply["connect"]["client"].is_string(), "{reply}");
        client
    }

    /// Opens a connection and connects with a token.
    pub(crate) async fn connect_with(gateway: &Gateway, token: &str) -> Self {
        let mut client = Self::open(gateway).await;
        let command = format!(r#"{{"id":1,"connect":{{"token":"{token}"}}}}"#);
        let reply = client.ask(&command).await;
        assert!(reply["connect"]["client"].is_string(), "{reply}");
        client
    }

    pub(crate) async fn send(&mut self, command: &str) {
        self.ws.send(command).await.unwrap();
    }

    /// Sends a command and returns the next line, which is its reply.
    pub(crate) async fn ask(&mut self, command: &str) -> Value {
        self.send(command).await;
        self.next().await
    }

    /// Returns the next line, and answers pings.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return line;
            }
            let message = in_time(self.ws.recv()).await.unwrap();
            let message = message.unwrap_or_else(|| panic!("closed: {:?}", self.ws.closed()));
            for line in message.as_text().unwrap().lines() {
                match serde_json::from_str(line).unwrap() {
                    Value::Object(empty) if empty.is_empty() => self.send("{}").await,
                    line => self.lines.push_back(line),
                }
            }
        }
    }

    /// Returns the next reply to a command, and skips pushes.
    pub(crate) async fn next_reply(&mut self) -> Value {
        loop {
            let line = self.next().await;
            if line["push"].is_null() {
                return line;
            }
        }
    }

    /// Subscribes and returns the reply.
    pub(crate) async fn subscribe(&mut self, channel: &str) -> Value {
        let command = format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#);
        let reply = self.ask(&command).await;
        assert!(reply["subscribe"].is_object(), "{reply}");
        reply
    }

    /// Asserts that the server closes with this code, and returns the reason.
    pub(crate) async fn closed(&mut self, code: u16) -> String {
        closed(&mut self.ws, code).await
    }
}

/// Asserts that the server closes with this code, and returns the reason.
pub(crate) async fn closed(ws: &mut WebSocket, code: u16) -> String {
    while let Some(message) = in_time(ws.recv()).await.unwrap() {
        let text = message.as_text().unwrap_or("binary");
        assert!(text == "{}" || text.contains("\"push\""), "{text}");
    }
    in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
    let closed = ws.closed().unwrap();
    assert_eq!(closed.code, code, "{}", closed.reason());
    closed.reason().to_owned()
}

/// Returns the code and the message of the error in a reply.
pub(crate) fn error(reply: &Value) -> (u64, &str) {
    let code = reply["error"]["code"].as_u64().unwrap_or_default();
    (code, reply["error"]["message"].as_str().unwrap_or_default())
}

/// Creates a token with these claims.
pub(crate) fn token(claims: &Value) -> String {
    signed(&claims.to_string())
}

/// Signs claims that need not be valid JSON.
pub(crate) fn signed(claims: &str) -> String {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
    use ring::hmac;
    let head = BASE64.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let message = format!("{head}.{}", BASE64.encode(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = BASE64.encode(hmac::sign(&key, message.as_bytes()));
    format!("{message}.{signature}")
}

/// Returns the time `seconds` from now, in seconds since 1970.
pub(crate) fn seconds_from_now(seconds: i64) -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    now.unwrap().as_secs() as i64 + seconds
}

/// Returns the next message of a WebSocket.
pub(crate) async fn message(ws: &mut WebSocket) -> Message {
    in_time(ws.recv()).await.unwrap().expect("a message")
}
