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

/// Number of bytes of ciphertext to read at once.
const CIPHERTEXT_BYTES: usize = 64 << 10;

/// Largest amount of plaintext to encrypt at once. Ciphertext must be sent before more plaintext is
/// accepted, so this also bounds the bytes queued between the client and the kernel.
const PLAINTEXT_BYTES_MAX: usize = 64 << 10;

/// A TCP connection to the server that reads and writes plaintext.
///
/// No method blocks: what cannot be done now fails with [`io::ErrorKind::WouldBlock`]. The socket
/// is meant to be watched edge-triggered: after an edge, read until [`drained`](Self::drained).
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    tls: Option<Box<Tls>>,
    drained: bool,
}

impl Socket {
    /// Starts to connect. Writes fail with `WouldBlock` until the connection is established.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is already known to refuse, or if no socket can be created.
    pub(crate) fn connect(target: &Target) -> Result<Self, LoadError> {
        let domain = Domain::for_address(target.address);
        let socket = socket2::Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))
            .map_err(system("cannot create a socket"))?;
        socket
            .set_tcp_nodelay(true)
            .map_err(system("cannot set TCP_NODELAY"))?;
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

    /// Reads plaintext into `buffer` and returns the number of bytes; 0 is the end of the stream.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = match &mut self.tls {
            None => self.stream.read(buffer),
            Some(tls) => tls.read(&mut self.stream, buffer),
        };
        self.drained = match &result {
            Ok(bytes) => match &self.tls {
                None => *bytes < buffer.len(),
                // One read of ciphertext may yield enough plaintext to fill `buffer` more than
                // once.
                Some(tls) => *bytes < buffer.len() && tls.drained,
            },
            Err(_) => true,
        };
        result
    }

    /// Writes plaintext and returns how many of `bytes` were accepted. With TLS, some of them may
    /// still be queued as ciphertext that [`flush`](Self::flush) has to send.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.stream.write(bytes),
            Some(tls) => tls.write(&mut self.stream, bytes),
        }
    }

    /// Sends as much queued ciphertext as the socket accepts, and continues the TLS handshake. Call
    /// this whenever the socket is ready.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => match tls.drive(&mut self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                result => result,
            },
        }
    }

    /// Returns whether the connection uses TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns whether ciphertext waits for the socket to become writable.
    pub(crate) fn wants_write(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.session.wants_write())
    }

    /// Returns whether the TLS handshake is in progress, so that nothing can be written yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.session.is_handshaking())
    }

    /// Returns whether the last read returned everything that had arrived. Later input causes a new
    /// edge.
    pub(crate) fn drained(&self) -> bool {
        self.drained
    }

    /// Shuts down the sending side of the connection.
    pub(crate) fn end(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Closes the connection with a reset, so that neither end keeps any state of it.
    ///
    /// # Errors
    ///
    /// Returns an error if the socket option cannot be set.
    pub(crate) fn abandon(self) -> Result<(), LoadError> {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .map_err(system("cannot set SO_LINGER"))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// `EINPROGRESS`, for which `io::ErrorKind` has no stable name.
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

/// A TLS session and the ciphertext that was read for it.
#[derive(Debug)]
struct Tls {
    session: ClientConnection,
    /// rustls reads at most 4 KiB at a time. Reading more into this buffer saves system calls.
    ciphertext: Box<[u8]>,
    /// Range of `ciphertext` that the session has not consumed yet.
    start: usize,
    end: usize,
    /// True if the last read returned all ciphertext that had arrived, and all of it is decrypted.
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
                    // Many servers do not send a close_notify.
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

    /// Sends all ciphertext and proceeds until the TLS handshake is complete.
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

    /// Passes up to about 4 KiB of ciphertext to the session, after reading more if the buffer is
    /// empty.
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
            // The error matters; the alert that reports it to the server is optional.
            let _ = self.session.write_tls(stream);
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        if self.ended && self.session.is_handshaking() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}
