//! A connection over any transport: its bytes, how it ends, and what its layers object to.

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

/// The operations of a connection, whatever its transport.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection over any transport.
pub(crate) type Connection = Box<dyn ByteStream>;

/// The last known state of a connection, or of a stream on it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum End {
    /// The peer ended it in an orderly way.
    Fin,
    /// It is still open.
    #[default]
    Open,
    /// It was reset.
    Reset,
}

/// Something that the peer must not send. It travels inside an [`std::io::Error`].
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct Fault(pub(crate) String);
