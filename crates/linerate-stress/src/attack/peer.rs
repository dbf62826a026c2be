//! A connection of an attacker.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::net::sockopt;
use socket2::{Domain, Socket, Type};

use crate::websocket::{read_frame, request, wait_for_open};

/// How long to wait for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The size of a narrow receive buffer in bytes, which the kernel doubles.
const NARROW_BYTES: usize = 2_048;

pub(super) struct Peer {
    pub(super) stream: TcpStream,
    /// Bytes that wait to be sent.
    pub(super) unsent: Vec<u8>,
    pub(super) is_lost: bool,
}

impl Peer {
    /// Connects. Dropping the peer resets the connection, so that the port is free again at once.
    pub(super) fn connect(server: SocketAddr) -> io::Result<Self> {
        Ok(Self::from(TcpStream::connect(server)?))
    }

    /// Like [`Self::connect`], with a small receive buffer, for peers that do not read.
    pub(super) fn connect_narrow(server: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
        socket.set_recv_buffer_size(NARROW_BYTES)?;
        socket.connect(&server.into())?;
        Ok(Self::from(TcpStream::from(socket)))
    }

    /// Connects and requests a WebSocket, without waiting for the response.
    pub(super) fn ask(server: SocketAddr, path: &str, more: &str) -> io::Result<Self> {
        let mut peer = Self::connect(server)?;
        peer.stream.write_all(request(path, more).as_bytes())?;
        Ok(peer)
    }

    /// Waits until the WebSocket is open.
    pub(super) fn wait_for_open(&mut self) -> Result<()> {
        wait_for_open(&mut self.stream)
    }

    /// Reads until the Close frame, and returns its code.
    pub(super) fn close_code(&mut self) -> Result<u16> {
        loop {
            let (first, payload) = read_frame(&mut self.stream)?;
            if first == 0x88 {
                let code = payload.first_chunk();
                let code = code.context("received a Close frame without a code")?;
                return Ok(u16::from_be_bytes(*code));
            }
        }
    }

    /// Sends as much of the unsent bytes as the socket accepts, and returns how many that are.
    pub(super) fn send(&mut self) -> usize {
        match self.stream.write(&self.unsent) {
            Ok(bytes) => {
                self.unsent.drain(..bytes);
                bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(_) => {
                self.is_lost = true;
                0
            }
        }
    }

    /// Reads and discards everything that has arrived, and notices the end of the connection.
    pub(super) fn ignore_input(&mut self) {
        let mut ignored = [0; 64 << 10];
        loop {
            match self.stream.read(&mut ignored) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => return self.is_lost = true,
            }
        }
    }

    /// Makes the socket non-blocking.
    pub(super) fn unblock(self) -> io::Result<Self> {
        self.stream.set_nonblocking(true)?;
        Ok(self)
    }
}

/// Peers of one server, up to `count`.
pub(super) struct Peers {
    pub(super) server: SocketAddr,
    pub(super) count: usize,
    pub(super) connected: Vec<Peer>,
}

impl Peers {
    pub(super) const fn new(server: SocketAddr, count: usize) -> Self {
        Self {
            server,
            count,
            connected: Vec::new(),
        }
    }
}

impl From<TcpStream> for Peer {
    fn from(stream: TcpStream) -> Self {
        // If the socket is broken, using it later fails as well.
        _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        _ = stream.set_nodelay(true);
        _ = stream.set_read_timeout(Some(PATIENCE));
        _ = stream.set_write_timeout(Some(PATIENCE));
        Self {
            stream,
            unsent: Vec::new(),
            is_lost: false,
        }
    }
}
