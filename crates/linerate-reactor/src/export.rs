//! Connections that continue in another process.

use std::{fmt, io, ops::Deref, os::fd::OwnedFd, sync::Arc};

#[cfg(feature = "deflate")]
use linerate_proto::deflate::{Deflate, ThreadPool};
use linerate_proto::{
    Config,
    engine::Importer,
    portable::{self, Reader},
};
#[cfg(feature = "rustls")]
use rustls::crypto::CryptoProvider;
use zeroize::Zeroizing;

use crate::{
    options::Options,
    tls::{Tls, outcome::SecretsUnavailable},
};

/// A connection that was taken out of a [`LocalReactor`](crate::LocalReactor): its socket, and what
/// [`LocalReactor::import`](crate::LocalReactor::import) needs to continue it.
///
/// Dropping the socket closes this descriptor only. The connection lives as long as any process has
/// a descriptor of the socket, but only one process may use it at a time: output of two would be
/// mixed, and input would reach either.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// The socket, which is non-blocking.
    pub socket: OwnedFd,
    /// The state of the connection, without its socket.
    pub state: ExportedState,
}

/// The bytes of an exported state.
///
/// They contain what the peer has sent and what was sent to it, and the secrets of TLS: transmit
/// them only through channels that other users cannot read, and neither store nor log them. The
/// memory is overwritten when it is freed, and [`Debug`](fmt::Debug) prints only the number of
/// bytes.
#[derive(Clone, Eq, PartialEq)]
pub struct ExportedState(pub(crate) Zeroizing<Vec<u8>>);

impl Deref for ExportedState {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ExportedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExportedState({} bytes)", self.0.len())
    }
}

/// The error returned when a connection cannot be exported. The connection continues as it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The connection has ended, or is lost and about to end.
    #[error("connection has ended or was lost")]
    Ended,
    /// The engine cannot be exported now.
    #[error(transparent)]
    Engine(#[from] portable::ExportError),
    /// The connection is a stream.
    #[error("connection is a stream, which cannot be exported")]
    Stream,
    /// The connection is encrypted, and its secrets cannot be exported. This does not happen with
    /// a server's connections.
    #[error("connection is encrypted, and its secrets cannot be exported")]
    Tls,
}

impl From<SecretsUnavailable> for ExportError {
    fn from(_: SecretsUnavailable) -> Self {
        Self::Tls
    }
}

/// The error returned when an exported connection cannot be continued. The descriptor that was
/// passed in is closed, which ends the connection unless there is another one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The reactor cannot watch the socket.
    #[error("cannot watch the socket of an imported connection")]
    Socket(#[from] io::Error),
    /// The state has an unknown version, or is not that of a connection.
    #[error(transparent)]
    State(#[from] portable::ImportError),
}

/// The settings of connections that are imported. What was negotiated with the peer is a part of
/// their state.
///
/// ```
/// use std::sync::Arc;
///
/// use linerate_reactor::{Config, ImportOptions};
///
/// let mut config = Config::default();
/// config.limits.message_bytes_max = 64 << 10;
/// let options = ImportOptions::new().with_config(Arc::new(config));
/// # _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    #[cfg(feature = "rustls")]
    provider: Option<Arc<CryptoProvider>>,
    config: Option<Arc<Config>>,
    #[cfg(feature = "deflate")]
    deflate: Option<Deflate>,
}

impl ImportOptions {
    /// Creates the settings that follow from the options of the reactor.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limits on messages, the keepalive and the time for the closing handshake. A
    /// connection on which a longer message is arriving fails with 1009. Default:
    /// [`Options::config`].
    pub fn with_config(mut self, config: Arc<Config>) -> Self {
        self.config = Some(config);
        self
    }

    /// Sets the options of connections that compress messages. Default: [`Options::deflate`], or
    /// else the defaults of its type.
    #[cfg(feature = "deflate")]
    pub fn with_deflate(mut self, options: &Deflate) -> Self {
        self.deflate = Some(*options);
        self
    }

    /// Sets the crypto provider of encrypted connections, which must have their cipher suites.
    /// Default: the one that the program has installed, or else that of the feature `ring`.
    #[cfg(feature = "rustls")]
    pub fn with_crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Continues the TLS of a connection.
    #[cfg(feature = "rustls")]
    pub(crate) fn import_tls(
        &self,
        state: &mut Reader<'_>,
    ) -> Result<Box<Tls>, portable::ImportError> {
        match &self.provider {
            Some(provider) => Tls::import(state, provider),
            None => Tls::import(state, &linerate_tls::provider()),
        }
    }

    /// Refuses to continue the TLS of a connection.
    #[cfg(not(feature = "rustls"))]
    pub(crate) fn import_tls(&self, _: &mut Reader<'_>) -> Result<Box<Tls>, portable::ImportError> {
        let (field, value) = ("TLS in a program without it", 1);
        Err(portable::ImportError::Invalid { field, value })
    }

    /// Returns what builds the engines. `config` is that of the reactor.
    pub(crate) fn importer(&self, config: &Arc<Config>, options: &Options) -> Importer {
        let importer = Importer::new(self.config.as_ref().unwrap_or(config).clone());
        #[cfg(feature = "deflate")]
        {
            let deflate = self.deflate.or(options.deflate).unwrap_or_default();
            importer.with_deflate(&deflate, &ThreadPool)
        }
        #[cfg(not(feature = "deflate"))]
        {
            _ = options;
            importer
        }
    }
}
