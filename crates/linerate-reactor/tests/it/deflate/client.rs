//! A client that runs the protocol engine on a socket.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use linerate_proto::{
    CloseCode, Config, Engine, Role,
    deflate::ThreadPool,
    engine::{Event, MessageKind},
    handshake::ClientHandshake,
};
use linerate_reactor::Deflate;
use linerate_testkit::TestEndpoint;

use crate::support::PATIENCE;

pub(super) struct Client {
    pub(super) engine: Engine<TestEndpoint>,
    /// The number of bytes that the frames handled so far have taken.
    pub(super) received: usize,
    pub(super) pongs: Vec<Vec<u8>>,
    stream: TcpStream,
    /// Bytes that were read but not handled yet.
    input: Vec<u8>,
}

impl Client {
    /// Opens a WebSocket, and offers compression if `deflate` is given.
    pub(super) fn open(address: SocketAddr, deflate: Option<Deflate>) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut handshake = ClientHandshake::new("example.com", "/chat", [7; 16]).unwrap();
        if let Some(deflate) = deflate {
            handshake = handshake.with_deflate(deflate);
        }
        let mut request = Vec::new();
        handshake.encode(&mut request);
        stream.write_all(&request).unwrap();
        // Read byte by byte, so that the frames that follow stay in the socket.
        let agreed = loop {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            if let Some((negotiated, _)) = handshake.handle_input(&byte).unwrap() {
                break negotiated.deflate();
            }
        };
        let mut config = Config::default();
        config.limits.message_bytes_max = 4 << 20;
        let engine = Engine::new(TestEndpoint(Role::Client), Arc::new(config), Duration::ZERO);
        let engine = match (agreed, deflate) {
            (Some(agreement), Some(deflate)) => {
                engine.with_deflate(agreement, &deflate, &ThreadPool)
            }
            _ => engine,
        };
        Self {
            engine,
            received: 0,
            pongs: Vec::new(),
            stream,
            input: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, kind: MessageKind, payload: &[u8]) {
        let mut wire = Vec::new();
        self.engine.send(&mut wire, kind, payload).unwrap();
        self.write(&wire);
    }

    pub(super) fn write(&mut self, wire: &[u8]) {
        self.stream.write_all(wire).unwrap();
    }

    /// Writes bytes; ignores errors, because the server may stop reading.
    pub(super) fn write_lossy(&mut self, wire: &[u8]) {
        _ = self.stream.write_all(wire);
    }

    /// Reads one message and any control frames before it.
    pub(super) fn message(&mut self) -> (MessageKind, Vec<u8>) {
        let (mut kind, mut message) = (MessageKind::Binary, Vec::new());
        loop {
            let mut events = self.engine.handle_input(&mut self.input, Duration::ZERO);
            let ends = match events.next() {
                None => None,
                Some(Ok(Event::Text(text))) => {
                    (kind, message) = (MessageKind::Text, text.into());
                    Some(true)
                }
                Some(Ok(Event::Binary(bytes))) => {
                    message = bytes.into();
                    Some(true)
                }
                Some(Ok(Event::Chunk(chunk))) => {
                    kind = chunk.kind;
                    message.extend_from_slice(chunk.bytes);
                    Some(chunk.ends)
                }
                Some(Ok(Event::Pong(payload))) => {
                    self.pongs.push(payload.into());
                    Some(false)
                }
                other => panic!("{other:?}"),
            };
            let taken = events.consumed();
            self.received += taken;
            self.input.drain(..taken);
            match ends {
                None => assert!(self.read() > 0, "the stream ended"),
                Some(false) => {}
                Some(true) => return (kind, message),
            }
        }
    }

    /// Reads until a Close frame arrives or the stream ends; returns the code of the Close frame.
    pub(super) fn end(&mut self) -> Option<CloseCode> {
        let mut code = None;
        loop {
            let mut events = self.engine.handle_input(&mut self.input, Duration::ZERO);
            while let Some(event) = events.next() {
                if let Ok(Event::Close(frame)) = event {
                    code = frame.code;
                }
            }
            let taken = events.consumed();
            self.input.drain(..taken);
            if code.is_some() || self.read() == 0 {
                return code;
            }
        }
    }

    fn read(&mut self) -> usize {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(bytes) => {
                    self.input.extend_from_slice(&buffer[..bytes]);
                    return bytes;
                }
                // The server's ring, in the same process, can cause the kernel to interrupt the
                // read.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}
