//! Opens a connection without blocking: TCP, TLS and the opening handshake (RFC 6455 §4.1).

use std::io::{self, Read as _, Write as _};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use linerate_harness::socket::Socket;
use linerate_proto::handshake::{ClientHandshake, HandshakeError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::error::system;
use super::{LoadError, Target, Wire};
use crate::cell::Deflate;

/// Largest size of a response's head, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The socket of the connection.
    pub(crate) socket: Socket,
    /// The bytes that the server sent after its response, which are its first frames.
    pub(crate) leftover: Vec<u8>,
}

/// Opens a connection and waits until it is open, for at most `silence_max`.
///
/// # Errors
///
/// Returns an error if the server refuses, is silent, violates the protocol, or does not agree to
/// `deflate`.
pub(crate) fn open(
    target: &Target,
    deflate: Deflate,
    silence_max: Duration,
) -> Result<Opened, LoadError> {
    let deadline = Instant::now() + silence_max;
    let mut socket = connect(target)?;
    let mut opening = Opening::new(target, deflate)?;
    loop {
        if let Some(leftover) = opening.drive(&mut socket)? {
            return Ok(Opened { socket, leftover });
        }
        let mut wanted = PollFlags::IN;
        if opening.wants_write(&socket) {
            wanted |= PollFlags::OUT;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let silent = LoadError::Silent {
            silence: silence_max,
        };
        if left.is_zero() {
            return Err(silent);
        }
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&socket, wanted)], timeout.as_ref()) {
            Ok(0) => return Err(silent),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(system("poll failed")(errno)),
        }
    }
}

/// Starts to connect.
///
/// # Errors
///
/// Returns an error if the server is already known to refuse, or if no socket can be created.
pub(crate) fn connect(target: &Target) -> Result<Socket, LoadError> {
    Socket::connect(target.address, target.tls.as_ref()).map_err(LoadError::of_socket)
}

/// The opening handshake of one connection.
#[derive(Debug)]
pub(crate) struct Opening {
    /// `None` on a raw wire, where the connection is open as soon as the socket is writable.
    handshake: Option<ClientHandshake>,
    deflate: Deflate,
    request: Vec<u8>,
    written: usize,
    head: Vec<u8>,
}

impl Opening {
    /// Prepares the request.
    ///
    /// # Errors
    ///
    /// Returns an error if the target's host or path is not valid in a request, or if compression
    /// is requested on a raw wire.
    pub(crate) fn new(target: &Target, deflate: Deflate) -> Result<Self, LoadError> {
        let mut request = Vec::new();
        let handshake = match target.wire {
            Wire::Raw if deflate != Deflate::Off => {
                return Err(LoadError::Unsupported {
                    what: "compression on a raw wire",
                });
            }
            Wire::Raw => None,
            Wire::WebSocket => {
                let handshake = ClientHandshake::new(&target.host, &target.path, next_nonce())
                    .map_err(|_| LoadError::Unsupported {
                        what: "a host or path that is not valid in a request",
                    })?;
                handshake.encode(&mut request);
                Some(handshake)
            }
        };
        offer(&mut request, deflate);
        Ok(Self {
            handshake,
            deflate,
            request,
            written: 0,
            head: Vec::new(),
        })
    }

    /// Proceeds as far as the socket allows. Once the connection is open, returns the bytes that
    /// the server sent after its response.
    ///
    /// # Errors
    ///
    /// Returns an error if the opening handshake failed.
    pub(crate) fn drive(&mut self, socket: &mut Socket) -> Result<Option<Vec<u8>>, LoadError> {
        match self.attempt(socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(LoadError::of_socket(error)),
            Ok(outcome) => outcome.map(Some),
        }
    }

    /// Returns whether progress requires the socket to become writable.
    pub(crate) fn wants_write(&self, socket: &Socket) -> bool {
        socket.wants_write() || (!self.is_written() && !socket.is_handshaking())
    }

    fn is_written(&self) -> bool {
        self.handshake.is_some() && self.written == self.request.len()
    }

    /// The outer error is the socket's. It may merely mean that the call would block.
    fn attempt(&mut self, socket: &mut Socket) -> io::Result<Result<Vec<u8>, LoadError>> {
        if self.handshake.is_none() {
            // An empty write fails like any other as long as the connection is not established.
            socket.write(&[])?;
            return Ok(Ok(Vec::new()));
        }
        if self.written < self.request.len() {
            while self.written < self.request.len() {
                self.written += socket.write(&self.request[self.written..])?;
            }
            if !socket.is_encrypted() {
                // The response cannot have arrived yet, and its arrival will be an edge, so a read
                // now would be a wasted system call.
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        loop {
            socket.flush()?;
            let mut buffer = [0; 2 << 10];
            let bytes = socket.read(&mut buffer)?;
            if let Some(outcome) = self.judge(&buffer[..bytes]).transpose() {
                return Ok(outcome);
            }
        }
    }

    /// Processes input. Returns the bytes after the response once the response is complete. Empty
    /// input means the end of the stream.
    fn judge(&mut self, input: &[u8]) -> Result<Option<Vec<u8>>, LoadError> {
        let Some(handshake) = &mut self.handshake else {
            return Ok(Some(input.to_vec()));
        };
        if input.is_empty() {
            return Err(LoadError::Handshake(HandshakeError::HeadTruncated {
                head_bytes: self.head.len(),
            }));
        }
        self.head.extend_from_slice(input);
        while let Some(end) = head_end(&self.head) {
            let behind = self.head.split_off(end);
            let mut head = mem::replace(&mut self.head, behind);
            // linerate-proto does not know our offer and would reject the answer to it.
            let answer = match self.deflate {
                Deflate::Off => None,
                _ => take_extensions(&mut head),
            };
            // An interim response may come first. It does not complete the handshake.
            if let Some(_negotiated) = handshake
                .handle_input(&head)
                .map_err(LoadError::Handshake)?
            {
                check_agreement(self.deflate, answer.as_deref())?;
                return Ok(Some(mem::take(&mut self.head)));
            }
        }
        if self.head.len() > HEAD_BYTES_MAX {
            return Err(LoadError::Handshake(HandshakeError::HeadTooLarge {
                head_bytes: self.head.len(),
                head_bytes_max: HEAD_BYTES_MAX,
            }));
        }
        Ok(None)
    }
}

/// Returns a different nonce for each connection. It may be predictable, because there are no
/// caches in between to protect from, but it must differ to expose a server that always sends the
/// same answer.
fn next_nonce() -> [u8; 16] {
    static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
    let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let mut nonce = *b"linerate\0\0\0\0\0\0\0\0";
    nonce[8..].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    nonce
}

/// Adds the offer to compress to a request (RFC 7692 §7.1).
fn offer(request: &mut Vec<u8>, deflate: Deflate) {
    let parameters = match deflate {
        Deflate::Off => return,
        Deflate::NoTakeover => "; client_no_context_takeover; server_no_context_takeover",
        Deflate::Takeover => "",
    };
    // The header goes before the empty line.
    request.truncate(request.len() - 2);
    let header = format!("Sec-WebSocket-Extensions: permessage-deflate{parameters}\r\n\r\n");
    request.extend_from_slice(header.as_bytes());
}

/// Returns the index after the empty line that ends the head.
fn head_end(head: &[u8]) -> Option<usize> {
    let at = head.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some(at + 4)
}

/// Removes the extensions from a head and returns them in lower case.
fn take_extensions(head: &mut Vec<u8>) -> Option<String> {
    const NAME: &[u8] = b"sec-websocket-extensions:";
    let mut extensions: Option<String> = None;
    let mut rest = Vec::with_capacity(head.len());
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        let name = line.get(..NAME.len());
        if name.is_some_and(|name| name.eq_ignore_ascii_case(NAME)) {
            let value = String::from_utf8_lossy(&line[NAME.len()..]).to_ascii_lowercase();
            match &mut extensions {
                None => extensions = Some(value.trim().to_owned()),
                Some(all) => *all = format!("{all}, {}", value.trim()),
            }
        } else {
            rest.extend_from_slice(line);
        }
    }
    *head = rest;
    extensions
}

/// Checks that the server agreed to what was offered and to nothing else.
///
/// Parameters that only bound the server's own window are allowed, because they do not bind the
/// client.
fn check_agreement(deflate: Deflate, answer: Option<&str>) -> Result<(), LoadError> {
    if deflate == Deflate::Off {
        return Ok(());
    }
    let answer = answer.ok_or(LoadError::DeflateDeclined)?;
    let mut parts = answer.split(';').map(str::trim);
    if parts.next() != Some("permessage-deflate") {
        return Err(LoadError::DeflateParameters);
    }
    let parameters: Vec<&str> = parts.collect();
    let takes_over = deflate == Deflate::Takeover;
    let known = |parameter: &&str| match parameter.split_once('=') {
        None => {
            !takes_over
                && ["client_no_context_takeover", "server_no_context_takeover"].contains(parameter)
        }
        Some((name, _)) => name.trim_end() == "server_max_window_bits",
    };
    // §7.1.1.1: a server that accepts an offer with "server_no_context_takeover" includes it in its
    // response.
    let forgets = parameters.contains(&"server_no_context_takeover");
    if parameters.iter().all(known) && forgets != takes_over {
        Ok(())
    } else {
        Err(LoadError::DeflateParameters)
    }
}

#[cfg(test)]
mod tests;
