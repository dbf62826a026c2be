//! A client that decides which bytes of its records are sent when.

use std::{collections::VecDeque, io, sync::Arc};

use linerate::tls::rustls::{
    self, AlertDescription, ClientConfig, ClientConnection, HandshakeKind, pki_types::ServerName,
};
use linerate_proto::Header;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Gateway, in_time};

/// The client's end of a TLS connection.
pub(super) struct Encrypted {
    tls: ClientConnection,
    socket: TcpStream,
    /// Plaintext that was received but not consumed.
    received: Vec<u8>,
    /// What the server has violated, or its alert.
    failed: Option<rustls::Error>,
    /// True if the server has announced the end.
    has_ended: bool,
    lines: VecDeque<Value>,
}

impl Encrypted {
    /// Performs the handshake.
    pub(super) async fn connect(gateway: &Gateway, config: Arc<ClientConfig>) -> Self {
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = Self {
            tls: ClientConnection::new(config, name).unwrap(),
            socket: TcpStream::connect(gateway.address).await.unwrap(),
            received: Vec::new(),
            failed: None,
            has_ended: false,
            lines: VecDeque::new(),
        };
        client.socket.set_nodelay(true).unwrap();
        while client.tls.is_handshaking() {
            client.send(b"").await;
            if client.tls.is_handshaking() {
                client.receive().await.unwrap();
            }
        }
        client.send(b"").await;
        client
    }

    /// Opens a WebSocket.
    pub(super) async fn open(gateway: &Gateway, config: Arc<ClientConfig>, path: &str) -> Self {
        let mut client = Self::connect(gateway, config).await;
        client.send(&gateway.request(path, None)).await;
        client.accepted().await;
        client
    }

    /// Returns the records that contain `bytes`, without sending them.
    pub(super) fn encrypt(&mut self, bytes: &[u8]) -> Vec<u8> {
        io::Write::write_all(&mut self.tls.writer(), bytes).unwrap();
        let mut wire = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut wire).unwrap();
        }
        wire
    }

    /// Returns the record that announces the end.
    pub(super) fn close_notify(&mut self) -> Vec<u8> {
        self.tls.send_close_notify();
        self.encrypt(b"")
    }

    /// Changes the keys, and requests new ones of the server.
    pub(super) fn update_keys(&mut self) {
        self.tls.refresh_traffic_keys().unwrap();
    }

    pub(super) fn handshake_kind(&self) -> HandshakeKind {
        self.tls.handshake_kind().unwrap()
    }

    /// Sends plaintext.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        let wire = self.encrypt(bytes);
        self.write(&wire).await;
    }

    /// Sends bytes as they are.
    pub(super) async fn write(&mut self, wire: &[u8]) {
        in_time(self.socket.write_all(wire)).await.unwrap();
    }

    /// Reads the response that accepts the request.
    pub(super) async fn accepted(&mut self) {
        loop {
            let end = self
                .received
                .windows(4)
                .position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                assert!(self.received.starts_with(b"HTTP/1.1 101 "));
                self.received.drain(..end + 4);
                return;
            }
            self.receive_more().await;
        }
    }

    /// Reads until these bytes have arrived; consumes nothing.
    pub(super) async fn until(&mut self, what: &[u8]) {
        in_time(async {
            while !self.received.windows(what.len()).any(|at| at == what) {
                self.receive_more().await;
            }
        })
        .await;
    }

    /// Reads one frame: its first byte and its payload.
    pub(super) async fn frame(&mut self) -> (u8, Vec<u8>) {
        loop {
            if let Some((header, head_bytes)) = Header::decode(&self.received).unwrap() {
                let end = head_bytes + header.payload_bytes as usize;
                if self.received.len() >= end {
                    let frame: Vec<u8> = self.received.drain(..end).collect();
                    return (frame[0], frame[head_bytes..].to_vec());
                }
            }
            self.receive_more().await;
        }
    }

    /// Returns the next line, which must be JSON.
    pub(super) async fn json(&mut self) -> Value {
        if self.lines.is_empty() {
            let (_, message) = self.frame().await;
            let lines = message.split(|byte| *byte == b'\n');
            let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
            self.lines.extend(lines);
        }
        self.lines.pop_front().unwrap()
    }

    /// Reads up to the end, which must be announced.
    pub(super) async fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.receive().await? {}
        Ok(std::mem::take(&mut self.received))
    }

    /// Reads up to the alert with which the server ends the connection.
    pub(super) async fn alert(&mut self) -> AlertDescription {
        let error = self.rest().await.expect_err("an alert");
        let error = error.into_inner().expect("an error of TLS");
        match *error.downcast::<rustls::Error>().unwrap() {
            rustls::Error::AlertReceived(alert) => alert,
            other => panic!("{other}"),
        }
    }

    /// Receives once, unless the server has announced the end.
    async fn receive_more(&mut self) {
        assert!(!self.has_ended, "the connection ended");
        self.has_ended = !self.receive().await.unwrap();
    }

    /// Receives once. Returns whether the server has not announced the end.
    async fn receive(&mut self) -> io::Result<bool> {
        if let Some(error) = self.failed.take() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        let mut wire = [0; 4_096];
        let bytes = in_time(self.socket.read(&mut wire)).await?;
        let mut rest = &wire[..bytes];
        loop {
            self.tls.read_tls(&mut rest)?;
            let state = self.tls.process_new_packets();
            // rustls reports an alert before the plaintext that precedes it.
            let end = io::Read::read_to_end(&mut self.tls.reader(), &mut self.received);
            let has_closed = end.is_ok();
            if let Err(error) = state {
                self.failed = Some(error);
                return Ok(true);
            }
            if has_closed {
                return Ok(false);
            }
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if rest.is_empty() {
                return Ok(true);
            }
        }
    }
}
