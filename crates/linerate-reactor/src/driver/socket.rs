//! System calls on sockets.

use std::{
    io,
    io::IoSlice,
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
};

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags,
        SocketType, accept_with, bind, getpeername, getsockname, listen, recv, send, sendmsg,
        shutdown, socket_with, sockopt,
    },
};

/// Maximum number of connections in the accept queue.
const BACKLOG: i32 = 4_096;

/// Listens on `address` once for each worker; the kernel distributes connections among them.
///
/// Only the listeners of one call share the port. A second server on the same port is refused.
pub(crate) fn listen_on(
    address: SocketAddr,
    workers: usize,
) -> io::Result<(SocketAddr, Vec<OwnedFd>)> {
    // Without `SO_REUSEPORT` this fails if another process listens there.
    let probe = socket(address)?;
    bind(&probe, &address)?;
    let address: SocketAddr = getsockname(&probe)?.try_into()?;
    drop(probe);
    let listeners = (0..workers).map(|_| {
        let listener = socket(address)?;
        sockopt::set_socket_reuseport(&listener, true)?;
        bind(&listener, &address)?;
        listen(&listener, BACKLOG)?;
        Ok(listener)
    });
    Ok((address, listeners.collect::<io::Result<_>>()?))
}

/// Shares a listener that was opened elsewhere among the workers. Its connections go to the worker
/// that accepts them first.
pub(crate) fn share(listener: OwnedFd, workers: usize) -> io::Result<Vec<OwnedFd>> {
    if sockopt::socket_type(&listener)? != SocketType::STREAM
        || !sockopt::socket_acceptconn(&listener)?
    {
        let text = "the socket is not a stream socket that listens";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    rustix::io::ioctl_fionbio(&listener, true)?;
    let mut listeners = (1..workers)
        .map(|_| listener.try_clone())
        .collect::<io::Result<Vec<_>>>()?;
    listeners.push(listener);
    Ok(listeners)
}

fn socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = new_socket(address)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

fn new_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(family, SocketType::STREAM, flags, None)?)
}

/// Starts to connect to `address`, from a port of `source` if given. The socket becomes writable
/// once it is connected or has [an error](take_error).
pub(crate) fn connect(address: SocketAddr, source: Option<IpAddr>) -> io::Result<OwnedFd> {
    let socket = new_socket(address)?;
    if let Some(source) = source {
        // The kernel then chooses the port in `connect`, where it knows the destination: the same
        // port serves many destinations, and thousands of connections do not make the search slow.
        // An old kernel without this option chooses it here.
        _ = setsockopt(&socket, IpBindAddressNoPort, &true);
        bind(&socket, &SocketAddr::new(source, 0))?;
    }
    sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Prepares a socket that was opened elsewhere.
pub(crate) fn prepare(socket: &OwnedFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(socket, true)?;
    // This fails for Unix domain sockets, which do not need it.
    _ = sockopt::set_tcp_nodelay(socket, true);
    Ok(())
}

/// Returns the address of the peer.
pub(crate) fn peer_addr(socket: &OwnedFd) -> io::Result<SocketAddr> {
    // A peer with a Unix domain socket may have no address at all.
    let address = getpeername(socket)?.and_then(|address| address.try_into().ok());
    address.ok_or_else(not_an_ip_address)
}

/// Returns our address.
pub(crate) fn local_addr(socket: &OwnedFd) -> io::Result<SocketAddr> {
    SocketAddr::try_from(getsockname(socket)?).map_err(|_| not_an_ip_address())
}

fn not_an_ip_address() -> io::Error {
    let text = "a Unix domain socket has no IP address";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Returns the pending error of a socket and clears it.
pub(crate) fn take_error(socket: &OwnedFd) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// The result of an attempt to accept a connection.
pub(crate) enum Accepted {
    /// A connection.
    Connection(OwnedFd),
    /// No connection is waiting.
    Nothing,
    /// The process is out of file descriptors or memory. Retrying at once would only spin.
    Shortage,
}

/// Accepts one connection.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Accepted> {
    let accepting = accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
    accepted(accepting)
}

/// Interprets the result of accepting a connection, whose socket is non-blocking.
pub(crate) fn accepted(outcome: rustix::io::Result<OwnedFd>) -> io::Result<Accepted> {
    match outcome {
        Ok(socket) => {
            // This fails only if the connection is lost, which reading will report.
            _ = sockopt::set_tcp_nodelay(&socket, true);
            Ok(Accepted::Connection(socket))
        }
        Err(Errno::AGAIN) => Ok(Accepted::Nothing),
        Err(error @ (Errno::INVAL | Errno::NOTSOCK | Errno::BADF | Errno::OPNOTSUPP)) => {
            Err(error.into())
        }
        Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Ok(Accepted::Shortage),
        // accept(2): network errors of the new connection should be treated "like EAGAIN". The
        // listener reports again if more connections wait.
        Err(_) => Ok(Accepted::Nothing),
    }
}

/// The result of a read.
pub(crate) enum Received {
    /// The number of bytes read, at least one.
    Bytes(usize),
    /// The end of the stream.
    End,
    /// Nothing has arrived.
    Nothing,
    /// The connection is lost.
    Lost,
}

/// Reads the bytes that have arrived.
#[inline]
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Received {
    loop {
        return match recv(socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => Received::End,
            Ok((bytes, _)) => Received::Bytes(bytes),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Received::Nothing,
            Err(_) => Received::Lost,
        };
    }
}

/// The connection is lost.
#[derive(Debug)]
pub(crate) struct ConnectionLost;

/// Writes bytes; returns how many the kernel accepted.
#[inline]
pub(crate) fn write(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, ConnectionLost> {
    outcome(|| send(socket, bytes, SendFlags::NOSIGNAL))
}

/// Writes several slices; returns how many bytes the kernel accepted.
pub(crate) fn write_slices(
    socket: &OwnedFd,
    slices: &[IoSlice<'_>],
) -> Result<usize, ConnectionLost> {
    outcome(|| {
        let mut control = SendAncillaryBuffer::default();
        sendmsg(socket, slices, &mut control, SendFlags::NOSIGNAL)
    })
}

#[inline]
fn outcome(
    mut attempt: impl FnMut() -> rustix::io::Result<usize>,
) -> Result<usize, ConnectionLost> {
    loop {
        return match attempt() {
            Ok(bytes) => Ok(bytes),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => Ok(0),
            Err(_) => Err(ConnectionLost),
        };
    }
}

/// Ends the stream to the peer; its stream can still be read.
pub(crate) fn end_output(socket: &OwnedFd) {
    // This fails only if the connection is lost, which reading will report.
    _ = shutdown(socket, Shutdown::Write);
}
