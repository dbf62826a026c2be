//! Sockets that another server has accepted.

use std::sync::Arc;

#[cfg(feature = "deflate")]
use linerate_proto::deflate::{Agreement, Deflate};
use linerate_proto::{Config, handshake::Request};

use crate::{platform::Socket, tls::adopted::TlsConnection};

/// A connection that another HTTP server has accepted, with the request that the server has read:
/// everything needed to continue it as a WebSocket.
///
/// The socket must be a plain TCP or Unix domain socket. A TLS connection can be handed over with
/// it if the other server has accepted it with a
#[cfg_attr(feature = "rustls", doc = "[`TlsAcceptor`](crate::TlsAcceptor).")]
#[cfg_attr(not(feature = "rustls"), doc = "`TlsAcceptor`.")]
///
/// ```no_run
/// use std::{io::Read, net::TcpListener};
///
/// use linerate_reactor::{
///     Adoption, Remote,
///     handshake::{HandshakeLimits, RequestReader},
/// };
///
/// /// Hands over one client if it requests a WebSocket.
/// fn hand_over(listener: &TcpListener, remote: &Remote) -> Result<(), Box<dyn std::error::Error>> {
///     let (mut socket, _) = listener.accept()?;
///     let mut reader = RequestReader::new(HandshakeLimits::default());
///     let mut buffer = [0; 4_096];
///     loop {
///         let bytes = socket.read(&mut buffer)?;
///         if let Some((request, head_bytes)) = reader.handle_input(&buffer[..bytes])? {
///             if request.asks_for_websocket() {
///                 let behind = buffer[head_bytes..bytes].to_vec();
///                 remote.adopt(Adoption::new(socket, request).with_input(behind))?;
///             }
///             return Ok(());
///         }
///     }
/// }
/// ```
///
/// A server that parses requests into its own types can build the request with
/// [`Request::from_parts`].
#[derive(Debug)]
pub struct Adoption {
    pub(crate) socket: Socket,
    pub(crate) request: Request,
    pub(crate) input: Vec<u8>,
    pub(crate) path: Option<String>,
    /// The TLS connection on the socket; `None` without TLS.
    pub(crate) tls: Option<TlsConnection>,
    /// What the other server has answered; `None` if it has not.
    pub(crate) answer: Option<Answer>,
}

/// What a server that has answered a request knows about the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The settings of the engine; `None` for those of the reactor.
    pub(crate) config: Option<Arc<Config>>,
    #[cfg(feature = "deflate")]
    pub(crate) deflate: Option<(Agreement, Deflate)>,
}

impl Adoption {
    /// Creates the adoption of a socket from which nothing was read after the head of `request`,
    /// and whose request has not been answered yet. The handler of the request's path answers it
    /// and may refuse it, after the same checks as for a request to the reactor itself.
    pub fn new(socket: impl Into<Socket>, request: Request) -> Self {
        Self {
            socket: socket.into(),
            request,
            input: Vec::new(),
            path: None,
            tls: None,
            answer: None,
        }
    }

    /// Sets the bytes that were read after the head: the first frames, not encrypted.
    pub fn with_input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// Continues the TLS connection on the socket: what it has received but not
    /// [read](TlsConnection::read) comes after the [input](Self::with_input), and what is
    /// [unsent](TlsConnection::unsent) is sent before anything else. A protocol error of the peer
    /// ends the connection after the frames before it.
    #[cfg(feature = "rustls")]
    pub fn with_tls(mut self, tls: TlsConnection) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Removes and returns the TLS connection.
    #[cfg(feature = "rustls")]
    pub fn take_tls(&mut self) -> Option<TlsConnection> {
        self.tls.take()
    }

    /// Uses the handler of `path`, regardless of the path in the request.
    pub fn with_path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Marks the request as answered with 101 by the other server. Nothing is checked any more,
    /// [`Handler::accept`](crate::Handler::accept) is not called, and the connection is dropped if
    /// its path has no handler.
    pub fn answered(mut self) -> Self {
        self.answer.get_or_insert_default();
        self
    }

    /// Marks the request as [answered](Self::answered), with an answer that agrees to compress
    /// messages. `options` are those of the acceptance that was sent.
    #[cfg(feature = "deflate")]
    pub fn with_deflate(mut self, agreement: Agreement, options: &Deflate) -> Self {
        self.answer.get_or_insert_default().deflate = Some((agreement, *options));
        self
    }

    /// Marks the request as [answered](Self::answered), and sets the limits on messages, the
    /// keepalive and the time for the closing handshake. Default:
    /// [`Options::config`](crate::Options::config).
    pub fn with_config(mut self, config: Arc<Config>) -> Self {
        self.answer.get_or_insert_default().config = Some(config);
        self
    }

    /// Returns the socket, the request, and the bytes that were read after it.
    pub fn into_parts(self) -> (Socket, Request, Vec<u8>) {
        (self.socket, self.request, self.input)
    }
}

/// The error returned when the connection limit is reached. It contains the adoption, so that the
/// other server can answer the client.
#[derive(Debug, thiserror::Error)]
#[error("connection limit of {connections_max} reached")]
pub struct AdoptError {
    pub(crate) adoption: Box<Adoption>,
    pub(crate) connections_max: usize,
}

impl AdoptError {
    /// Returns the adoption.
    pub fn into_adoption(self) -> Adoption {
        *self.adoption
    }
}
