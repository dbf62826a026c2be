//! A client made of a socket and raw bytes that does not use the library.

use std::net::SocketAddr;

use linerate_proto::{Header, Role};
use linerate_testkit::{Frame, PATIENCE};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// A request that opens a WebSocket, with the key of RFC 6455 §1.3.
pub(crate) const REQUEST: &str = "GET /chat HTTP/1.1\r\n\
    Host: example.com\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\
    \r\n";

/// The response to [`REQUEST`].
pub(crate) const ACCEPTED: &str = "HTTP/1.1 101 Switching Protocols\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
    \r\n";

/// Returns [`REQUEST`] with one part of it replaced.
pub(crate) fn edited(from: &str, to: &str) -> String {
    assert!(REQUEST.contains(from), "{from:?} is not in the request");
    REQUEST.replacen(from, to, 1)
}

/// Returns [`REQUEST`] with a header line added.
pub(crate) fn with_line(line: impl AsRef<[u8]>) -> Vec<u8> {
    let head = &REQUEST.as_bytes()[..REQUEST.len() - 2];
    [head, line.as_ref(), b"\r\n\r\n"].concat()
}

/// Fails a test that would otherwise wait forever.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future)
        .await
        .expect("it must end in time")
}

/// One end of a connection; the client's unless stated otherwise.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::new(stream)
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            read: Vec::new(),
        }
    }

    /// Connects and opens a WebSocket.
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let mut raw = Self::connect(address).await;
        raw.send(REQUEST).await;
        assert_eq!(raw.head().await, ACCEPTED);
        raw
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn send_frame(&mut self, frame: Frame) {
        self.send(frame.to_role(Role::Server).to_bytes()).await;
    }

    /// Returns the head of a response, including the empty last line.
    pub(crate) async fn head(&mut self) -> String {
        loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.read.drain(..at + 4).collect();
                return String::from_utf8(head).unwrap();
            }
            assert!(self.read_more().await, "incomplete head: {:?}", self.read);
        }
    }

    /// Returns the first byte and the payload of the next frame, or `None` at the end of the
    /// stream.
    pub(crate) async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some((header, prefix)) = Header::decode(&self.read).unwrap() {
                assert_eq!(header.mask, None, "a server does not mask");
                let end = prefix + header.payload_bytes as usize;
                if self.read.len() >= end {
                    let frame: Vec<u8> = self.read.drain(..end).collect();
                    return Some((frame[0], frame[prefix..].to_vec()));
                }
            }
            if !self.read_more().await {
                assert_eq!(self.read, b"", "the stream ends in the middle of a frame");
                return None;
            }
        }
    }

    /// Returns everything up to the end of the stream, which must not be a reset.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.read_more().await {}
        std::mem::take(&mut self.read)
    }

    async fn read_more(&mut self) -> bool {
        let mut bytes = [0; 4_096];
        let count = in_time(self.stream.read(&mut bytes)).await.unwrap();
        self.read.extend_from_slice(&bytes[..count]);
        count > 0
    }
}
