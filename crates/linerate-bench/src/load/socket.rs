//! A client's socket: TCP without delays, with or without TLS, that never blocks.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConnection;
use socket2::{Domain, Protocol, Type};

use super::error::system;
use super::{LoadError, Target};

/// Ciphertext that is read at once.
const CIPHERTEXT_BYTES: usize = 64 << 10;

/// Plaintext that is encrypted at once. What is encrypted has to be sent before more is taken, so
/// this also bounds what lies between us and the kernel.
const PLAINTEXT_BYTES_MAX: usize = 64 << 10;

/// A TCP connection to the server, in terms of plaintext.
///
/// Nothing blocks: what cannot be done now fails with [`io::ErrorKind::WouldBlock`]. It is made to
/// be watched edge-triggered: after an edge, read until [`drained`](Self::drained).
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    tls: Option<Box<Tls>>,
    drained: bool,
}

impl Socket {
    /// Starts to connect; what is written before the connection stands would block.
    ///
    /// # Errors
    ///
    /// The server refuses, as far as that is known at once, or we have no socket left.
    pub(crate) fn connect(target: &Target) -> Result<Self, LoadError> {
        let domain = Domain::for_address(target.address);
        let socket = socket2::Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))
            .map_err(system("no socket can be had"))?;
        socket
            .set_tcp_nodelay(true)
            .map_err(system("TCP_NODELAY cannot be set"))?;
        match socket.connect(&target.address.into()) {
            Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => {
                return Err(LoadError::of_socket(error));
            }
            _ => {}
        }
        let tls = match &target.tls {
            None => None,
            Some((config, name)) => {
                let mut session = ClientConnection::new(Arc::clone(config), name.clone())
                    .map_err(LoadError::Tls)?;
                session.set_buffer_limit(Some(2 * PLAINTEXT_BYTES_MAX));
                Some(Box::new(Tls::new(session)))
            }
        };
        Ok(Self {
            stream: socket.into(),
            tls,
            drained: false,
        })
    }

    /// Reads plaintext into `buffer`; 0 is the end of the stream.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = match &mut self.tls {
            None => self.stream.read(buffer),
            Some(tls) => tls.read(&mut self.stream, buffer),
        };
        self.drained = match &result {
            Ok(bytes) => match &self.tls {
                None => *bytes < buffer.len(),
                // What a read of ciphertext gave may fill `buffer` more than once.
                Some(tls) => *bytes < buffer.len() && tls.drained,
            },
            Err(_) => true,
        };
        result
    }

    /// Writes plaintext and tells how much of `bytes` was taken. Under TLS that is either sent, or
    /// ciphertext that [`flush`](Self::flush) has to send on.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.stream.write(bytes),
            Some(tls) => tls.write(&mut self.stream, bytes),
        }
    }

    /// Sends ciphertext that could not be sent before, as far as that goes now, and goes on with the
    /// TLS handshake. Call it whenever the socket is ready.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => match tls.drive(&mut self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                result => result,
            },
        }
    }

    /// Returns whether what is read and written is ciphertext on its way.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns whether ciphertext waits for the socket to become writable.
    pub(crate) fn wants_write(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.session.wants_write())
    }

    /// Returns whether TLS is not set up yet, so that nothing can be written.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.session.is_handshaking())
    }

    /// Returns whether the last read took all that had come. More that comes is a new edge.
    pub(crate) fn drained(&self) -> bool {
        self.drained
    }

    /// Tells the server that nothing more will be sent.
    pub(crate) fn end(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Has the connection reset when it is dropped, so that neither end keeps anything of it.
    ///
    /// # Errors
    ///
    /// The option is not to be had.
    pub(crate) fn abandon(self) -> Result<(), LoadError> {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .map_err(system("SO_LINGER cannot be set"))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// `EINPROGRESS`, which `io::ErrorKind` has no stable name for.
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

/// A TLS session and the ciphertext that was read for it.
#[derive(Debug)]
struct Tls {
    session: ClientConnection,
    /// rustls takes 4 KiB at a time from whom it reads; reading more into a buffer of our own saves
    /// system calls.
    ciphertext: Box<[u8]>,
    /// What of `ciphertext` the session has not taken yet.
    start: usize,
    end: usize,
    /// Whether the last read of ciphertext took all that had come, and all of it is decrypted.
    drained: bool,
    ended: bool,
}

impl Tls {
    fn new(session: ClientConnection) -> Self {
        Self {
            session,
            ciphertext: vec![0; CIPHERTEXT_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            drained: false,
            ended: false,
        }
    }

    fn read(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        loop {
            match self.session.reader().read(&mut buffer[filled..]) {
                Ok(0) if filled < buffer.len() => return Ok(filled),
                Ok(bytes) => filled += bytes,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {}
                    // No close_notify: many servers do without it.
                    io::ErrorKind::UnexpectedEof => return Ok(filled),
                    _ => return Err(error),
                },
            }
            if filled == buffer.len() || (filled > 0 && self.start == self.end && self.drained) {
                return Ok(filled);
            }
            match self.fill(stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && filled > 0 => {
                    return Ok(filled);
                }
                result => result?,
            }
        }
    }

    fn write(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        self.drive(stream)?;
        let bytes = &bytes[..bytes.len().min(PLAINTEXT_BYTES_MAX)];
        let taken = self.session.writer().write(bytes)?;
        match self.send(stream) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Goes on until everything encrypted is sent and the session stands.
    fn drive(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        loop {
            self.send(stream)?;
            if !self.session.is_handshaking() {
                return Ok(());
            }
            self.fill(stream)?;
        }
    }

    fn send(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(stream)?;
        }
        Ok(())
    }

    /// Gives the session ciphertext, some 4 KiB, and reads more if there is none.
    fn fill(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            self.drained = true;
            self.end = stream.read(&mut self.ciphertext)?;
            self.drained = self.end < self.ciphertext.len();
            self.ended = self.end == 0;
        }
        let mut unread = &self.ciphertext[self.start..self.end];
        let before = unread.len();
        self.session.read_tls(&mut unread)?;
        self.start += before - unread.len();
        if let Err(error) = self.session.process_new_packets() {
            // What went wrong is what counts; the alert about it is a courtesy.
            let _ = self.session.write_tls(stream);
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        if self.ended && self.session.is_handshaking() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}
