//! A client on a WebSocket.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_proto::handshake::ClientHandshake;
use linerate_proto::{Header, Opcode};

use super::{SubscriptionRequest, read, read_available};
use crate::load::masked_frame;
use crate::story::Dialect;

/// A subscribed client.
#[derive(Debug)]
pub(in crate::story) struct WebSocketSubscriber {
    stream: TcpStream,
    dialect: Dialect,
    /// Input that is not a whole frame yet.
    unparsed: Vec<u8>,
}

impl WebSocketSubscriber {
    /// Waits until the server confirms the subscription.
    pub(super) fn subscribe(stream: TcpStream, request: SubscriptionRequest) -> io::Result<Self> {
        let mut subscriber = Self {
            stream,
            dialect: request.dialect,
            unparsed: Vec::new(),
        };
        subscriber.shake_hands(request)?;
        subscriber.greet(request)?;
        subscriber.stream.set_nonblocking(true)?;
        Ok(subscriber)
    }

    fn shake_hands(&mut self, request: SubscriptionRequest) -> io::Result<()> {
        let key = *b"a subscriber key";
        let path = self.dialect.path(request.source, request.batch_ms);
        let host = request.address.to_string();
        let mut handshake = ClientHandshake::new(&host, &path, key).map_err(io::Error::other)?;
        if let Some(subprotocol) = self.dialect.subprotocol() {
            handshake = handshake
                .with_subprotocol(subprotocol)
                .map_err(io::Error::other)?;
        }
        let mut request = Vec::new();
        handshake.encode(&mut request);
        self.stream.write_all(&request)?;
        let mut buffer = [0; 4 << 10];
        loop {
            let bytes = read(&mut self.stream, &mut buffer)?;
            if let Some((_, end)) = handshake
                .handle_input(&buffer[..bytes])
                .map_err(io::Error::other)?
            {
                self.unparsed.extend_from_slice(&buffer[end..bytes]);
                return Ok(());
            }
        }
    }

    /// Sends the messages that subscribe the client and waits for each answer.
    fn greet(&mut self, request: SubscriptionRequest) -> io::Result<()> {
        let greeting = self.dialect.greeting(request.source, request.batch_ms);
        for (says, hears) in greeting.says.iter().zip(greeting.hears) {
            if !says.is_empty() {
                self.say(says)?;
            }
            self.wait_for(hears)?;
        }
        Ok(())
    }

    fn wait_for(&mut self, part: &str) -> io::Result<()> {
        let mut buffer = [0; 4 << 10];
        loop {
            let mut heard = Vec::new();
            self.take_frames(&mut |payload| heard.extend_from_slice(payload))?;
            let has = |part: &str| memchr::memmem::find(&heard, part.as_bytes()).is_some();
            if has(part) {
                return Ok(());
            }
            if has("\"error\"") {
                return Err(io::Error::other(
                    String::from_utf8_lossy(&heard).into_owned(),
                ));
            }
            let bytes = read(&mut self.stream, &mut buffer)?;
            self.unparsed.extend_from_slice(&buffer[..bytes]);
        }
    }

    /// Reads everything that has arrived, `buffer` at a time, and passes the payload of each whole
    /// data frame to `on_payload`.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection has ended or the server has closed it.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        on_payload: &mut impl FnMut(&[u8]),
    ) -> io::Result<()> {
        while let Some(bytes) = read_available(&mut self.stream, buffer)? {
            self.unparsed.extend_from_slice(&buffer[..bytes]);
            self.take_frames(on_payload)?;
            if bytes < buffer.len() {
                break;
            }
        }
        Ok(())
    }

    /// Handles the whole frames of the input. The fragments of a message are handled separately,
    /// which does not matter because none of the servers fragments.
    fn take_frames(&mut self, on_payload: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let rest = std::mem::take(&mut self.unparsed);
        let mut taken = 0;
        while let Some((header, head_bytes)) =
            Header::decode(&rest[taken..]).map_err(io::Error::other)?
        {
            let start = taken + head_bytes;
            let end = start + header.payload_bytes as usize;
            let Some(payload) = rest.get(start..end) else {
                break;
            };
            taken = end;
            match header.opcode {
                Opcode::Ping => self.send(Opcode::Pong, payload)?,
                Opcode::Close => return Err(io::Error::other(closed(payload))),
                Opcode::Pong => {}
                _ => match self.dialect.pong(payload) {
                    Some(pong) => self.say(pong)?,
                    None => on_payload(payload),
                },
            }
        }
        self.unparsed = rest;
        self.unparsed.drain(..taken);
        Ok(())
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.send(Opcode::Text, text.as_bytes())
    }

    /// Sends a frame. Clients send so little that it always fits into the socket's buffer.
    fn send(&mut self, opcode: Opcode, payload: &[u8]) -> io::Result<()> {
        self.stream.write_all(&masked_frame(opcode, payload))
    }
}

impl AsFd for WebSocketSubscriber {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn closed(payload: &[u8]) -> String {
    match payload.split_first_chunk() {
        Some((code, reason)) => {
            let code = u16::from_be_bytes(*code);
            format!("closed with {code} {}", String::from_utf8_lossy(reason))
        }
        None => "closed without a code".into(),
    }
}
