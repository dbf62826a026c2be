//! Why a process cannot take over, or cannot be taken over.

use std::{io, path::PathBuf, time::Duration};

use thiserror::Error;

/// The reason why a process cannot take over the listeners of another, or cannot let another do so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TakeoverError {
    /// The socket cannot be bound.
    #[error("cannot listen on server.takeover_socket {}", path.display())]
    Bind {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The broker cannot be reached. The old process continues.
    #[error(
        "nothing arrived from the broker within {} s; the running process continues to serve",
        waited.as_secs()
    )]
    Broker {
        /// How long this process waited.
        waited: Duration,
    },
    /// The socket cannot be connected to.
    #[error("cannot connect to server.takeover_socket {}", path.display())]
    Connect {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The takeover failed, and the old process continues to serve.
    #[error("cannot take over; the running process continues to serve")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another process listens on the socket.
    #[error(
        "another process listens on server.takeover_socket {}; start with --takeover to take over \
         from it, or configure another path", path.display()
    )]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// The file at the path is not a socket.
    #[error(
        "server.takeover_socket {} is a file that is not a socket; remove it, or configure another \
         path", path.display()
    )]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// The setting is missing.
    #[error(
        "a takeover requires server.takeover_socket, the path at which the running process listens"
    )]
    NotConfigured,
    /// The operating system is not Linux.
    #[error("takeovers need Linux; unset server.takeover_socket and omit --takeover")]
    Unsupported,
}
