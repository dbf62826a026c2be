//! A server that works on raw bytes, for the reactor to connect to.

use std::net::TcpListener;

use linerate_proto::handshake::RequestReader;
use linerate_reactor::Destination;

use crate::support::{PATIENCE, Raw};

/// Starts to listen; returns the listener and its destination.
pub(crate) fn listen() -> (TcpListener, Destination) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/feed?x=1", listener.local_addr().unwrap());
    (listener, Destination::parse(&url).unwrap())
}

/// Accepts a connection and reads its request; returns both.
pub(crate) fn take_request(listener: &TcpListener) -> (Raw, String) {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut raw = Raw { stream };
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(raw.read(1));
    }
    (raw, String::from_utf8(head).unwrap())
}

/// Accepts a connection and its WebSocket; sends `frames` together with the response.
pub(crate) fn accept(listener: &TcpListener, frames: &[u8]) -> (Raw, String) {
    let (mut raw, head) = take_request(listener);
    let mut reader = RequestReader::new(Default::default());
    let (request, _) = reader.handle_input(head.as_bytes()).unwrap().unwrap();
    let upgrade = request.websocket().unwrap();
    let mut answer = Vec::new();
    let acceptance = match upgrade.subprotocols().first() {
        Some(first) => upgrade.accept().with_subprotocol(first).unwrap(),
        None => upgrade.accept(),
    };
    acceptance.encode(&mut answer);
    answer.extend(frames);
    raw.send(&answer);
    (raw, head)
}

/// Reads one masked frame: its first byte, its key and its unmasked payload.
pub(crate) fn masked_frame(raw: &mut Raw) -> (u8, [u8; 4], Vec<u8>) {
    let head = raw.read(2);
    assert_eq!(head[1] & 0x80, 0x80, "a client must mask its frames");
    let bytes = match head[1] & 0x7F {
        126 => usize::from(u16::from_be_bytes(raw.read(2).try_into().unwrap())),
        127 => u64::from_be_bytes(raw.read(8).try_into().unwrap()) as usize,
        short => usize::from(short),
    };
    let key: [u8; 4] = raw.read(4).try_into().unwrap();
    let mut payload = raw.read(bytes);
    for (index, byte) in payload.iter_mut().enumerate() {
        *byte ^= key[index % 4];
    }
    (head[0], key, payload)
}
