//! A client that sends the messages of the protocol one by one.

use std::{net::SocketAddr, time::Duration};

use linerate::{CloseCode, Message, Server, WebSocket};
use linerate_files::{Limits, Store, Uploads};
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::timeout};

/// A test fails if nothing happens for this time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a server for uploads; it runs as long as the test.
pub(crate) async fn serve<S: Store>(store: S, limits: Limits) -> (Uploads<S>, SocketAddr) {
    let uploads = Uploads::new(store, limits);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shared = uploads.clone();
    let handler = move |incoming| {
        let uploads = shared.clone();
        async move { uploads.accept(incoming).await }
    };
    tokio::spawn(Server::new().serve_incoming(listener, handler, std::future::pending()));
    (uploads, address)
}

pub(crate) struct Client(WebSocket);

impl Client {
    /// Connects, and receives `hello`.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let url = format!("ws://{address}/");
        let client = linerate::Client::new().with_subprotocol("linerate.upload.v1");
        let mut client = Self(client.connect(&url).await.unwrap());
        assert_eq!(client.hear().await["type"], "hello");
        client
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.0.send(message.to_string()).await.unwrap();
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.0.send(bytes).await.unwrap();
    }

    pub(crate) async fn say_text(&mut self, text: &str) {
        self.0.send(text).await.unwrap();
    }

    /// Receives the next message.
    pub(crate) async fn hear(&mut self) -> Value {
        let message = timeout(PATIENCE, self.0.recv()).await.unwrap();
        match message.unwrap() {
            Some(Message::Text(text)) => serde_json::from_str(&text).unwrap(),
            other => panic!("not a text message: {other:?}"),
        }
    }

    /// Receives messages until one has this type and number.
    pub(crate) async fn expect(&mut self, kind: &str, upload: u64) -> Value {
        loop {
            let message = self.hear().await;
            if message["type"] == kind && message["upload"] == upload {
                return message;
            }
            assert_ne!(message["type"], "error", "{message}");
        }
    }

    /// Receives messages until one is an error, and returns its code.
    pub(crate) async fn expect_error(&mut self) -> String {
        loop {
            let message = self.hear().await;
            if message["type"] == "error" {
                assert!(message["message"].as_str().unwrap().ends_with('.'));
                return message["code"].as_str().unwrap().to_owned();
            }
        }
    }

    /// Waits until the server closes the connection; returns the code.
    pub(crate) async fn expect_close(&mut self) -> u16 {
        while let Ok(Some(_)) = timeout(PATIENCE, self.0.recv()).await.unwrap() {}
        self.0.closed().unwrap().code
    }

    /// Starts an upload; returns its identifier.
    pub(crate) async fn start(&mut self, upload: u64, name: &str, size: usize) -> String {
        self.say(json!({"type": "start", "upload": upload, "name": name, "size": size}))
            .await;
        let ready = self.expect("ready", upload).await;
        assert_eq!(ready["offset"], 0);
        ready["id"].as_str().unwrap().to_owned()
    }

    /// Starts an upload with this number or a later one, as soon as the server has noticed that
    /// other connections were closed; returns the number.
    pub(crate) async fn start_patiently(&mut self, mut upload: u64) -> u64 {
        loop {
            self.say(json!({"type": "start", "upload": upload, "name": "a", "size": 8}))
                .await;
            let answer = self.hear().await;
            if answer["type"] == "ready" {
                return upload;
            }
            assert_eq!(answer["code"], "busy");
            upload += 1;
        }
    }

    /// Continues an upload; returns the offset.
    pub(crate) async fn resume(&mut self, upload: u64, id: &str, name: &str, size: usize) -> u64 {
        self.ask_to_resume(upload, id, name, size).await;
        let ready = self.expect("ready", upload).await;
        assert_eq!(ready["id"], id);
        ready["offset"].as_u64().unwrap()
    }

    pub(crate) async fn ask_to_resume(&mut self, upload: u64, id: &str, name: &str, size: usize) {
        let message =
            json!({"type": "resume", "upload": upload, "id": id, "name": name, "size": size});
        self.say(message).await;
    }

    /// Sends bytes of an upload.
    pub(crate) async fn data(&mut self, upload: u64, offset: u64, bytes: &[u8]) {
        self.say(json!({"type": "data", "upload": upload, "offset": offset}))
            .await;
        self.send(bytes).await;
    }

    /// Loses the connection without a closing handshake.
    pub(crate) fn vanish(self) {
        drop(self.0);
    }

    pub(crate) async fn close(mut self) {
        self.0.close(CloseCode::NORMAL, "").await.unwrap();
    }
}
