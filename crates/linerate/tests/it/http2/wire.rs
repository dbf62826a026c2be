//! An HTTP/2 client made of raw frames (RFC 9113 §4), which can violate any rule.

use std::net::SocketAddr;

use linerate_proto::{Header, Role};
use linerate_testkit::Frame as WebSocketFrame;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::raw::in_time;

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const PRIORITY: u8 = 0x2;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PING: u8 = 0x6;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;

pub(super) const PROTOCOL_ERROR: u32 = 0x1;
pub(super) const FLOW_CONTROL_ERROR: u32 = 0x3;
pub(super) const REFUSED_STREAM: u32 = 0x7;
pub(super) const CANCEL: u32 = 0x8;
pub(super) const ENHANCE_YOUR_CALM: u32 = 0xB;

/// The fields of a request that opens a WebSocket.
pub(super) const CONNECT: [(&str, &str); 6] = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "http"),
    (":path", "/chat"),
    (":authority", "example.com"),
    ("sec-websocket-version", "13"),
];

/// A frame that has arrived.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// Returns the error code of a RST_STREAM or GOAWAY.
    pub(super) fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    /// Returns the status at the beginning of a field block: one from the static table, or digits
    /// in Huffman coding (RFC 7541, appendices A and B).
    pub(super) fn status(&self) -> String {
        // A change of the table size comes first.
        let updates = self.payload.iter().take_while(|byte| *byte >> 5 == 1);
        let block = &self.payload[updates.count()..];
        match block[0] {
            0x88 => return "200".into(),
            0x8C => return "400".into(),
            0x8D => return "404".into(),
            _ => {}
        }
        assert!(matches!(block[0], 0x08 | 0x48), "{self:?}");
        let bytes = usize::from(block[1] & 0x7F);
        let bits: String = block[2..2 + bytes]
            .iter()
            .map(|byte| format!("{byte:08b}"))
            .collect();
        let mut rest = &bits[..];
        let mut status = String::new();
        while status.len() < 3 {
            let short = u8::from_str_radix(&rest[..5], 2).unwrap();
            let (digit, length) = if short < 3 {
                (short, 5)
            } else {
                (u8::from_str_radix(&rest[..6], 2).unwrap() - 0x19 + 3, 6)
            };
            status.push(char::from(b'0' + digit));
            rest = &rest[length..];
        }
        status
    }
}

/// Encodes a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Encodes a field block without compression (RFC 7541 §6.2.2).
pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x00);
        for text in [name, value] {
            push_length(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Encodes an integer with a prefix of seven bits (RFC 7541 §5.1).
fn push_length(block: &mut Vec<u8>, length: usize) {
    if length < 127 {
        return block.push(length as u8);
    }
    block.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        block.push((rest % 128) as u8 | 0x80);
        rest /= 128;
    }
    block.push(rest as u8);
}

/// Returns [`CONNECT`] with one field replaced, added or removed.
pub(super) fn connect_with(
    name: &'static str,
    value: Option<&'static str>,
) -> Vec<(&'static str, &'static str)> {
    let mut fields: Vec<_> = CONNECT.into();
    let place = fields.iter().position(|(known, _)| *known == name);
    match (place, value) {
        (Some(place), Some(value)) => fields[place].1 = value,
        (Some(place), None) => _ = fields.remove(place),
        (None, Some(value)) => fields.push((name, value)),
        (None, None) => {}
    }
    fields
}

/// Encodes a masked WebSocket frame.
pub(super) fn masked(frame: WebSocketFrame) -> Vec<u8> {
    frame.to_role(Role::Server).to_bytes()
}

/// The client's end of a connection.
pub(super) struct Wire {
    pub(super) stream: TcpStream,
    read: Vec<u8>,
}

impl Wire {
    /// Connects and exchanges settings. Those of the client are `settings`.
    pub(super) async fn open(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut wire = Self {
            stream,
            read: Vec::new(),
        };
        let mut payload = Vec::new();
        // There is no dynamic table, so that `Frame::status` does not need one.
        let header_table_size = (0x1, 0);
        for (setting, value) in [header_table_size].iter().chain(settings) {
            payload.extend_from_slice(&setting.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        wire.send(frame(SETTINGS, 0, 0, &payload)).await;
        let first = wire.next().await.unwrap();
        assert_eq!((first.kind, first.flags), (SETTINGS, 0));
        wire.send(frame(SETTINGS, ACK, 0, b"")).await;
        wire
    }

    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends as much as the server reads. The test must check how the connection ends.
    pub(super) async fn send_as_far(&mut self, bytes: impl AsRef<[u8]>) {
        _ = self.stream.write_all(bytes.as_ref()).await;
    }

    pub(super) async fn headers(&mut self, stream: u32, fields: &[(&str, &str)]) {
        let bytes = frame(HEADERS, END_HEADERS, stream, &block(fields));
        self.send(bytes).await;
    }

    /// Opens a WebSocket on `stream`.
    pub(super) async fn connect(&mut self, stream: u32) {
        self.headers(stream, &CONNECT).await;
        let answer = self.next_of(HEADERS, stream).await;
        assert_eq!(answer.status(), "200");
        assert_eq!(answer.flags & END_STREAM, 0);
    }

    /// Answers a PING.
    pub(super) async fn pong(&mut self, ping: &Frame) {
        if ping.flags & ACK == 0 {
            self.send_as_far(frame(PING, ACK, 0, &ping.payload)).await;
        }
    }

    pub(super) async fn data(&mut self, stream: u32, payload: &[u8]) {
        self.send(frame(DATA, 0, stream, payload)).await;
    }

    /// Returns the next frame, or `None` at the end of the connection.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.take_frame() {
                return Some(frame);
            }
            let read = in_time(self.stream.read_buf(&mut self.read)).await;
            if matches!(read, Ok(0) | Err(_)) {
                return None;
            }
        }
    }

    fn take_frame(&mut self) -> Option<Frame> {
        let head = self.read.get(..9)?;
        let bytes = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = self.read.get(9..9 + bytes)?.to_vec();
        let frame = Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes(head[5..9].try_into().unwrap()),
            payload,
        };
        self.read.drain(..9 + bytes);
        Some(frame)
    }

    /// Skips frames up to one of this kind on this stream.
    pub(super) async fn next_of(&mut self, kind: u8, stream: u32) -> Frame {
        loop {
            let frame = self.next().await.expect("a frame arrives before the end");
            if (frame.kind, frame.stream) == (kind, stream) {
                return frame;
            }
            assert_ne!(frame.kind, GOAWAY, "{frame:?}");
        }
    }

    /// Skips frames up to the error that ends the connection; returns its code.
    pub(super) async fn goaway(&mut self) -> u32 {
        loop {
            let frame = self.next().await.expect("a GOAWAY arrives before the end");
            if frame.kind == GOAWAY && frame.code() != 0 {
                return frame.code();
            }
        }
    }

    /// Reads a WebSocket frame from a stream; returns its first byte and its payload. Anything
    /// after it in the same DATA frame is discarded.
    pub(super) async fn message(&mut self, stream: u32) -> (u8, Vec<u8>) {
        let mut bytes = Vec::new();
        loop {
            if let Ok(Some((header, header_bytes))) = Header::decode(&bytes)
                && bytes.len() as u64 >= header_bytes as u64 + header.payload_bytes
            {
                let end = header_bytes + header.payload_bytes as usize;
                return (bytes[0], bytes[header_bytes..end].to_vec());
            }
            bytes.extend_from_slice(&self.next_of(DATA, stream).await.payload);
        }
    }

    /// Sends a message on a stream and expects its echo.
    pub(super) async fn echo(&mut self, stream: u32, text: &str) {
        let message = masked(WebSocketFrame::new(0x1, text.as_bytes()));
        self.data(stream, &message).await;
        assert_eq!(self.message(stream).await, (0x81, text.as_bytes().to_vec()));
    }

    /// Waits until the server has read everything so far and has had time to react.
    pub(super) async fn settle(&mut self) -> Vec<Frame> {
        let mut seen = Vec::new();
        for round in 0..20_u64 {
            self.send(frame(PING, 0, 0, &round.to_be_bytes())).await;
            loop {
                let frame = self.next().await.expect("a PONG arrives before the end");
                if frame.kind == PING && frame.payload == round.to_be_bytes() {
                    break;
                }
                seen.push(frame);
            }
        }
        seen
    }
}
