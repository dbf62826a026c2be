//! The way to a server: names, sockets and TLS, each step with a deadline of its own.

mod deadline;
mod error;
mod eyeballs;
mod resolve;
mod target;

use std::{fmt, io, net::IpAddr, sync::Arc};

use tokio::net::TcpStream;
use url::Host;

use crate::{Result, link::Transport};

pub(crate) use deadline::Deadline;
pub use deadline::{Phase, Timeouts};
pub use error::DialError;
pub use resolve::{Resolve, Resolving, SystemResolver};
pub(crate) use target::Target;

/// Says whether a client may connect to an address.
pub(crate) type AddressCheck = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// How a client gets to its servers.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) timeouts: Timeouts,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) address_check: Option<AddressCheck>,
    #[cfg(feature = "rustls")]
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    /// Whose certificate is asked for and checked, if that is not the host of the URL.
    #[cfg(feature = "rustls")]
    pub(crate) server_name: Option<Host<String>>,
    /// What is offered by ALPN (RFC 7301) unless the TLS configuration offers something itself.
    #[cfg(feature = "rustls")]
    pub(crate) alpn: Vec<Vec<u8>>,
}

impl Default for Dialer {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            resolver: Arc::new(SystemResolver),
            address_check: None,
            #[cfg(feature = "rustls")]
            tls: None,
            #[cfg(feature = "rustls")]
            server_name: None,
            #[cfg(feature = "rustls")]
            alpn: vec![b"http/1.1".to_vec()],
        }
    }
}

/// A stream to a server, ready for the opening handshake.
pub(crate) struct Dialed {
    pub(crate) io: Transport,
    /// What ALPN has agreed on; `None` without TLS, and if the server takes no part in ALPN.
    pub(crate) alpn: Option<Vec<u8>>,
}

impl Dialer {
    /// Connects to where `target` is; with TLS if its scheme says so.
    ///
    /// # Errors
    /// A step failed or was not over in time.
    pub(crate) async fn dial(&self, target: &Target, deadline: &Deadline) -> Result<Dialed> {
        let stream = self
            .connect_tcp(&target.host, target.port, deadline)
            .await?;
        if !target.is_secure {
            return Ok(Dialed {
                io: Transport::Tcp(stream),
                alpn: None,
            });
        }
        self.secure(stream, target, deadline).await
    }

    /// Resolves the host and connects to the first of its addresses that answers.
    async fn connect_tcp(
        &self,
        host: &Host<String>,
        port: u16,
        deadline: &Deadline,
    ) -> Result<TcpStream, DialError> {
        let limit = self.timeouts.resolve;
        let resolved = resolve::resolve(&*self.resolver, host, port);
        let mut addresses = deadline.keep(Phase::Resolve, limit, resolved).await??;
        if let Some(check) = &self.address_check {
            let resolved = addresses.len();
            addresses.retain(|address| check(address.ip()));
            if addresses.is_empty() {
                return Err(DialError::AddressesDenied {
                    addresses: resolved,
                });
            }
        }
        let raced = eyeballs::race(eyeballs::order(addresses), connect);
        deadline
            .keep(Phase::Connect, self.timeouts.connect, raced)
            .await?
    }

    #[cfg(feature = "rustls")]
    async fn secure(
        &self,
        stream: TcpStream,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<Dialed> {
        let host = self.server_name.as_ref().unwrap_or(&target.host);
        let connecting = crate::tls::connect(self.tls_config(), host, stream);
        let stream = deadline
            .keep(Phase::Tls, self.timeouts.tls, connecting)
            .await?
            .map_err(DialError::Tls)?;
        let alpn = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        Ok(Dialed {
            io: Transport::Other(Box::new(stream)),
            alpn,
        })
    }

    #[cfg(not(feature = "rustls"))]
    async fn secure(
        &self,
        _stream: TcpStream,
        _target: &Target,
        _deadline: &Deadline,
    ) -> Result<Dialed> {
        Err(crate::UrlError::TlsMissing.into())
    }

    #[cfg(feature = "rustls")]
    fn tls_config(&self) -> Arc<rustls::ClientConfig> {
        let config = self
            .tls
            .clone()
            .unwrap_or_else(crate::tls::default_client_config);
        if !config.alpn_protocols.is_empty() {
            return config;
        }
        let mut config = rustls::ClientConfig::clone(&config);
        config.alpn_protocols.clone_from(&self.alpn);
        Arc::new(config)
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

async fn connect(address: std::net::SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
