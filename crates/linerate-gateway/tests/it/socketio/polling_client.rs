//! A Socket.IO client that polls.

use linerate::{Client, WebSocket};
use serde_json::Value;

use super::client::SocketIo;
use crate::{
    http::{Answer, request},
    support::{Gateway, in_time},
};

/// The query of all requests of a session.
const QUERY: &str = "EIO=4&transport=polling";

/// What separates packets.
pub(super) const SEPARATOR: char = '\u{1e}';

/// A session of a client that polls.
pub(super) struct Polling<'a> {
    gateway: &'a Gateway,
    pub(super) sid: String,
    /// What the first packet says about the session.
    pub(super) handshake: Value,
}

impl<'a> Polling<'a> {
    /// Opens a session.
    pub(super) async fn open(gateway: &'a Gateway) -> Self {
        let target = format!("GET /socket.io/?{QUERY}");
        let answer = request(gateway.address, &target, "", b"").await;
        assert_eq!(answer.status, 200);
        let text = answer.text().await;
        let (kind, handshake) = text.split_at(1);
        assert_eq!(kind, "0", "{text}");
        let handshake: Value = serde_json::from_str(handshake).unwrap();
        Self {
            gateway,
            sid: handshake["sid"].as_str().unwrap().to_owned(),
            handshake,
        }
    }

    /// Opens a session, connects to the main namespace, and returns the ID of the client.
    pub(super) async fn connect(gateway: &'a Gateway) -> (Self, String) {
        let client = Self::open(gateway).await;
        client.send("40").await;
        let connected = client.poll().await;
        let json = connected.strip_prefix("40");
        let json = json.unwrap_or_else(|| panic!("{connected}"));
        let connected: Value = serde_json::from_str(json).unwrap();
        let sid = connected["sid"].as_str().unwrap().to_owned();
        (client, sid)
    }

    /// Returns the target of requests with this method.
    pub(super) fn target(&self, method: &str) -> String {
        format!("{method} /socket.io/?{QUERY}&sid={}", self.sid)
    }

    /// Sends a poll, and returns the response once it begins.
    pub(super) async fn ask(&self) -> Answer {
        request(self.gateway.address, &self.target("GET"), "", b"").await
    }

    /// Sends a body, and returns the response.
    pub(super) async fn post(&self, body: &[u8]) -> Answer {
        request(self.gateway.address, &self.target("POST"), "", body).await
    }

    /// Polls, and returns the body.
    pub(super) async fn poll(&self) -> String {
        let answer = in_time(self.ask()).await;
        let status = answer.status;
        let text = answer.text().await;
        assert_eq!(status, 200, "{text}");
        text
    }

    /// Asserts that these packets arrive next, whatever the number of polls. Answers pings.
    pub(super) async fn expect(&self, packets: &[&str]) {
        let mut found: Vec<String> = Vec::new();
        while found.len() < packets.len() {
            for packet in self.poll().await.split(SEPARATOR) {
                match packet {
                    "2" => self.send("3").await,
                    packet => found.push(packet.to_owned()),
                }
            }
        }
        assert_eq!(found, packets);
    }

    /// Sends packets, which the server accepts.
    pub(super) async fn send(&self, body: &str) {
        let answer = in_time(self.post(body.as_bytes())).await;
        assert_eq!(
            (answer.status, &*answer.text().await),
            (200, "ok"),
            "{body}"
        );
    }

    /// Asserts that the session does not exist.
    pub(super) async fn is_unknown(&self) {
        let answer = in_time(self.ask()).await;
        assert_eq!(answer.status, 400);
        let expected = r#"{"code":1,"message":"Session ID unknown"}"#;
        assert_eq!(answer.text().await, expected);
    }

    /// Opens a WebSocket to continue the session.
    pub(super) async fn websocket(&self) -> linerate::Result<WebSocket> {
        self.websocket_of(&Client::new()).await
    }

    /// Like [`websocket`](Self::websocket), with this client.
    pub(super) async fn websocket_of(&self, client: &Client) -> linerate::Result<WebSocket> {
        let path = format!("/socket.io/?EIO=4&transport=websocket&sid={}", self.sid);
        client.connect(&self.gateway.url(&path)).await
    }
}

/// Publishes numbers from 1 in the room of all clients, and waits until another client has received
/// them.
pub(super) async fn deliver(gateway: &Gateway, count: u32) {
    let (mut other, _) = SocketIo::connect(gateway).await;
    for number in 1..=count {
        gateway.publish("all", &number.to_string()).await;
        other.expect(&[&format!("42[\"message\",{number}]")]).await;
    }
}
