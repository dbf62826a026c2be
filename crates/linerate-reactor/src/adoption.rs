//! Sockets that another server has accepted.

use std::{error::Error, fmt, os::fd::OwnedFd};

use linerate_proto::handshake::Request;

/// A connection that another HTTP server has accepted and whose request it has read: what it takes
/// to go on with it as a WebSocket.
///
/// The socket has to be plain, of TCP or of the Unix domain; TLS that the other server speaks can't be
/// handed over with it.
///
/// ```no_run
/// use std::{io::Read, net::TcpListener};
///
/// use linerate_reactor::{
///     Adoption, Remote,
///     handshake::{HandshakeLimits, RequestReader},
/// };
///
/// /// Hands one client over, if it asks for a WebSocket.
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
/// A server that keeps what it has parsed in types of its own makes the request by
/// [`Request::from_parts`].
#[derive(Debug)]
pub struct Adoption {
    pub(crate) socket: OwnedFd,
    pub(crate) request: Request,
    pub(crate) input: Vec<u8>,
    pub(crate) path: Option<String>,
    pub(crate) is_answered: bool,
}

impl Adoption {
    /// Creates the adoption of a socket from which nothing was read behind the head of `request`,
    /// and which is to be answered: by the handler of the request's path, which may refuse it, with
    /// all checks that a request to the reactor itself has to stand.
    pub fn new(socket: impl Into<OwnedFd>, request: Request) -> Self {
        Self {
            socket: socket.into(),
            request,
            input: Vec::new(),
            path: None,
            is_answered: false,
        }
    }

    /// Sets what was read behind the head: the first frames.
    pub fn with_input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// Leaves it to the handler of `path`, whatever the request asks for.
    pub fn with_path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Says that the other server has written the answer, a 101 to this request: nothing is checked
    /// any more, [`Handler::accept`](crate::Handler::accept) is not asked, and the connection is
    /// dropped if there is no handler for its path.
    pub fn answered(mut self) -> Self {
        self.is_answered = true;
        self
    }

    /// Returns the socket, the request, and what was read behind it.
    pub fn into_parts(self) -> (OwnedFd, Request, Vec<u8>) {
        (self.socket, self.request, self.input)
    }
}

/// There are as many connections as there may be; the adoption can be had back, so that the client
/// gets an answer.
#[derive(Debug)]
pub struct AdoptError {
    pub(crate) adoption: Box<Adoption>,
    pub(crate) connections_max: usize,
}

impl AdoptError {
    /// Returns what was to be adopted.
    pub fn into_adoption(self) -> Adoption {
        *self.adoption
    }
}

impl fmt::Display for AdoptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections_max = self.connections_max;
        write!(
            f,
            "there are {connections_max} connections, which is the limit"
        )
    }
}

impl Error for AdoptError {}
