//! A client's socket: with or without TLS, blocking or not.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::Duration,
};

use rustls::{ClientConfig, ClientConnection, pki_types::ServerName};
use socket2::{Domain, Protocol, SockRef, Type};

/// Number of bytes of ciphertext to read at once.
const CIPHERTEXT_BYTES: usize = 64 << 10;

/// Largest amount of plaintext to encrypt at once. Ciphertext must be sent before more plaintext is
/// accepted, so this also bounds the bytes queued between the client and the kernel.
const PLAINTEXT_BYTES_MAX: usize = 64 << 10;

/// The TLS configuration of a client, and the name that the server's certificate must be valid for.
pub type TlsOptions = (Arc<ClientConfig>, ServerName<'static>);

/// A connection to a server that reads and writes plaintext.
///
/// If the stream blocks, so do reads and writes. Otherwise, what cannot be done now fails with
/// [`io::ErrorKind::WouldBlock`]. Such a socket is meant to be watched edge-triggered: after an
/// edge, read until [`drained`](Self::drained).
#[derive(Debug)]
pub struct Socket<S = TcpStream> {
    stream: S,
    tls: Option<Box<Tls>>,
    drained: bool,
}

impl Socket {
    /// Starts to connect, without blocking and without delays (`TCP_NODELAY`). Writes fail with
    /// `WouldBlock` until the connection is established.
    ///
    /// # Errors
    /// Returns an error if the server is already known to refuse, or if no socket can be created.
    pub fn connect(address: SocketAddr, tls: Option<&TlsOptions>) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let kind = Type::STREAM.nonblocking();
        let socket = socket2::Socket::new(domain, kind, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => Err(error),
            _ => Self::new(socket.into(), tls),
        }
    }

    /// Shuts down the sending side of the connection.
    ///
    /// # Errors
    /// Returns an error if the connection is broken.
    pub fn end(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Closes the connection with a reset, so that neither end keeps any state of it.
    ///
    /// # Errors
    /// Returns an error if the socket option cannot be set.
    pub fn abandon(self) -> io::Result<()> {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))
    }
}

impl<S: Read + Write> Socket<S> {
    /// Takes over a connected stream on which nothing has been sent.
    ///
    /// # Errors
    /// Returns an error if the TLS configuration is not usable.
    pub fn new(stream: S, tls: Option<&TlsOptions>) -> io::Result<Self> {
        let session = tls.map(|(config, name)| {
            let session = ClientConnection::new(Arc::clone(config), name.clone());
            session.map_err(io::Error::other)
        });
        Ok(Self {
            stream,
            tls: session.transpose()?.map(Tls::new).map(Box::new),
            drained: false,
        })
    }

    /// Returns the stream that carries the plaintext or ciphertext.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Returns the server's certificate, if the connection uses TLS.
    pub fn certificate(&self) -> Option<&[u8]> {
        let certificates = self.tls.as_ref()?.session.peer_certificates()?;
        Some(certificates.first()?)
    }

    /// Returns whether the connection uses TLS.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns whether ciphertext waits for the socket to become writable.
    pub fn wants_write(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.session.wants_write())
    }

    /// Returns whether the TLS handshake is in progress, so that nothing can be written yet.
    pub fn is_handshaking(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.session.is_handshaking())
    }

    /// Returns whether the last read returned everything that had arrived. Later input causes a new
    /// edge.
    pub fn drained(&self) -> bool {
        self.drained
    }
}

impl<S: Read + Write> Read for Socket<S> {
    /// Reads plaintext into `buffer` and returns the number of bytes; 0 is the end of the stream.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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
}

impl<S: Read + Write> Write for Socket<S> {
    /// Writes plaintext and returns how many of `bytes` were accepted. With TLS, some of them may
    /// still be queued as ciphertext that [`flush`](Self::flush) has to send.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.stream.write(bytes),
            Some(tls) => tls.write(&mut self.stream, bytes),
        }
    }

    /// Sends as much queued ciphertext as the socket accepts, and continues the TLS handshake. Call
    /// this whenever the socket is ready.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => self.stream.flush(),
            Some(tls) => match tls.drive(&mut self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                result => result,
            },
        }
    }
}

impl<S: AsFd> AsFd for Socket<S> {
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
    fn new(mut session: ClientConnection) -> Self {
        session.set_buffer_limit(Some(2 * PLAINTEXT_BYTES_MAX));
        Self {
            session,
            ciphertext: vec![0; CIPHERTEXT_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            drained: false,
            ended: false,
        }
    }

    fn read<S: Read + Write>(&mut self, stream: &mut S, buffer: &mut [u8]) -> io::Result<usize> {
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
            // A stream that blocks must not be read while there is plaintext to return.
            if filled == buffer.len() || (filled > 0 && self.start == self.end) {
                return Ok(filled);
            }
            self.fill(stream)?;
        }
    }

    fn write<S: Read + Write>(&mut self, stream: &mut S, bytes: &[u8]) -> io::Result<usize> {
        self.drive(stream)?;
        let bytes = &bytes[..bytes.len().min(PLAINTEXT_BYTES_MAX)];
        let taken = self.session.writer().write(bytes)?;
        match self.send(stream) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends all ciphertext and proceeds until the TLS handshake is complete.
    fn drive<S: Read + Write>(&mut self, stream: &mut S) -> io::Result<()> {
        loop {
            self.send(stream)?;
            if !self.session.is_handshaking() {
                return Ok(());
            }
            self.fill(stream)?;
        }
    }

    fn send<S: Read + Write>(&mut self, stream: &mut S) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(stream)?;
        }
        Ok(())
    }

    /// Passes up to about 4 KiB of ciphertext to the session, after reading more if the buffer is
    /// empty.
    fn fill<S: Read + Write>(&mut self, stream: &mut S) -> io::Result<()> {
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
