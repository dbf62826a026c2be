//! An HTTP/1.1 client that returns responses as they arrive.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::in_time;

/// A response that may be streaming.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    stream: TcpStream,
    /// Data that was received but not consumed, without the chunked encoding.
    body: Vec<u8>,
    raw: Vec<u8>,
    is_chunked: bool,
}

/// Sends a request. Each line in `headers` ends with CRLF.
pub(crate) async fn request(
    address: SocketAddr,
    target: &str,
    headers: &str,
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "{target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses a body because it is too long may close before reading all of it.
    _ = stream.write_all(body).await;
    Answer::read(stream).await
}

/// Opens sessions with requests for this path until the server is full; returns how many it has
/// opened.
pub(crate) async fn sessions_until_full(address: SocketAddr, path: &str) -> usize {
    let target = format!("GET {path}");
    for sessions in 0..100 {
        let answer = request(address, &target, "Connection: close\r\n", b"").await;
        if answer.status != 200 {
            assert_eq!(answer.status, 503);
            return sessions;
        }
        answer.text().await;
    }
    panic!("the server is never full");
}

impl Answer {
    /// Reads the head of a response.
    pub(crate) async fn read(stream: TcpStream) -> Self {
        Self::read_after(stream, Vec::new()).await
    }

    /// Reads the head of the response that follows one with a known length, on the same connection.
    pub(crate) async fn next(mut self) -> Self {
        let length = self.length();
        self.fill(length).await;
        Self::read_after(self.stream, self.raw.split_off(length)).await
    }

    async fn read_after(mut stream: TcpStream, mut raw: Vec<u8>) -> Self {
        let end = loop {
            if let Some(end) = find(&raw, b"\r\n\r\n") {
                break end;
            }
            let read = in_time(stream.read_buf(&mut raw)).await.unwrap();
            assert!(read > 0, "no head: {}", raw.escape_ascii());
        };
        let head = String::from_utf8(raw[..end].to_vec()).unwrap();
        raw.drain(..end + 4);
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            is_chunked: head
                .to_ascii_lowercase()
                .contains("transfer-encoding: chunked"),
            head,
            stream,
            body: Vec::new(),
            raw,
        }
    }

    /// Returns the data up to `end`, without it; `None` if the response ends first.
    pub(crate) async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = find(&self.body, end) {
                let mut piece: Vec<u8> = self.body.drain(..at + end.len()).collect();
                piece.truncate(at);
                return Some(piece);
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Returns everything up to the end of the response, which must be chunked.
    pub(crate) async fn rest(&mut self) -> String {
        while self.more().await {}
        String::from_utf8(std::mem::take(&mut self.body)).unwrap()
    }

    /// Returns the text of a response with a known length.
    pub(crate) async fn text(mut self) -> String {
        self.fill(self.length()).await;
        String::from_utf8(self.raw).unwrap()
    }

    /// Sends more on the connection of the request.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        in_time(self.stream.write_all(bytes)).await.unwrap();
    }

    fn length(&self) -> usize {
        let length = self.head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1).unwrap_or("0");
        length.split('\r').next().unwrap().parse().unwrap()
    }

    async fn fill(&mut self, length: usize) {
        while self.raw.len() < length {
            let read = in_time(self.stream.read_buf(&mut self.raw)).await.unwrap();
            assert!(read > 0, "truncated response");
        }
    }

    /// Reads a chunk; returns `false` at the end.
    async fn more(&mut self) -> bool {
        assert!(self.is_chunked, "{}", self.head);
        loop {
            if let Some(line) = find(&self.raw, b"\r\n") {
                let length = std::str::from_utf8(&self.raw[..line]).unwrap();
                let length = usize::from_str_radix(length, 16).unwrap();
                let start = line + 2;
                if self.raw.len() >= start + length + 2 {
                    self.body
                        .extend_from_slice(&self.raw[start..start + length]);
                    self.raw.drain(..start + length + 2);
                    return length > 0;
                }
            }
            let read = in_time(self.stream.read_buf(&mut self.raw)).await.unwrap();
            if read == 0 {
                return false;
            }
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
