//! Connecting to a server over QUIC (RFC 9114 §3).

use std::{
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use linerate_proto::url::Host;
use quinn::{ClientConfig, Connection, Endpoint};

use super::{Deadline, DialError, Dialer, Phase, Target, eyeballs};
use crate::{Http3Limits, Result};

/// Why a server cannot be reached over HTTP/3.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Http3Error {
    /// The URL starts with `ws://`, but HTTP/3 always uses TLS.
    Insecure,
    /// A proxy is configured, but proxies support only TCP.
    Proxied,
    /// The server's settings do not allow WebSockets (RFC 9220 §3).
    WebSocketsMissing,
}

impl Dialer {
    /// Connects to `target` over QUIC.
    ///
    /// # Errors
    /// The target cannot be reached over HTTP/3, or a step failed or took too long.
    pub(crate) async fn dial_quic(
        &self,
        target: &Target,
        limits: &Http3Limits,
        deadline: &Deadline,
    ) -> Result<Connection> {
        if !target.is_secure {
            return Err(Http3Error::Insecure.into());
        }
        let proxy = self.proxy.proxy_for(target).map_err(DialError::Proxy)?;
        if proxy.is_some() {
            return Err(Http3Error::Proxied.into());
        }
        let config = linerate_h3::client_config(&self.tls_config(), limits)?;
        let name = match self.server_name.as_ref().unwrap_or(&target.host) {
            Host::Name(name) => name.clone(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let addresses = self.resolve(&target.host, target.port, deadline).await?;
        let addresses = eyeballs::order(self.allowed(addresses)?);
        let connect = |address| connect(address, config.clone(), &name);
        let raced = eyeballs::race(addresses, connect);
        Ok(deadline
            .keep(Phase::Connect, self.timeouts.connect, raced)
            .await??)
    }
}

/// Connects from a new socket, which is closed with the connection.
async fn connect(address: SocketAddr, config: ClientConfig, name: &str) -> io::Result<Connection> {
    let local: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let endpoint = Endpoint::client(local)?;
    let connecting = endpoint
        .connect_with(config, address, name)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok(connecting.await?)
}

impl From<Http3Error> for crate::Error {
    fn from(error: Http3Error) -> Self {
        DialError::Http3(error).into()
    }
}

impl fmt::Display for Http3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Insecure => "HTTP/3 requires TLS: the URL must start with wss://",
            Self::Proxied => "HTTP/3 cannot use a proxy; connect without one",
            Self::WebSocketsMissing => "server does not allow WebSockets over HTTP/3",
        })
    }
}

impl std::error::Error for Http3Error {}
