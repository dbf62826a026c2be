//! Connecting to a server: name resolution, sockets, proxies and TLS, each step with its own
//! timeout.

mod deadline;
mod error;
mod eyeballs;
mod proxy;
#[cfg(feature = "http3")]
mod quic;
mod redirect;
mod resolve;
mod target;
mod transient;

#[cfg(unix)]
use std::path::Path;
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use linerate_proto::url::Host;
pub use linerate_proto::url::UrlError;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

pub use crate::attempts::AttemptsExhausted;
use crate::transport::Transport;

pub(crate) use deadline::Deadline;
pub use deadline::Timeouts;
#[cfg(feature = "http3")]
pub use error::Http3Error;
pub use error::{Attempt, DialError, Phase};
use proxy::Destination;
pub(crate) use proxy::ProxyChoice;
pub use proxy::{Proxy, ProxyError, ProxyUrlError};
pub use redirect::RedirectError;
pub(crate) use redirect::is_redirect;
pub use resolve::{Resolve, ResolveFuture, SystemResolver};
pub(crate) use target::{Target, basic};
pub(crate) use transient::is_transient_io;

/// A function that returns whether a client may connect to an address.
pub(crate) type AddressCheck = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// How a client connects to its servers.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) timeouts: Timeouts,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) address_check: Option<AddressCheck>,
    pub(crate) proxy: ProxyChoice,
    #[cfg(feature = "rustls")]
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    /// The host whose certificate is requested and verified, if it is not the host in the URL.
    #[cfg(feature = "rustls")]
    pub(crate) server_name: Option<Host>,
    /// The ALPN protocols to offer (RFC 7301), unless the TLS configuration has its own.
    #[cfg(feature = "rustls")]
    pub(crate) alpn: Vec<Vec<u8>>,
}

impl Default for Dialer {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            resolver: Arc::new(SystemResolver),
            address_check: None,
            proxy: ProxyChoice::default(),
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
pub(crate) struct DialedStream {
    pub(crate) io: Transport,
    /// The protocol that ALPN selected; `None` without TLS, or if the server does not support ALPN.
    pub(crate) alpn: Option<Vec<u8>>,
}

impl Dialer {
    /// Connects to `target`, through a proxy if one is configured for it, and with TLS if the
    /// scheme requires it.
    ///
    /// # Errors
    /// A step failed or took too long.
    pub(crate) async fn dial(
        &self,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<DialedStream, DialError> {
        let proxy = self.proxy.proxy_for(target).map_err(DialError::Proxy)?;
        let io = match proxy {
            Some(proxy) => self.connect_through(&proxy, target, deadline).await?,
            None => {
                let addresses = self.resolve(&target.host, target.port, deadline).await?;
                let addresses = self.allowed(addresses)?;
                Transport::Tcp(self.connect_tcp(addresses, deadline).await?)
            }
        };
        self.secure_if_asked(io, target, deadline).await
    }

    /// Connects to the Unix socket at `path`, with TLS if the scheme of `target` requires it.
    ///
    /// # Errors
    /// A step failed or took too long.
    #[cfg(unix)]
    pub(crate) async fn dial_unix(
        &self,
        path: &Path,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<DialedStream, DialError> {
        let limit = self.timeouts.connect;
        let connected = deadline.keep(Phase::Connect, limit, UnixStream::connect(path));
        let stream = connected
            .await?
            .map_err(|error| DialError::UnixConnectFailed {
                path: path.to_owned(),
                error,
            })?;
        let io = Transport::Other(Box::new(stream));
        self.secure_if_asked(io, target, deadline).await
    }

    async fn secure_if_asked(
        &self,
        io: Transport,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<DialedStream, DialError> {
        match target.is_secure {
            true => self.secure(io, target, deadline).await,
            false => Ok(DialedStream { io, alpn: None }),
        }
    }

    /// Connects to `target` through a proxy.
    async fn connect_through(
        &self,
        proxy: &Proxy,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<Transport, DialError> {
        let destination = self.destination(proxy, target, deadline).await?;
        let addresses = self.resolve(&proxy.host, proxy.port, deadline).await?;
        let stream = self.connect_tcp(addresses, deadline).await?;
        let limit = self.timeouts.proxy;
        let asked = proxy.connect(stream, &destination);
        let asked = deadline.keep(Phase::Proxy, limit, asked).await?;
        asked.map_err(DialError::Proxy)
    }

    /// Returns the destination to request from a proxy: the host itself, or one of its addresses if
    /// the proxy does not resolve names or if there is an address check.
    async fn destination(
        &self,
        proxy: &Proxy,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<Destination, DialError> {
        if proxy.takes_names() && self.address_check.is_none() {
            return Ok(Destination::new(target.host.clone(), target.port));
        }
        let addresses = self.resolve(&target.host, target.port, deadline).await?;
        let addresses = self.allowed(addresses)?;
        // There is at least one address, because `allowed` returns an error otherwise.
        let first = addresses.first().copied();
        first
            .map(Destination::from)
            .ok_or(DialError::AddressesDenied { addresses: 0 })
    }

    /// Returns the addresses of a host.
    async fn resolve(
        &self,
        host: &Host,
        port: u16,
        deadline: &Deadline,
    ) -> Result<Vec<SocketAddr>, DialError> {
        let resolved = resolve::resolve(&*self.resolver, host, port);
        deadline
            .keep(Phase::Resolve, self.timeouts.resolve, resolved)
            .await?
    }

    /// Returns the addresses that the application allows.
    fn allowed(&self, mut addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, DialError> {
        if let Some(check) = &self.address_check {
            let resolved = addresses.len();
            addresses.retain(|address| check(address.ip()));
            if addresses.is_empty() {
                return Err(DialError::AddressesDenied {
                    addresses: resolved,
                });
            }
        }
        Ok(addresses)
    }

    /// Connects to the first of the addresses that answers.
    async fn connect_tcp(
        &self,
        addresses: Vec<SocketAddr>,
        deadline: &Deadline,
    ) -> Result<TcpStream, DialError> {
        self.race(addresses, connect, deadline).await
    }

    /// Connects with `connect` to the first of the addresses that answers.
    async fn race<T, F>(
        &self,
        addresses: Vec<SocketAddr>,
        connect: impl FnMut(SocketAddr) -> F,
        deadline: &Deadline,
    ) -> Result<T, DialError>
    where
        F: Future<Output = io::Result<T>>,
    {
        let mut attempts = Vec::new();
        let raced = eyeballs::race(eyeballs::order(addresses), connect, &mut attempts);
        let limit = self.timeouts.connect;
        match deadline.keep(Phase::Connect, limit, raced).await {
            Ok(Some(connection)) => Ok(connection),
            Ok(None) => Err(DialError::ConnectFailed { attempts }),
            Err(error) => Err(error.with_attempts(attempts)),
        }
    }

    #[cfg(feature = "rustls")]
    async fn secure(
        &self,
        io: Transport,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<DialedStream, DialError> {
        let host = self.server_name.as_ref().unwrap_or(&target.host);
        let agreed = crate::tls::connect(self.tls_config(), host, io);
        let agreed = deadline.keep(Phase::Tls, self.timeouts.tls, agreed).await?;
        let (io, alpn) = agreed.map_err(error::of_tls)?;
        Ok(DialedStream { io, alpn })
    }

    /// Returns a dialer that offers `protocols` by ALPN instead of those in the TLS configuration.
    #[cfg(feature = "http2")]
    pub(crate) fn offering(&self, protocols: &[&[u8]]) -> Self {
        let mut dialer = self.clone();
        #[cfg(feature = "rustls")]
        {
            dialer.alpn = protocols.iter().map(|name| name.to_vec()).collect();
            if let Some(config) = &mut dialer.tls {
                Arc::make_mut(config).alpn_protocols = Vec::new();
            }
        }
        #[cfg(not(feature = "rustls"))]
        let _ = (&mut dialer, protocols);
        dialer
    }

    #[cfg(not(feature = "rustls"))]
    async fn secure(
        &self,
        _io: Transport,
        _target: &Target,
        _deadline: &Deadline,
    ) -> Result<DialedStream, DialError> {
        Err(DialError::TlsMissing)
    }

    /// Returns whether the client presents a certificate to servers that request one.
    pub(crate) fn has_client_certificate(&self) -> bool {
        #[cfg(feature = "rustls")]
        if let Some(config) = &self.tls {
            return config.client_auth_cert_resolver.has_certs();
        }
        false
    }

    /// Removes the settings that are meant for one server only.
    pub(crate) fn forget_server(&mut self) {
        #[cfg(feature = "rustls")]
        {
            self.server_name = None;
        }
    }

    #[cfg(feature = "rustls")]
    pub(crate) fn tls_config(&self) -> Arc<rustls::ClientConfig> {
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

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
