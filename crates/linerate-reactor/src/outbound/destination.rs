//! Destinations of outbound connections.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use linerate_proto::{
    handshake::{BuildError, ClientHandshake, Origin},
    url::{Host, Url, UrlError},
};
#[cfg(feature = "rustls")]
use rustls::pki_types::ServerName;

#[cfg(feature = "rustls")]
use crate::tls;
use crate::tls::Peer;

/// The URL to connect to, and the options of the handshake. Clones are cheap, however many
/// connections use the same destination.
///
/// ```
/// use linerate_reactor::Destination;
///
/// let feed = Destination::parse("ws://127.0.0.1:9001/feed?symbol=ABC")?
///     .with_subprotocol("ticks.v1")?
///     .with_header("Authorization", "Bearer abc")?;
/// let numbered: Vec<_> = (0..3).map(|number| feed.clone().with_tag(number)).collect();
/// assert_eq!(numbered[2].tag(), 2);
/// # Ok::<(), linerate_reactor::DestinationError>(())
/// ```
#[derive(Clone)]
pub struct Destination {
    target: Arc<Target>,
    tag: u64,
    delay: Duration,
}

/// The parts that all clones share until one of them is changed.
#[derive(Clone)]
struct Target {
    host: Host,
    port: u16,
    /// The server to expect, for `wss://`.
    peer: Option<Peer>,
    /// The template of the request; its key is set for each connection.
    handshake: ClientHandshake,
    /// `None` if the host is a name that has not been looked up.
    addresses: Option<Arc<[SocketAddr]>>,
    sources: Vec<IpAddr>,
    time_max: Option<Duration>,
}

impl Destination {
    /// Parses a `ws://` URL. A host name is not looked up; see [`resolve`](Self::resolve).
    ///
    /// # Errors
    /// If it is not a valid `ws://` URL.
    pub fn parse(url: &str) -> Result<Self, DestinationError> {
        Self::parse_with(url, false)
    }

    /// Parses a `wss://` URL. The server must present a certificate for the URL's host that
    /// `config` trusts. See also [`parse`](Self::parse).
    ///
    /// The reactor turns off early data in `config` and allows no application protocol except
    /// HTTP/1.1.
    ///
    /// # Errors
    /// If it is not a valid `wss://` URL, or no certificate can be issued for its host.
    #[cfg(feature = "rustls")]
    pub fn parse_wss(url: &str, config: &rustls::ClientConfig) -> Result<Self, DestinationError> {
        let mut destination = Self::parse_with(url, true)?;
        let target = destination.target_mut();
        let name = match &target.host {
            Host::Name(name) => ServerName::try_from(name.clone())
                .map_err(|_| DestinationError::Url(UrlError::HostInvalid))?,
            Host::Ipv4(address) => ServerName::IpAddress((*address).into()),
            Host::Ipv6(address) => ServerName::IpAddress((*address).into()),
        };
        target.peer = Some(Peer {
            config: tls::prepare_client(config),
            name,
        });
        Ok(destination)
    }

    fn parse_with(url: &str, is_secure: bool) -> Result<Self, DestinationError> {
        let url = Url::parse(url)?;
        if url.is_secure() != is_secure {
            return Err(DestinationError::Scheme);
        }
        let (host, port) = (url.host().clone(), url.port());
        let addresses = match host {
            Host::Name(_) => None,
            Host::Ipv4(address) => Some([SocketAddr::new(address.into(), port)].into()),
            Host::Ipv6(address) => Some([SocketAddr::new(address.into(), port)].into()),
        };
        let handshake = ClientHandshake::new(&url.authority(), &url.path_and_query(), [0; 16])?;
        Ok(Self {
            target: Arc::new(Target {
                host,
                port,
                peer: None,
                handshake,
                addresses,
                sources: Vec::new(),
                time_max: None,
            }),
            tag: 0,
            delay: Duration::ZERO,
        })
    }

    /// Looks the host name up on the calling thread, unless the URL contains an address or the name
    /// has already been looked up. All connections to this destination then use the addresses
    /// found: the first address that accepts the connection.
    ///
    /// This may take seconds. [`Context::connect`](crate::Context::connect), in contrast, has names
    /// looked up on a separate thread, again for each connection.
    ///
    /// # Errors
    /// If the name has no address, or the lookup fails.
    pub fn resolve(mut self) -> io::Result<Self> {
        if self.target.addresses.is_none()
            && let Some((name, port)) = self.name()
        {
            let found = look_up(name, port)?;
            self.set_addresses(found);
        }
        Ok(self)
    }

    /// Connects to the first of these addresses that accepts the connection, regardless of the
    /// URL's host. This is useful for a proxy, or to test a server before its name points to it.
    /// The addresses share the time that the attempt may take.
    pub fn with_addresses(mut self, addresses: &[SocketAddr]) -> Self {
        self.set_addresses(addresses.into());
        self
    }

    /// Offers a subprotocol, after those offered before.
    ///
    /// # Errors
    /// If the subprotocol is not a token, or has been offered already.
    pub fn with_subprotocol(self, subprotocol: &str) -> Result<Self, DestinationError> {
        self.try_with(|handshake| handshake.with_subprotocol(subprotocol))
    }

    /// Adds a header to the request.
    ///
    /// # Errors
    /// If the header is malformed, or the handshake sets it itself.
    pub fn with_header(self, name: &str, value: &str) -> Result<Self, DestinationError> {
        self.try_with(|handshake| handshake.with_header(name, value))
    }

    /// Sends an `Origin` header, as a browser would.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        let target = self.target_mut();
        target.handshake = target.handshake.clone().with_origin(origin);
        self
    }

    /// Connects from these local addresses in turn. Each pair of addresses supports about 28,000
    /// simultaneous connections to a port (`net.ipv4.ip_local_port_range`).
    pub fn with_sources(mut self, sources: &[IpAddr]) -> Self {
        self.target_mut().sources = sources.to_vec();
        self
    }

    /// Sets how long an attempt may take, from its start until the WebSocket is open. Default:
    /// [`HandshakeLimits::time_max`](crate::handshake::HandshakeLimits), 10 s.
    pub fn with_timeout(mut self, time_max: Duration) -> Self {
        self.target_mut().time_max = Some(time_max);
        self
    }

    /// Delays the attempt by `delay`, with a resolution of 250 ms. Use this to avoid reconnecting
    /// in a tight loop after a failure.
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets a number that tells the handler what the connection is for.
    pub fn with_tag(mut self, tag: u64) -> Self {
        self.tag = tag;
        self
    }

    /// Returns the tag; 0 if none was set.
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    pub(crate) const fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns the host name and the port, if the host is a name.
    pub(crate) fn name(&self) -> Option<(&str, u16)> {
        match &self.target.host {
            Host::Name(name) => Some((name, self.target.port)),
            Host::Ipv4(_) | Host::Ipv6(_) => None,
        }
    }

    /// Returns the addresses, if they are known.
    pub(crate) fn addresses(&self) -> Option<&Arc<[SocketAddr]>> {
        self.target.addresses.as_ref()
    }

    /// Returns the next source address in turn for a connection to `address`.
    pub(crate) fn source(&self, address: SocketAddr, turn: u64) -> Option<IpAddr> {
        let usable = |source: &&IpAddr| source.is_ipv4() == address.is_ipv4();
        let sources = &self.target.sources;
        let count = sources.iter().filter(usable).count() as u64;
        let chosen = turn.checked_rem(count)? as usize;
        sources.iter().filter(usable).nth(chosen).copied()
    }

    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.target.peer.as_ref()
    }

    pub(crate) fn handshake(&self) -> ClientHandshake {
        self.target.handshake.clone().with_key(rand::random())
    }

    pub(crate) fn time_max(&self) -> Option<Duration> {
        self.target.time_max
    }

    fn set_addresses(&mut self, addresses: Arc<[SocketAddr]>) {
        self.target_mut().addresses = Some(addresses);
    }

    fn try_with(
        mut self,
        change: impl FnOnce(ClientHandshake) -> Result<ClientHandshake, BuildError>,
    ) -> Result<Self, DestinationError> {
        let target = self.target_mut();
        target.handshake = change(target.handshake.clone())?;
        Ok(self)
    }

    fn target_mut(&mut self) -> &mut Target {
        Arc::make_mut(&mut self.target)
    }
}

impl fmt::Debug for Destination {
    /// Omits the query and the headers, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination")
            .field("host", &self.target.host)
            .field("port", &self.target.port)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

/// Looks a name up.
pub(crate) fn look_up(name: &str, port: u16) -> io::Result<Arc<[SocketAddr]>> {
    let found: Arc<[SocketAddr]> = (name, port).to_socket_addrs()?.collect();
    if found.is_empty() {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    Ok(found)
}

/// The error returned when a destination is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// The handshake request cannot be built from these values.
    #[error("cannot build the handshake request")]
    Request(#[from] BuildError),
    /// The URL has another scheme than the one expected.
    #[error("wrong URL scheme: use `parse` for ws:// and `parse_wss` for wss://")]
    Scheme,
    /// The URL is invalid.
    #[error("{0}")]
    Url(UrlError),
}

impl From<UrlError> for DestinationError {
    fn from(error: UrlError) -> Self {
        match error {
            UrlError::Scheme => Self::Scheme,
            error => Self::Url(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_lookup_and_a_name_does() {
        let address = Destination::parse("ws://[::1]/x").unwrap();
        assert_eq!(
            address.addresses().unwrap()[..],
            ["[::1]:80".parse().unwrap()]
        );
        let name = Destination::parse("ws://localhost:7000/x?y").unwrap();
        assert!(name.addresses().is_none());
        assert_eq!(name.name(), Some(("localhost", 7_000)));
        let resolved = name.resolve().unwrap();
        assert!(
            resolved
                .addresses()
                .unwrap()
                .iter()
                .all(|it| it.port() == 7_000)
        );
    }

    #[test]
    fn what_is_no_destination_is_refused() {
        let error = |url| Destination::parse(url).unwrap_err();
        assert_eq!(error("http://example.com/"), DestinationError::Scheme);
        for (url, expected) in [
            ("ws://example.com/#top", UrlError::Fragment),
            ("example.com", UrlError::Malformed),
        ] {
            assert_eq!(error(url), DestinationError::Url(expected));
        }
        let fine = Destination::parse("ws://example.com").unwrap();
        for refused in [
            fine.clone().with_header("Host", "other.example"),
            fine.clone().with_header("X", "a\r\nb"),
            fine.clone().with_subprotocol("no token"),
        ] {
            assert!(matches!(refused, Err(DestinationError::Request(_))));
        }
    }

    #[test]
    fn sources_of_the_right_family_take_turns() {
        let sources = ["127.0.0.2", "::1", "127.0.0.3"].map(|it| it.parse().unwrap());
        let destination = Destination::parse("ws://127.0.0.1")
            .unwrap()
            .with_sources(&sources);
        let address = destination.addresses().unwrap()[0];
        let turns = [0, 1, 2].map(|turn| destination.source(address, turn));
        assert_eq!(
            turns,
            [Some(sources[0]), Some(sources[2]), Some(sources[0])]
        );
        let other = "[::1]:80".parse().unwrap();
        assert_eq!(destination.source(other, 5), Some(sources[1]));
        assert_eq!(
            Destination::parse("ws://[::1]").unwrap().source(other, 5),
            None
        );
    }
}
