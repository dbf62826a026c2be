//! One connection of an attacker.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use linerate_testkit::Frame;
use rustix::net::sockopt;

use crate::live::Target;

/// An answer that takes longer does not come.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Peer {
    pub(super) stream: TcpStream,
    /// What the server's socket did not take so far.
    pub(super) unsent: Vec<u8>,
    pub(super) is_lost: bool,
}

impl Peer {
    /// Connects; whoever drops it resets the connection, which leaves nothing behind.
    pub(super) fn connect(server: SocketAddr) -> io::Result<Self> {
        Ok(Self::from(TcpStream::connect(server)?))
    }

    /// Connects and asks for a WebSocket; does not wait for the answer.
    pub(super) fn ask(server: SocketAddr, path: &str, more: &str) -> io::Result<Self> {
        let mut peer = Self::connect(server)?;
        peer.stream
            .write_all(Target::request(path, more).as_bytes())?;
        Ok(peer)
    }

    /// Waits for the answer to a request; whatever follows it stays where it is.
    pub(super) fn read_head(&mut self) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        Ok(head)
    }

    /// Waits until the WebSocket is open.
    pub(super) fn wait_for_open(&mut self) -> Result<()> {
        let head = self.read_head()?;
        ensure!(
            head.starts_with(b"HTTP/1.1 101 "),
            "refused: {}",
            head.escape_ascii()
        );
        Ok(())
    }

    /// Reads up to the end, and returns the code of the Close frame.
    pub(super) fn close_code(&mut self) -> Result<u16> {
        loop {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head)?;
            ensure!(head[1] < 126, "a long frame before the end");
            let mut payload = vec![0; usize::from(head[1])];
            self.stream.read_exact(&mut payload)?;
            match (head[0], &payload[..]) {
                (0x88, [high, low, ..]) => return Ok(u16::from_be_bytes([*high, *low])),
                (0x88, _) => bail!("a Close frame without a code"),
                _ => {}
            }
        }
    }

    /// Sends what there is to be sent, as far as the server takes it.
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

    /// Takes what has arrived and throws it away; notices the end.
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

    /// Blocks no more from now on.
    pub(super) fn unblock(self) -> io::Result<Self> {
        self.stream.set_nonblocking(true)?;
        Ok(self)
    }
}

impl From<TcpStream> for Peer {
    fn from(stream: TcpStream) -> Self {
        // What fails here fails when it is used, too.
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

/// Returns a frame as a client sends it, masked with zeros.
pub(super) fn frame(opcode: u8, payload: &[u8]) -> Frame {
    Frame::new(opcode, payload).with_mask(Some([0; 4]))
}
