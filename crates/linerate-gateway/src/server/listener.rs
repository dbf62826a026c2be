//! Listening sockets.

use std::{io, net::SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

use crate::platform;

/// Maximum number of connections waiting to be accepted.
const BACKLOG: i32 = 4_096;

/// Binds `count` listeners to one address. The kernel distributes connections over them, or they
/// are one listener several times.
///
/// Fails if another process uses the port, because it is shared only among the listeners of one
/// process. With port 0 all listeners share the port that was picked.
///
/// # Errors
/// Fails if the address is in use, or does not belong to this machine.
pub(crate) fn listen(address: SocketAddr, count: usize) -> io::Result<Vec<std::net::TcpListener>> {
    probe(address)?;
    let first = bind(address)?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..count {
        let next = match platform::HAS_SHARED_PORTS {
            true => bind(address)?,
            false => listeners[0].try_clone()?,
        };
        listeners.push(next);
    }
    Ok(listeners)
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
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
