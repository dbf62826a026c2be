//! Sockets that listen.

use std::{io, net::SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4_096;

/// Binds listeners on one address, so many; the kernel spreads connections over them.
///
/// A second server on the same port is refused: it is shared among the listeners of one process only. With port 0
/// all of them share the one that was picked.
///
/// # Errors
/// The address is in use, or none of this machine.
pub fn listen(address: SocketAddr, count: usize) -> io::Result<Vec<std::net::TcpListener>> {
    probe(address)?;
    let first = bind(address)?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(bind(address)?);
    }
    Ok(listeners)
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Fails if somebody else holds the address.
fn probe(address: SocketAddr) -> io::Result<()> {
    socket(address)?.bind(&address.into())
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    Ok(socket)
}
