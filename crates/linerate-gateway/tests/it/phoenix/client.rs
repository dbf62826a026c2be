//! A Phoenix client that shows its messages.

use linerate::{Client, CloseCode, WebSocket};
use serde_json::{Value, json};

use crate::support::{Gateway, in_time};

/// The path of a connection without parameters of the application.
pub(super) const PATH: &str = "/socket/websocket?vsn=2.0.0";

/// A connection of a Phoenix client.
pub(super) struct Phoenix {
    pub(super) ws: WebSocket,
}

/// What arrives.
#[derive(Debug, PartialEq)]
pub(super) enum Arrived {
    Binary(Vec<u8>),
    /// The code of the Close frame.
    Closed(u16),
    Json(Value),
}

impl Phoenix {
    pub(super) async fn connect(gateway: &Gateway) -> Self {
        Self::open(gateway, PATH).await
    }

    pub(super) async fn open(gateway: &Gateway, path: &str) -> Self {
        let ws = Client::new().connect(&gateway.url(path)).await.unwrap();
        Self { ws }
    }

    pub(super) async fn send(&mut self, message: Value) {
        self.ws.send(message.to_string()).await.unwrap();
    }

    /// Joins a topic, and returns the response. The reference of the join is `1`.
    pub(super) async fn join(&mut self, topic: &str, payload: Value) -> Value {
        self.send(json!(["1", "1", topic, "phx_join", payload]))
            .await;
        self.response("1", "1", topic).await
    }

    /// Sends an event, and returns the response.
    pub(super) async fn push(&mut self, topic: &str, event: &str, payload: Value) -> Value {
        self.send(json!(["1", "2", topic, event, payload])).await;
        self.response("1", "2", topic).await
    }

    /// Returns the payload of the next message, which answers another.
    pub(super) async fn response(&mut self, join_ref: &str, reference: &str, topic: &str) -> Value {
        let mut answer = self.json().await;
        let payload = answer[4].take();
        let expected = json!([join_ref, reference, topic, "phx_reply", null]);
        assert_eq!(answer, expected, "{payload}");
        payload
    }

    /// Returns what arrives next.
    pub(super) async fn next(&mut self) -> Arrived {
        let Some(message) = in_time(self.ws.recv()).await.unwrap() else {
            in_time(self.ws.close(CloseCode::NORMAL, "")).await.unwrap();
            return Arrived::Closed(self.ws.closed().unwrap().code);
        };
        match message.as_text() {
            Some(text) => Arrived::Json(serde_json::from_str(text).unwrap()),
            None => Arrived::Binary(message.into_bytes()),
        }
    }

    /// Returns the next message.
    pub(super) async fn json(&mut self) -> Value {
        match self.next().await {
            Arrived::Json(message) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Asserts that nothing has arrived before the answer to a heartbeat.
    pub(super) async fn expect_nothing(&mut self) {
        self.send(json!([null, "9", "phoenix", "heartbeat", {}]))
            .await;
        let expected = json!([null, "9", "phoenix", "phx_reply", ok(json!({}))]);
        assert_eq!(self.json().await, expected);
    }

    /// Asserts that the server closes with this code, and returns the reason.
    pub(super) async fn closed(mut self, code: u16) -> String {
        assert_eq!(self.next().await, Arrived::Closed(code));
        self.ws.closed().unwrap().reason().to_owned()
    }
}

/// Returns the payload of a successful answer.
pub(super) fn ok(response: Value) -> Value {
    json!({"status": "ok", "response": response})
}

/// Returns the payload of an answer that reports an error.
pub(super) fn error(code: u32, reason: &str) -> Value {
    json!({"status": "error", "response": {"code": code, "reason": reason}})
}
