//! Servers for tests, correct and faulty ones, with blocking calls and a thread for each
//! connection.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use linerate_proto::handshake::{HandshakeLimits, RequestReader};
use linerate_proto::{Header, MaskKey, Opcode};

use super::message::Message;
use super::{Budget, Probe, Target, Usage, Wire};

/// A short budget, because these tests do not look at the figures.
pub(crate) const BUDGET: Budget = Budget {
    warm_up: Duration::from_millis(20),
    measured: Duration::from_millis(50),
    silence_max: Duration::from_secs(60),
};

/// A budget with a short timeout, for servers that are silent.
pub(crate) const IMPATIENT: Budget = Budget {
    silence_max: Duration::from_millis(100),
    ..BUDGET
};

/// Starts a WebSocket server that calls `serve` for each client after the handshake. The second
/// argument of `serve` is the number of the connection, counted from 0.
pub(crate) fn serve_websocket<F>(serve: F) -> Target
where
    F: Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
{
    serve_websocket_with("", serve)
}

/// Starts a WebSocket server whose response has additional headers, each with its line ending.
pub(crate) fn serve_websocket_with<F>(headers: &'static str, serve: F) -> Target
where
    F: Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
{
    let serve = move |stream, number| {
        let mut peer = Peer::accept(stream, headers)?;
        serve(&mut peer, number)
    };
    Target {
        wire: Wire::WebSocket,
        ..serve_raw(serve)
    }
}

/// Starts a server of raw bytes.
pub(crate) fn serve_raw<F>(serve: F) -> Target
where
    F: Fn(TcpStream, usize) -> io::Result<()> + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    // The thread runs until the test process exits.
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || {
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                // An error means that the client has gone.
                let _ = serve(stream, number);
            });
        }
    });
    Target {
        address,
        host: address.to_string(),
        path: "/".to_owned(),
        wire: Wire::Raw,
        tls: None,
    }
}

/// The server's end of a WebSocket connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    received: Vec<u8>,
}

impl Peer {
    fn accept(mut stream: TcpStream, headers: &str) -> io::Result<Self> {
        let mut reader = RequestReader::new(HandshakeLimits::default());
        let mut buffer = [0; 2048];
        loop {
            let bytes = stream.read(&mut buffer)?;
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some((request, head_bytes)) = reader.handle_input(&buffer[..bytes]).unwrap() else {
                continue;
            };
            let mut response = Vec::new();
            request.websocket().unwrap().accept().encode(&mut response);
            // The headers go before the empty line.
            response.splice(response.len() - 2..response.len() - 2, headers.bytes());
            stream.write_all(&response)?;
            return Ok(Self {
                stream,
                received: buffer[head_bytes..bytes].to_vec(),
            });
        }
    }

    /// Reads a single-frame message. Fragmented messages are not supported.
    pub(crate) fn read(&mut self) -> io::Result<(Opcode, Vec<u8>)> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some((header, prefix_bytes)) = Header::decode(&self.received).unwrap() {
                let end = prefix_bytes + header.payload_bytes as usize;
                if end <= self.received.len() {
                    let mut payload = self.received[prefix_bytes..end].to_vec();
                    self.received.drain(..end);
                    let MaskKey(key) = header.mask.unwrap();
                    linerate_simd::mask::apply(key, 0, &mut payload);
                    return Ok((header.opcode, payload));
                }
            }
            match self.stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => self.received.extend_from_slice(&buffer[..bytes]),
            }
        }
    }

    /// Sends a single-frame message.
    pub(crate) fn send(&mut self, opcode: Opcode, payload: &[u8]) -> io::Result<()> {
        self.stream
            .write_all(Message::new(opcode, payload, None).frame())
    }
}

/// A process whose resident memory is one page larger at each reading, so that it never settles.
#[derive(Debug, Default)]
pub(crate) struct Growing(u64);

impl Probe for Growing {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        self.0 += 4096;
        Ok(Some(Usage {
            resident_bytes: self.0,
            resident_bytes_peak: self.0,
            ..Usage::default()
        }))
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cores(&self) -> u32 {
        1
    }
}

/// A process that cannot be inspected.
#[derive(Debug)]
pub(crate) struct Opaque;

impl Probe for Opaque {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        Ok(None)
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cores(&self) -> u32 {
        1
    }
}
