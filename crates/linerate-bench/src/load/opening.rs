//! Opens a connection without blocking: TCP, TLS and the opening handshake (RFC 6455 §4.1).

use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use linerate_harness::socket::Socket;
use linerate_proto::deflate::{self, Agreement};
use linerate_proto::handshake::{ClientHandshake, HandshakeError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::error::system;
use super::{LoadError, Target, Wire};
use crate::cell::Deflate;

/// The window for which messages are compressed: 2^15 bytes, the largest (RFC 7692 §7.1.2).
const WINDOW_BITS: u8 = 15;

/// An open connection.
#[derive(Debug)]
pub(crate) struct OpenConnection {
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
) -> Result<OpenConnection, LoadError> {
    let deadline = Instant::now() + silence_max;
    let mut socket = connect(target)?;
    let mut opening = Opening::new(target, deflate)?;
    loop {
        if let Some(leftover) = opening.drive(&mut socket)? {
            return Ok(OpenConnection { socket, leftover });
        }
        let mut wanted = PollFlags::IN;
        if opening.wants_write(&socket) {
            wanted |= PollFlags::OUT;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let silent = LoadError::Silent(silence_max);
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
                return Err(LoadError::Unsupported("compression on a raw wire"));
            }
            Wire::Raw => None,
            Wire::WebSocket => {
                let handshake = ClientHandshake::new(&target.host, &target.path, next_nonce())
                    .map_err(|_| {
                        LoadError::Unsupported("a host or path that is not valid in a request")
                    })?;
                handshake.encode(&mut request);
                offer(&mut request, deflate);
                Some(match deflate {
                    Deflate::Off => handshake,
                    _ => handshake.with_deflate(settings(deflate)),
                })
            }
        };
        Ok(Self {
            handshake,
            deflate,
            request,
            written: 0,
        })
    }

    /// Proceeds as far as the socket allows. Once the connection is open, returns the bytes that
    /// the server sent after its response.
    pub(crate) fn drive(&mut self, socket: &mut Socket) -> Result<Option<Vec<u8>>, LoadError> {
        match self.attempt(socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(LoadError::of_socket(error)),
            Ok(outcome) => outcome.map(Some),
        }
    }

    /// Returns whether progress requires the socket to become writable.
    pub(crate) fn wants_write(&self, socket: &Socket) -> bool {
        let is_written = self.handshake.is_some() && self.written == self.request.len();
        socket.wants_write() || (!is_written && !socket.is_handshaking())
    }

    /// The outer error is the socket's. It may merely mean that the call would block.
    fn attempt(&mut self, socket: &mut Socket) -> io::Result<Result<Vec<u8>, LoadError>> {
        if self.handshake.is_none() {
            // An empty write fails like any other as long as the connection is not established.
            let _none = socket.write(&[])?;
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
            return Err(LoadError::Handshake(handshake.handle_eof()));
        }
        let deflate = self.deflate;
        let answer = handshake
            .handle_input(input)
            .map_err(|error| refused(error, deflate))?;
        let Some((negotiated, head_bytes)) = answer else {
            return Ok(None);
        };
        check_agreement(deflate, negotiated.deflate())?;
        Ok(Some(input[head_bytes..].to_vec()))
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
///
/// [`ClientHandshake::with_deflate`] would also offer `client_max_window_bits`. Some servers answer
/// it with a smaller window than that for which the messages of a cell are compressed beforehand.
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

/// Returns the settings by which the answer to [`offer`] is judged.
fn settings(deflate: Deflate) -> deflate::Deflate {
    let takes_over = deflate == Deflate::Takeover;
    let mut settings = deflate::Deflate::default();
    (settings.window_bits, settings.peer_window_bits) = (WINDOW_BITS, WINDOW_BITS);
    (settings.takeover, settings.peer_takeover) = (takes_over, takes_over);
    settings
}

/// Tells an agreement that was not offered from other failures.
fn refused(error: HandshakeError, deflate: Deflate) -> LoadError {
    match error {
        HandshakeError::ExtensionParameterInvalid { .. }
        | HandshakeError::ExtensionUnoffered
        | HandshakeError::ExtensionsMalformed { .. }
            if deflate != Deflate::Off =>
        {
            LoadError::DeflateParameters
        }
        error => LoadError::Handshake(error),
    }
}

/// Checks that the server agreed to what was offered and to nothing else.
///
/// It may bound its own window, because that does not bind the client.
fn check_agreement(deflate: Deflate, agreement: Option<Agreement>) -> Result<(), LoadError> {
    if deflate == Deflate::Off {
        return Ok(());
    }
    let Agreement { sending, receiving } = agreement.ok_or(LoadError::DeflateDeclined)?;
    let takes_over = deflate == Deflate::Takeover;
    let is_as_offered = sending.window_bits == WINDOW_BITS
        && sending.takeover == takes_over
        && receiving.takeover == takes_over;
    is_as_offered
        .then_some(())
        .ok_or(LoadError::DeflateParameters)
}

#[cfg(test)]
mod tests;
