//! Listening sockets, and those that another process has bound.

use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
};

#[cfg(target_os = "linux")]
use socket2::SockRef;
use socket2::{Domain, Protocol, Socket, Type};

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
    ) -> io::Result<Self> {
        probe(configured)?;
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

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    platform::share_port(&socket)?;
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
    use std::net::{TcpListener, TcpStream};

    use super::{Endpoint, EndpointKind};

    #[test]
    fn only_sockets_that_listen_on_the_address_are_adopted() {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut endpoint = Endpoint::bind(EndpointKind::Clients, any, 2).unwrap();
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
