//! One client. It is opened and subscribed with blocking calls, then read as messages arrive.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `polling` | a client that polls |
//! | `web_socket` | a client on a WebSocket |

mod polling;
mod web_socket;

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::StoryError;
use super::dialect::{Dialect, Transport};
use polling::PollingSubscriber;
use web_socket::WebSocketSubscriber;

/// Timeout of each read while a client is opened and subscribed.
const OPENING_MAX: Duration = Duration::from_secs(10);

/// Receive buffer size of a client that reads nothing.
const SLOW_BUFFER_BYTES: usize = 8 << 10;

/// What a client subscribes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubscriptionRequest {
    pub(super) address: SocketAddr,
    pub(super) dialect: Dialect,
    pub(super) transport: Transport,
    pub(super) source: u32,
    pub(super) batch_ms: u32,
}

/// A subscribed client.
#[derive(Debug)]
pub(super) enum Subscriber {
    Polling(PollingSubscriber),
    WebSocket(WebSocketSubscriber),
}

impl Subscriber {
    /// Connects, and waits until the server confirms the subscription to the messages of `source`.
    pub(super) fn open(request: SubscriptionRequest) -> Result<Self, StoryError> {
        let stream =
            TcpStream::connect(request.address).map_err(|error| request.refused(&error))?;
        Self::subscribe(stream, request)
    }

    /// Like [`open`](Self::open), for a client that will read nothing: it has a small receive
    /// buffer.
    pub(super) fn open_slow(request: SubscriptionRequest) -> Result<Self, StoryError> {
        let connect = || {
            let address = request.address;
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.set_recv_buffer_size(SLOW_BUFFER_BYTES)?;
            socket.connect(&address.into())?;
            Ok(socket.into())
        };
        let stream = connect().map_err(|error| request.refused(&error))?;
        Self::subscribe(stream, request)
    }

    fn subscribe(stream: TcpStream, request: SubscriptionRequest) -> Result<Self, StoryError> {
        configure(&stream).map_err(|error| request.refused(&error))?;
        let subscribed = match request.transport {
            Transport::Polling => PollingSubscriber::subscribe(stream, request).map(Self::Polling),
            Transport::WebSocket => {
                WebSocketSubscriber::subscribe(stream, request).map(Self::WebSocket)
            }
        };
        subscribed.map_err(|error| request.refused(&error))
    }

    /// Reads everything that has arrived, `buffer` at a time, and passes each payload that can hold
    /// messages to `on_payload`.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection has ended or the server has closed it.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        mut on_payload: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        match self {
            Self::Polling(subscriber) => subscriber.receive(buffer, &mut on_payload),
            Self::WebSocket(subscriber) => subscriber.receive(buffer, &mut on_payload),
        }
    }

    /// Returns whether the client has another connection since the last call, which is to be
    /// watched.
    pub(super) fn has_moved(&mut self) -> bool {
        match self {
            Self::Polling(subscriber) => subscriber.has_moved(),
            Self::WebSocket(_) => false,
        }
    }
}

impl AsFd for Subscriber {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Polling(subscriber) => subscriber.as_fd(),
            Self::WebSocket(subscriber) => subscriber.as_fd(),
        }
    }
}

impl SubscriptionRequest {
    fn refused(&self, error: &io::Error) -> StoryError {
        StoryError::NotSubscribed {
            peer: self.dialect.name(self.transport).into(),
            what: error.to_string(),
        }
    }
}

fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(OPENING_MAX))
}

/// Reads at least one byte. The end of the stream is an error.
fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Like [`read`], for a stream that does not block: returns `None` if nothing has arrived.
fn read_available(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match read(stream, buffer) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
