//! Sockets on other systems than Linux, through socket2.

use std::{
    io::{self, IoSlice, Read},
    net::SocketAddr,
};

use socket2::{Domain, SockRef, Type};

use super::{BACKLOG, errno, share};
use crate::platform::Socket;

/// Creates a non-blocking socket.
pub(super) fn stream(domain: Domain) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(domain, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Listens with one socket, which the workers share.
pub(super) fn listen(
    listener: Socket,
    _address: SocketAddr,
    workers: usize,
) -> io::Result<Vec<Socket>> {
    SockRef::from(&listener).listen(BACKLOG)?;
    share(listener, workers)
}

/// Does nothing: the port is chosen when the socket is bound.
pub(super) const fn choose_port_late(_socket: &socket2::Socket) {}

pub(super) fn accept(listener: &Socket) -> rustix::io::Result<Socket> {
    let (socket, _) = SockRef::from(listener).accept().map_err(errno)?;
    socket.set_nonblocking(true).map_err(errno)?;
    Ok(socket.into())
}

#[inline]
pub(super) fn receive(socket: &Socket, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    let socket = SockRef::from(socket);
    (&*socket).read(buffer).map_err(errno)
}

/// Rust programs ignore SIGPIPE, so that writing to a lost connection is only an error.
#[inline]
pub(super) fn write(socket: &Socket, bytes: &[u8]) -> rustix::io::Result<usize> {
    SockRef::from(socket).send(bytes).map_err(errno)
}

#[inline]
pub(super) fn write_slices(socket: &Socket, slices: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
    let socket = SockRef::from(socket);
    socket.send_vectored(slices).map_err(errno)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use rustix::io::Errno;

    use super::*;
    use crate::driver::socket::{bound, local_addr};

    #[test]
    fn a_shared_listener_accepts_and_its_connections_transfer_without_blocking() {
        let first = bound(([127, 0, 0, 1], 0).into(), |_| Ok(())).unwrap();
        let address = local_addr(&first).unwrap();
        let listeners = listen(first, address, 2).unwrap();
        let accepted = listeners.iter().map(accept);
        accepted.for_each(|accepted| assert_eq!(accepted.unwrap_err(), Errno::AGAIN));
        let client = stream(Domain::for_address(address)).unwrap();
        choose_port_late(&client);
        client.set_nonblocking(false).unwrap();
        client.connect(&address.into()).unwrap();
        let mut client = TcpStream::from(client);
        let server = accept(&listeners[1]).unwrap();
        let mut buffer = [0; 4];
        assert_eq!(receive(&server, &mut buffer), Err(Errno::AGAIN));
        assert_eq!(write(&server, b"Sp"), Ok(2));
        let slices = [IoSlice::new(b"a"), IoSlice::new(b"m")];
        assert_eq!(write_slices(&server, &slices), Ok(2));
        client.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"Spam");
        drop(client);
        SockRef::from(&server).set_nonblocking(false).unwrap();
        assert_eq!(receive(&server, &mut buffer), Ok(0));
    }
}
