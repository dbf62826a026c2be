//! What is special about sockets on Linux: options and calls that save time.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
};

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, accept_with, recv, send, sendmsg,
};
use socket2::{Domain, Type};

use super::{BACKLOG, bound};
use crate::platform::Socket;

/// Creates a non-blocking socket.
pub(super) fn stream(domain: Domain) -> io::Result<socket2::Socket> {
    socket2::Socket::new(domain, Type::STREAM.nonblocking(), None)
}

/// Listens on the address of `probe` once for each worker.
pub(super) fn listen(
    probe: Socket,
    address: SocketAddr,
    workers: usize,
) -> io::Result<Vec<Socket>> {
    // A socket that does not share its port would keep the listeners from it.
    drop(probe);
    let listeners = (0..workers).map(|_| {
        let listener = bound(address, |socket| socket.set_reuse_port(true))?;
        socket2::SockRef::from(&listener).listen(BACKLOG)?;
        Ok(listener)
    });
    listeners.collect()
}

/// Lets the kernel choose the port in `connect`, where it knows the destination: the same port
/// serves many destinations, and thousands of connections do not make the search slow. An old
/// kernel without this option chooses it when the socket is bound.
pub(super) fn choose_port_late(socket: &socket2::Socket) {
    _ = setsockopt(socket, IpBindAddressNoPort, &true);
}

pub(super) fn accept(listener: &Socket) -> rustix::io::Result<Socket> {
    accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

#[inline]
pub(super) fn receive(socket: &Socket, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    recv(socket, buffer, RecvFlags::empty()).map(|(bytes, _)| bytes)
}

#[inline]
pub(super) fn write(socket: &Socket, bytes: &[u8]) -> rustix::io::Result<usize> {
    send(socket, bytes, SendFlags::NOSIGNAL)
}

#[inline]
pub(super) fn write_slices(socket: &Socket, slices: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
    let mut control = SendAncillaryBuffer::default();
    sendmsg(socket, slices, &mut control, SendFlags::NOSIGNAL)
}
