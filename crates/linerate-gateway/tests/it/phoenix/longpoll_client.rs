//! A Phoenix client that polls.

use serde_json::{Value, json};

use crate::{
    http::{Answer, request},
    support::{Gateway, in_time},
};

/// The path of a request that opens a session, as the npm package sends it.
pub(super) const PATH: &str = "/socket/longpoll?vsn=2.0.0&";

/// A session of a client that polls.
pub(super) struct LongPoll<'a> {
    gateway: &'a Gateway,
    pub(super) token: String,
}

impl<'a> LongPoll<'a> {
    /// Opens a session.
    pub(super) async fn open(gateway: &'a Gateway) -> Self {
        Self::open_as(gateway, PATH, "").await
    }

    /// Opens a session with a request to this path with these header fields.
    pub(super) async fn open_as(gateway: &'a Gateway, path: &str, headers: &str) -> Self {
        let mut opened = opening(gateway, path, headers).await;
        let token = opened["token"].take();
        let expected = json!({"status": 410, "token": null, "messages": []});
        assert_eq!(opened, expected, "{token}");
        Self {
            gateway,
            token: token.as_str().unwrap().to_owned(),
        }
    }

    /// Opens a session and joins a topic. The reference of the join is `1`.
    pub(super) async fn joined(gateway: &'a Gateway, topic: &str) -> Self {
        let client = Self::open(gateway).await;
        client
            .send(&[json!(["1", "1", topic, "phx_join", {}])])
            .await;
        let reply = json!({"status": "ok", "response": {}});
        client
            .expect(&[json!(["1", "1", topic, "phx_reply", reply])])
            .await;
        client
    }

    /// Returns the target of requests with this method.
    pub(super) fn target(&self, method: &str) -> String {
        format!("{method} /socket/longpoll?vsn=2.0.0&token={}", self.token)
    }

    /// Sends a poll, and returns the response once it begins.
    pub(super) async fn ask(&self) -> Answer {
        request(self.gateway.address, &self.target("GET"), "", b"").await
    }

    /// Polls, and returns the body.
    pub(super) async fn poll(&self) -> Value {
        body(in_time(self.ask()).await).await
    }

    /// Polls, and returns the messages.
    pub(super) async fn messages(&self) -> Vec<Value> {
        let polled = self.poll().await;
        assert_eq!(polled["status"], 200, "{polled}");
        assert_eq!(polled["token"], json!(self.token));
        let messages = polled["messages"].as_array().unwrap().iter();
        messages
            .map(|message| serde_json::from_str(message.as_str().unwrap()).unwrap())
            .collect()
    }

    /// Asserts that these messages arrive next, whatever the number of polls.
    pub(super) async fn expect(&self, expected: &[Value]) {
        let mut found = Vec::new();
        while found.len() < expected.len() {
            found.extend(self.messages().await);
        }
        assert_eq!(found, expected);
    }

    /// Sends a body like the npm package, and returns the response.
    pub(super) async fn post(&self, body: &[u8]) -> Answer {
        let headers = "Content-Type: application/x-ndjson\r\n";
        request(self.gateway.address, &self.target("POST"), headers, body).await
    }

    /// Sends messages, which the server accepts.
    pub(super) async fn send(&self, messages: &[Value]) {
        let lines: Vec<_> = messages.iter().map(Value::to_string).collect();
        self.send_lines(&lines.join("\n")).await;
    }

    /// Sends a body, which the server accepts.
    pub(super) async fn send_lines(&self, lines: &str) {
        let answer = in_time(self.post(lines.as_bytes())).await;
        assert_eq!(body(answer).await, json!({"status": 200}), "{lines}");
    }

    /// Asserts that the session has ended, after all messages that wait. Returns the reason.
    pub(super) async fn ends(&self) -> String {
        let mut polled = self.poll().await;
        while polled["status"] == 200 {
            polled = self.poll().await;
        }
        let reason = polled["reason"].as_str().unwrap().to_owned();
        assert_eq!(polled, json!({"status": 410, "reason": reason}));
        self.is_unknown().await;
        reason
    }

    /// Asserts that the session does not exist.
    pub(super) async fn is_unknown(&self) {
        assert_eq!(self.poll().await, unknown());
        assert_eq!(body(self.post(b"[]").await).await, unknown());
    }
}

/// Requests a session, and returns the body of the response.
pub(super) async fn opening(gateway: &Gateway, path: &str, headers: &str) -> Value {
    let target = format!("GET {path}");
    body(request(gateway.address, &target, headers, b"").await).await
}

/// Returns the body of a response with the status that those of Phoenix have.
pub(super) async fn body(answer: Answer) -> Value {
    let status = answer.status;
    let text = answer.text().await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns the response to a request for a session that does not exist.
pub(super) fn unknown() -> Value {
    json!({"status": 410, "reason": "session is unknown, or its node is unavailable"})
}
