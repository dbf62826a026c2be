//! Listening sockets, and those that another process has bound.

use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::platform;

/// Maximum number of connections waiting to be accepted.
const BACKLOG: i32 = 4_096;

/// An address to listen on, and the sockets that are bound to it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// The purpose of the address.
    pub kind: EndpointKind,
    /// The configured address, whose port may be 0.
    pub configured: SocketAddr,
    /// The address, with the actual port.
    pub address: SocketAddr,
    /// How long a peer may be silent, for the options of the sockets.
    pub dead_peer_timeout: Duration,
    /// The sockets. The kernel distributes connections over them.
    pub sockets: Vec<TcpListener>,
}

/// The purpose of an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub(crate) enum EndpointKind {
    /// `server.listen`: clients, applications and pages, with or without TLS.
    Clients,
    /// `server.operations_listen`: monitoring.
    Operations,
}

impl Endpoint {
    /// Binds `count` sockets to one address, or one socket `count` times where the kernel does not
    /// distribute connections.
    ///
    /// Fails if another process uses the port, because it is shared only among the sockets of one
    /// process. With port 0 all sockets share the port that was picked.
    ///
    /// # Errors
    /// Fails if the address is in use, or does not belong to this machine.
    pub(crate) fn bind(
        kind: EndpointKind,
        configured: SocketAddr,
        count: usize,
        dead_peer_timeout: Duration,
    ) -> io::Result<Self> {
        probe(configured)?;
        let bind = |address| bind(address, dead_peer_timeout);
        let first = bind(configured)?;
        let address = first.local_addr()?;
        let mut sockets = vec![first];
        for _ in 1..count {
            let next = match platform::HAS_SHARED_PORTS {
                true => bind(address)?,
                false => sockets[0].try_clone()?,
            };
            sockets.push(next);
        }
        Ok(Self {
            kind,
            configured,
            address,
            dead_peer_timeout,
            sockets,
        })
    }

    /// Returns the same sockets once more.
    ///
    /// # Errors
    /// Fails if descriptors run out.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let sockets = self.sockets.iter().map(TcpListener::try_clone);
        Ok(Self {
            sockets: sockets.collect::<io::Result<_>>()?,
            ..*self
        })
    }
}

#[cfg(target_os = "linux")]
impl Endpoint {
    /// Adds a socket that another process has bound.
    ///
    /// # Errors
    /// Fails if it does not listen on the address.
    pub(crate) fn adopt(&mut self, socket: TcpListener) -> io::Result<()> {
        let options = SockRef::from(&socket);
        let found = options.local_addr()?.as_socket();
        let is_listener = options.r#type()? == Type::STREAM && options.is_listener()?;
        if found != Some(self.address) || !is_listener {
            let message = match found {
                Some(found) => format!("socket of {found} does not listen on {}", self.address),
                None => format!(
                    "descriptor is not a socket that listens on {}",
                    self.address
                ),
            };
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        socket.set_nonblocking(true)?;
        set_options(&options, self.dead_peer_timeout)?;
        self.sockets.push(socket);
        Ok(())
    }
}

impl fmt::Display for EndpointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clients => "server.listen",
            Self::Operations => "server.operations_listen",
        })
    }
}

/// Sets the options of a connection, or of a listener whose connections
/// [inherit](platform::HAS_INHERITED_OPTIONS) them: they are closed when the peer has been silent,
/// or has not acknowledged anything, for `dead_peer_timeout`.
pub(super) fn set_options(socket: &SockRef<'_>, dead_peer_timeout: Duration) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    let (time, interval) = probes(dead_peer_timeout);
    let keepalive = TcpKeepalive::new().with_time(time).with_interval(interval);
    socket.set_tcp_keepalive(&keepalive)?;
    platform::set_unacknowledged_timeout(socket, dead_peer_timeout)
}

/// Returns after which silence an idle peer is probed, and how often: three times before it has
/// been silent for `timeout`. At that time, the kernel closes the connection if the last probe is
/// unanswered, however many it has sent.
const fn probes(timeout: Duration) -> (Duration, Duration) {
    let interval = Duration::from_secs(timeout.as_secs() / 9);
    (timeout.saturating_sub(interval.saturating_mul(3)), interval)
}

fn bind(address: SocketAddr, dead_peer_timeout: Duration) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    platform::share_port(&socket)?;
    if platform::HAS_INHERITED_OPTIONS {
        set_options(&SockRef::from(&socket), dead_peer_timeout)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Fails if another process uses the address.
fn probe(address: SocketAddr) -> io::Result<()> {
    socket(address)?.bind(&address.into())
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    platform::reuse_address(&socket)?;
    Ok(socket)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        time::Duration,
    };

    use socket2::SockRef;

    use super::{Endpoint, EndpointKind, probes};

    const TIMEOUT: Duration = Duration::from_secs(45);

    #[test]
    fn a_single_lost_probe_does_not_end_an_idle_connection() {
        for timeout in [9, 45, 36_000].map(Duration::from_secs) {
            let (time, interval) = probes(timeout);
            assert_eq!(time + 3 * interval, timeout);
            assert!(interval >= Duration::from_secs(1) && time >= timeout / 2);
        }
    }

    #[test]
    fn connections_have_the_options_of_their_listener() {
        let any = "127.0.0.1:0".parse().unwrap();
        let bound = Endpoint::bind(EndpointKind::Clients, any, 1, TIMEOUT).unwrap();
        let of_another_process = TcpListener::bind(any).unwrap();
        let mut adopted = Endpoint {
            address: of_another_process.local_addr().unwrap(),
            sockets: Vec::new(),
            kind: bound.kind,
            configured: bound.configured,
            dead_peer_timeout: TIMEOUT,
        };
        adopted.adopt(of_another_process).unwrap();
        for (address, listener) in [
            (bound.address, &bound.sockets[0]),
            (adopted.address, &adopted.sockets[0]),
        ] {
            listener.set_nonblocking(false).unwrap();
            let _client = TcpStream::connect(address).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let options = SockRef::from(&accepted);
            assert!(options.tcp_nodelay().unwrap() && options.keepalive().unwrap());
            assert_eq!(options.tcp_user_timeout().unwrap(), Some(TIMEOUT));
            assert_eq!(options.tcp_keepalive_time().unwrap(), TIMEOUT * 2 / 3);
            assert_eq!(options.tcp_keepalive_interval().unwrap(), TIMEOUT / 9);
        }
    }

    #[test]
    fn only_sockets_that_listen_on_the_address_are_adopted() {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut endpoint = Endpoint::bind(EndpointKind::Clients, any, 2, TIMEOUT).unwrap();
        let same = endpoint.sockets[0].try_clone().unwrap();
        endpoint.adopt(same).unwrap();
        assert_eq!(endpoint.sockets.len(), 3);
        let other = TcpListener::bind(any).unwrap();
        let error = endpoint.adopt(other).unwrap_err().to_string();
        assert!(error.contains("does not listen on 127.0.0.1:"), "{error}");
        // The far end of a connection has the same local address, and is not a listener.
        let client = TcpStream::connect(endpoint.address).unwrap();
        endpoint
            .sockets
            .iter()
            .for_each(|it| it.set_nonblocking(true).unwrap());
        let accepted = loop {
            let mut sockets = endpoint.sockets.iter();
            if let Some((accepted, _)) = sockets.find_map(|socket| socket.accept().ok()) {
                break accepted;
            }
        };
        let accepted = TcpListener::from(std::os::fd::OwnedFd::from(accepted));
        assert!(endpoint.adopt(accepted).is_err());
        drop(client);
    }
}
