//! A Socket.IO client that shows its packets.

use linerate::{Client, CloseCode, WebSocket};
use serde_json::Value;

use crate::support::{Gateway, in_time};

/// The path of a connection on a WebSocket.
pub(super) const PATH: &str = "/socket.io/?EIO=4&transport=websocket";

/// A connection of a Socket.IO client.
pub(super) struct SocketIo {
    pub(super) ws: WebSocket,
    /// What the first packet says about the connection.
    pub(super) handshake: Value,
}

/// What arrives.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Arrived {
    Binary(Vec<u8>),
    /// The code of the Close frame.
    Closed(u16),
    Text(String),
}

impl SocketIo {
    /// Opens a connection, and reads its first packet.
    pub(super) async fn open(gateway: &Gateway) -> Self {
        let ws = Client::new().connect(&gateway.url(PATH)).await.unwrap();
        Self::on(ws).await
    }

    async fn on(ws: WebSocket) -> Self {
        let mut client = Self {
            ws,
            handshake: Value::Null,
        };
        let open = client.text().await;
        let (kind, handshake) = open.split_at(1);
        assert_eq!(kind, "0", "{open}");
        client.handshake = serde_json::from_str(handshake).unwrap();
        client
    }

    /// Opens a connection with compression, and connects to the main namespace.
    pub(super) async fn connect_compressed(gateway: &Gateway) -> Self {
        let mut options = linerate::Options::default();
        options.deflate = Some(linerate::Deflate::default());
        let client = Client::new().with_options(options);
        let mut client = Self::on(client.connect(&gateway.url(PATH)).await.unwrap()).await;
        client.send("40").await;
        client.connected("40").await;
        client
    }

    /// Opens a connection, connects to the main namespace, and returns the ID of the client.
    pub(super) async fn connect(gateway: &Gateway) -> (Self, String) {
        let mut client = Self::open(gateway).await;
        client.send("40").await;
        let sid = client.connected("40").await;
        (client, sid)
    }

    pub(super) async fn send(&mut self, packet: &str) {
        self.ws.send(packet).await.unwrap();
    }

    pub(super) async fn attach(&mut self, bytes: &[u8]) {
        self.ws.send(bytes).await.unwrap();
    }

    /// Asserts that the next packet begins like this and names an ID, and returns the ID.
    pub(super) async fn connected(&mut self, start: &str) -> String {
        let packet = self.text().await;
        let json = packet.strip_prefix(start);
        let json = json.unwrap_or_else(|| panic!("{packet}"));
        let connected: Value = serde_json::from_str(json).unwrap();
        connected["sid"].as_str().unwrap().to_owned()
    }

    /// Returns what arrives next, and answers pings.
    pub(super) async fn next(&mut self) -> Arrived {
        loop {
            let Some(message) = in_time(self.ws.recv()).await.unwrap() else {
                in_time(self.ws.close(CloseCode::NORMAL, "")).await.unwrap();
                return Arrived::Closed(self.ws.closed().unwrap().code);
            };
            match message.as_text() {
                Some("2") => self.send("3").await,
                Some(text) => return Arrived::Text(text.to_owned()),
                None => return Arrived::Binary(message.into_bytes()),
            }
        }
    }

    /// Returns the next packet.
    pub(super) async fn text(&mut self) -> String {
        match self.next().await {
            Arrived::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    /// Asserts that these packets arrive next.
    pub(super) async fn expect(&mut self, packets: &[&str]) {
        for packet in packets {
            assert_eq!(self.text().await, *packet);
        }
    }

    /// Asserts that nothing has arrived before the answer to a packet.
    pub(super) async fn expect_nothing(&mut self) {
        self.send("40/unknown,").await;
        let answer = r#"44/unknown,{"message":"Invalid namespace","data":{"code":108}}"#;
        self.expect(&[answer]).await;
    }

    /// Asserts that the server closes with this code, and returns the reason.
    pub(super) async fn closed(mut self, code: u16) -> String {
        assert_eq!(self.next().await, Arrived::Closed(code));
        self.ws.closed().unwrap().reason().to_owned()
    }
}
