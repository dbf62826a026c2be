//! Errors when a gateway is bound.

use std::{io, net::SocketAddr, path::PathBuf};

use linerate_broker::ConnectError;
use thiserror::Error;
use tokio::runtime::TryCurrentError;

use crate::{server::CertificateError, session::SettingsError, takeover::TakeoverError};

/// The reason why a gateway could not be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The certificates of the broker's authorities could not be read.
    #[error("cannot read broker.tls_authorities {}", path.display())]
    Authorities {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The broker's URL or options cannot be used.
    #[error(transparent)]
    Broker(#[from] ConnectError),
    /// The file with the broker's URL could not be read.
    #[error("cannot read broker.url")]
    BrokerUrl {
        /// The cause.
        source: io::Error,
    },
    /// The certificate of the server cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// An address could not be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// There is no tokio runtime.
    #[error("a gateway must be bound within a tokio runtime")]
    NoRuntime(#[from] TryCurrentError),
    /// A key or an origin is invalid, or a backend cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The process cannot take over from another one, or cannot listen for one that takes over.
    #[error(transparent)]
    Takeover(#[from] TakeoverError),
    /// The workers cannot be created.
    #[error("cannot create the runtime of a worker")]
    Workers(#[source] io::Error),
}

impl BindError {
    pub(super) const fn listen(address: SocketAddr, source: io::Error) -> Self {
        Self::Listen { address, source }
    }
}
