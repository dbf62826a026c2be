//! Connecting to a server over QUIC (RFC 9114 §3).

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use linerate_proto::url::Host;
use quinn::{ClientConfig, Connection, Endpoint};

use super::{Deadline, DialError, Dialer, Http3Error, Target};

impl Dialer {
    /// Connects to `target` over QUIC.
    ///
    /// # Errors
    /// The target cannot be reached over HTTP/3, or a step failed or took too long.
    pub(crate) async fn dial_quic(
        &self,
        target: &Target,
        config: ClientConfig,
        deadline: &Deadline,
    ) -> Result<Connection, DialError> {
        if !target.is_secure {
            return Err(DialError::Http3(Http3Error::Insecure));
        }
        let proxy = self.proxy.proxy_for(target).map_err(DialError::Proxy)?;
        if proxy.is_some() {
            return Err(DialError::Http3(Http3Error::Proxied));
        }
        let name = match self.server_name.as_ref().unwrap_or(&target.host) {
            Host::Name(name) => name.clone(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let addresses = self.resolve(&target.host, target.port, deadline).await?;
        let addresses = self.allowed(addresses)?;
        let connect = |address| connect(address, config.clone(), &name);
        self.race(addresses, connect, deadline).await
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
