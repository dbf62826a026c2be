//! A Pusher client, and the signatures of its backend.

use linerate::{Client, CloseCode, WebSocket};
use ring::hmac;
use serde_json::{Value, json};

use crate::support::{Gateway, in_time};

pub(super) const KEY: &str = "app-key";
const SECRET: &str = "the secret of the app";

/// A connection of a Pusher client.
pub(crate) struct Pusher {
    ws: WebSocket,
    pub(crate) socket_id: String,
}

/// Returns the signature of a text, in hexadecimal.
pub(super) fn signature(text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, text.as_bytes());
    tag.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns what an endpoint for authorization answers.
pub(super) fn auth(text: &str) -> String {
    format!("{KEY}:{}", signature(text))
}

impl Pusher {
    /// Connects and reads the socket ID.
    pub(crate) async fn connect(gateway: &Gateway) -> Self {
        let path = format!("/app/{KEY}?protocol=7&client=js&version=8.4.0");
        Self::on(open(gateway, &path).await).await
    }

    /// Connects with compression.
    pub(super) async fn connect_compressed(gateway: &Gateway) -> Self {
        let mut options = linerate::Options::default();
        options.deflate = Some(linerate::Deflate::default());
        let url = gateway.url(&format!("/app/{KEY}?protocol=7"));
        Self::on(
            Client::new()
                .with_options(options)
                .connect(&url)
                .await
                .unwrap(),
        )
        .await
    }

    async fn on(ws: WebSocket) -> Self {
        let mut client = Self {
            ws,
            socket_id: String::new(),
        };
        let established = client.next().await;
        assert_eq!(established["event"], "pusher:connection_established");
        let data = data(&established);
        assert_eq!(data["activity_timeout"], 120);
        client.socket_id = data["socket_id"].as_str().unwrap().to_owned();
        client
    }

    pub(super) async fn send(&mut self, message: &Value) {
        self.ws.send(message.to_string()).await.unwrap();
    }

    /// Returns the next message, and answers pings.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let message = in_time(self.ws.recv()).await.unwrap();
            let message = message.unwrap_or_else(|| panic!("closed: {:?}", self.ws.closed()));
            let message: Value = serde_json::from_str(message.as_text().unwrap()).unwrap();
            if message["event"] != "pusher:ping" {
                return message;
            }
            self.send(&json!({"event": "pusher:pong", "data": {}}))
                .await;
        }
    }

    /// Asserts that nothing has arrived before the answer to a ping.
    pub(super) async fn expect_nothing(&mut self) {
        self.send(&json!({"event": "pusher:ping", "data": {}}))
            .await;
        assert_eq!(self.next().await["event"], "pusher:pong");
    }

    /// Requests a subscription.
    pub(super) async fn ask(&mut self, channel: &str, auth: &str, channel_data: Option<&str>) {
        let mut data = json!({"channel": channel, "auth": auth});
        if let Some(channel_data) = channel_data {
            data["channel_data"] = channel_data.into();
        }
        self.send(&json!({"event": "pusher:subscribe", "data": data}))
            .await;
    }

    /// Subscribes to a channel that is not a presence channel.
    pub(crate) async fn subscribe(&mut self, channel: &str) {
        let text = format!("{}:{channel}", self.socket_id);
        self.ask(channel, &auth(&text), None).await;
        let succeeded = self.next().await;
        let expected = json!({
            "event": "pusher_internal:subscription_succeeded", "channel": channel, "data": "{}",
        });
        assert_eq!(succeeded, expected);
    }

    /// Requests a subscription to a presence channel.
    pub(super) async fn ask_as(&mut self, channel: &str, channel_data: &str) {
        let text = format!("{}:{channel}:{channel_data}", self.socket_id);
        self.ask(channel, &auth(&text), Some(channel_data)).await;
    }

    /// Subscribes to a presence channel as a user, and returns who is in it.
    pub(crate) async fn join(&mut self, channel: &str, user: &str) -> Value {
        let channel_data = json!({"user_id": user, "user_info": {"name": user}});
        self.ask_as(channel, &channel_data.to_string()).await;
        let succeeded = self.next().await;
        assert_eq!(
            succeeded["event"], "pusher_internal:subscription_succeeded",
            "{succeeded}"
        );
        data(&succeeded)["presence"].clone()
    }

    pub(super) async fn unsubscribe(&mut self, channel: &str) {
        let data = json!({"channel": channel});
        self.send(&json!({"event": "pusher:unsubscribe", "data": data}))
            .await;
    }

    /// Sends a client event.
    pub(crate) async fn trigger(&mut self, channel: &str, event: &str, data: Value) {
        self.send(&json!({"event": event, "channel": channel, "data": data}))
            .await;
    }

    /// Asserts that the next message is an event in a channel, and returns its data.
    pub(crate) async fn event(&mut self, channel: &str, event: &str) -> Value {
        let message = self.next().await;
        assert_eq!(
            (&message["channel"], &message["event"]),
            (&json!(channel), &json!(event))
        );
        data(&message)
    }

    /// Asserts that the next message is an error with this code.
    pub(super) async fn error(&mut self, code: Option<u16>) {
        let message = self.next().await;
        assert_eq!(message["event"], "pusher:error", "{message}");
        assert_eq!(message["data"]["code"], json!(code), "{message}");
    }

    /// Asserts that the next message is the error of a subscription with this status.
    pub(super) async fn subscription_error(&mut self, channel: &str, status: u16) {
        let message = self.next().await;
        assert_eq!(message["event"], "pusher:subscription_error", "{message}");
        assert_eq!(message["channel"], channel);
        assert_eq!(message["data"]["status"], status, "{message}");
    }

    /// Returns the next message, or the code with which the server closes.
    pub(super) async fn next_or_code(&mut self) -> Result<Value, u16> {
        match in_time(self.ws.recv()).await.unwrap() {
            Some(message) => Ok(serde_json::from_str(message.as_text().unwrap()).unwrap()),
            None => Err(self.ws.closed().unwrap().code),
        }
    }

    /// Asserts that the server closes with this code.
    pub(super) async fn closed(mut self, code: u16) {
        closed(&mut self.ws, code).await;
    }
}

pub(super) async fn open(gateway: &Gateway, path: &str) -> WebSocket {
    Client::new().connect(&gateway.url(path)).await.unwrap()
}

/// Asserts that the server closes with this code and sends nothing before.
pub(super) async fn closed(ws: &mut WebSocket, code: u16) {
    let message = in_time(ws.recv()).await.unwrap();
    assert!(message.is_none(), "{message:?}");
    in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
    let closed = ws.closed().unwrap();
    assert_eq!(closed.code, code, "{}", closed.reason());
}

/// Returns the data of a message, which is a string that contains JSON.
pub(super) fn data(message: &Value) -> Value {
    let text = message["data"]
        .as_str()
        .unwrap_or_else(|| panic!("{message}"));
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
