//! TLS connections that another server drives until a reactor adopts them.

use std::{
    fmt,
    io::{self, IoSlice, Read},
    sync::Arc,
};

use rustls::ServerConfig;

use super::{
    connection::{Tls, prepare_adoptable},
    info::TlsInfo,
    outcome::{Alert, Outcome, Plaintext, Sealed},
};
use crate::memory::pool::Pool;

/// Maximum number of bytes that are encrypted at once: two full records.
const WRITE_BYTES_MAX: usize = 32 << 10;

/// Starts TLS connections on the sockets of another server, which can hand them over with
/// [`Adoption::with_tls`](crate::Adoption::with_tls).
///
/// Connections of other TLS libraries cannot be handed over: a buffered connection of rustls does
/// not return the input that it has read ahead, nor the secrets that a later KeyUpdate requires.
///
/// See [`TlsConnection`] for an example. Clones share the configuration.
#[derive(Clone, Debug)]
pub struct TlsAcceptor {
    config: Arc<ServerConfig>,
}

impl TlsAcceptor {
    /// Creates an acceptor with `config`. Early data is turned off, and the extraction of secrets
    /// is turned on. Application protocols are negotiated as configured: only a connection that
    /// uses HTTP/1.1 can become a WebSocket.
    pub fn new(config: ServerConfig) -> Self {
        Self {
            config: prepare_adoptable(config),
        }
    }

    /// Starts a connection from whose socket nothing has been read.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub fn accept(&self) -> io::Result<TlsConnection> {
        let tls = Tls::server(&self.config).map_err(|failed| failed.into_error())?;
        Ok(TlsConnection {
            tls,
            sealed: Sealed::new(),
            plaintext: Vec::new(),
            read_bytes: 0,
            unsent: Vec::new(),
            sent_bytes: 0,
            outcome: Outcome::Continues,
        })
    }
}

/// The server's end of a TLS connection, without I/O: the same handshake and the same records as on
/// a connection of the reactor, which can continue it at any time.
///
/// The owner passes what it reads from the socket to [`handle_input`](Self::handle_input), reads
/// and writes plaintext, and sends what is [`unsent`](Self::unsent).
///
/// ```no_run
/// use std::{
///     io::{self, Read, Write},
///     net::TcpStream,
/// };
///
/// use linerate_reactor::{
///     Adoption, Remote, TlsAcceptor, TlsConnection,
///     handshake::{HandshakeLimits, RequestReader},
/// };
///
/// /// Sends what is unsent, and receives once.
/// fn exchange(socket: &mut TcpStream, tls: &mut TlsConnection) -> io::Result<()> {
///     socket.write_all(tls.unsent())?;
///     tls.handle_sent(tls.unsent().len());
///     let mut input = [0; 4_096];
///     match socket.read(&mut input)? {
///         0 => tls.handle_eof(),
///         bytes => tls.handle_input(&mut input[..bytes]),
///     }
///     Ok(())
/// }
///
/// /// Performs the handshake, reads a request, and hands over the connection.
/// fn hand_over(
///     mut socket: TcpStream,
///     acceptor: &TlsAcceptor,
///     remote: &Remote,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let mut tls = acceptor.accept()?;
///     let mut reader = RequestReader::new(HandshakeLimits::default());
///     let mut plaintext = [0; 4_096];
///     loop {
///         let bytes = match tls.read(&mut plaintext) {
///             Ok(0) => return Ok(()),
///             Ok(bytes) => bytes,
///             Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
///                 exchange(&mut socket, &mut tls)?;
///                 continue;
///             }
///             Err(error) => {
///                 // The alert.
///                 socket.write_all(tls.unsent())?;
///                 return Err(error.into());
///             }
///         };
///         if let Some((request, head_bytes)) = reader.handle_input(&plaintext[..bytes])? {
///             let behind = plaintext[head_bytes..bytes].to_vec();
///             let adoption = Adoption::new(socket, request).with_input(behind);
///             remote.adopt(adoption.with_tls(tls))?;
///             return Ok(());
///         }
///     }
/// }
/// ```
pub struct TlsConnection {
    tls: Box<Tls>,
    /// Always empty between two calls; kept for its memory.
    sealed: Sealed,
    /// Plaintext, of which the first `read_bytes` bytes have been read.
    plaintext: Vec<u8>,
    read_bytes: usize,
    /// Records, of which the first `sent_bytes` bytes have been sent.
    unsent: Vec<u8>,
    sent_bytes: usize,
    /// How the stream from the peer continues after the plaintext.
    outcome: Outcome,
}

/// A TLS connection that the reactor continues.
pub(crate) struct AdoptedTls {
    pub(crate) tls: Box<Tls>,
    /// Plaintext that the other server has not read.
    pub(crate) plaintext: Vec<u8>,
    /// Records that the other server has not sent.
    pub(crate) unsent: Vec<u8>,
    /// How the stream from the peer continues after the plaintext.
    pub(crate) outcome: Outcome,
}

impl TlsConnection {
    /// Takes bytes that were read from the socket, and decrypts them in place. The start of a
    /// record that has not arrived completely is kept, even across an adoption.
    ///
    /// [`read`](Self::read) reports a violation of the TLS protocol, after the plaintext that
    /// arrived before it. The owner limits how much it passes before it reads.
    pub fn handle_input(&mut self, input: &mut [u8]) {
        let mut pool = Pool::default();
        let mut at = 0;
        while at < input.len() && matches!(self.outcome, Outcome::Continues) {
            let rest = &mut input[at..];
            let taken = self.tls.handle_input(rest, &mut self.sealed, &mut pool);
            let plaintext = match &taken.plaintext {
                Plaintext::InPlace(bytes) => &rest[..*bytes],
                Plaintext::Joined(record, bytes) => &record[..*bytes],
            };
            self.plaintext.extend_from_slice(plaintext);
            at += taken.bytes;
            self.outcome = taken.outcome;
        }
        self.collect_sealed();
    }

    /// Records that the socket has ended.
    ///
    /// [`read`](Self::read) reports it as [`UnexpectedEof`](io::ErrorKind::UnexpectedEof), unless
    /// the peer has closed its side before.
    pub fn handle_eof(&mut self) {
        if matches!(self.outcome, Outcome::Continues) {
            self.outcome = Outcome::Failed(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }

    /// Reads plaintext; returns how many bytes, which is 0 once the peer has closed its side.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if more input is needed. Any other error is the
    /// end of the connection: what is [`unsent`](Self::unsent) then explains it to the peer.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = (&self.plaintext[self.read_bytes..]).read(buffer)?;
        self.read_bytes += bytes;
        if bytes > 0 || buffer.is_empty() {
            return Ok(bytes);
        }
        // An idle connection needs no memory for plaintext.
        (self.plaintext, self.read_bytes) = (Vec::new(), 0);
        match self.check()? {
            true => Ok(0),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Encrypts the first bytes of `slices`, at most 32 KiB; returns how many bytes.
    ///
    /// The owner limits how much may be [`unsent`](Self::unsent).
    ///
    /// # Errors
    /// If the handshake is not complete, the connection was closed, or its keys are worn out.
    pub fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.tls.is_open() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut left = WRITE_BYTES_MAX;
        let some = slices.iter().map(|slice| {
            let bytes = slice.len().min(left);
            left -= bytes;
            &slice[..bytes]
        });
        let some = some.filter(|slice| !slice.is_empty());
        let result = self.tls.seal(some, &mut self.sealed);
        self.collect_sealed();
        result.map_err(|failed| failed.into_error())?;
        Ok(WRITE_BYTES_MAX - left)
    }

    /// Closes our side: tells the peer that no more data follows. What is [`unsent`](Self::unsent)
    /// is sent before.
    pub fn close(&mut self) {
        self.end(Alert::CLOSE_NOTIFY);
    }

    /// Returns the bytes to be sent.
    pub fn unsent(&self) -> &[u8] {
        &self.unsent[self.sent_bytes..]
    }

    /// Records that the first `bytes` bytes of what was [`unsent`](Self::unsent) have been sent.
    ///
    /// # Panics
    /// If fewer bytes were unsent.
    pub fn handle_sent(&mut self, bytes: usize) {
        assert!(bytes <= self.unsent().len(), "more sent than there was");
        self.sent_bytes += bytes;
        if self.sent_bytes == self.unsent.len() {
            // An idle connection needs no memory for output.
            (self.unsent, self.sent_bytes) = (Vec::new(), 0);
        }
    }

    /// Returns whether the handshake is complete.
    ///
    /// # Errors
    /// If the handshake has failed. What is [`unsent`](Self::unsent) explains it to the peer.
    pub fn is_open(&mut self) -> io::Result<bool> {
        if self.tls.is_open() {
            return Ok(true);
        }
        match self.check()? {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(false),
        }
    }

    /// Returns what the handshake has negotiated, once it is complete.
    pub fn info(&self) -> Option<TlsInfo<'_>> {
        self.tls.info()
    }

    /// Returns the parts with which the reactor continues.
    pub(crate) fn into_adopted(mut self) -> AdoptedTls {
        AdoptedTls {
            tls: self.tls,
            plaintext: self.plaintext.split_off(self.read_bytes),
            unsent: self.unsent.split_off(self.sent_bytes),
            outcome: self.outcome,
        }
    }

    /// Returns whether the peer has closed its side.
    ///
    /// # Errors
    /// If the connection has failed. The alert becomes unsent.
    fn check(&mut self) -> io::Result<bool> {
        let failed = match &mut self.outcome {
            Outcome::Continues => return Ok(false),
            Outcome::Ended => return Ok(true),
            Outcome::Failed(failed) => std::mem::take(failed),
        };
        self.end(failed.alert.unwrap_or(Alert::CLOSE_NOTIFY));
        Err(failed.into_error())
    }

    fn end(&mut self, alert: Alert) {
        self.tls.close(alert, &mut self.sealed);
        self.collect_sealed();
    }

    /// Moves the new records to those that are unsent.
    fn collect_sealed(&mut self) {
        for record in self.sealed.drain(..) {
            if self.unsent.is_empty() {
                self.unsent = record;
            } else {
                self.unsent.extend_from_slice(&record);
            }
        }
    }
}

impl fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnection")
            .field("info", &self.info())
            .finish_non_exhaustive()
    }
}
