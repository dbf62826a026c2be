//! System calls on sockets.

#[cfg(any(test, not(target_os = "linux")))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

use std::{
    io,
    io::IoSlice,
    net::{IpAddr, Shutdown, SocketAddr},
    time::Duration,
};

use rustix::io::Errno;
use socket2::{Domain, SockRef, Type};

#[cfg(not(target_os = "linux"))]
use self::elsewhere as system;
#[cfg(target_os = "linux")]
use self::linux as system;
use crate::platform::Socket;

/// Maximum number of connections in the accept queue.
const BACKLOG: i32 = 4_096;

/// A connection is being established.
const CONNECTING: Errno = match cfg!(windows) {
    true => Errno::WOULDBLOCK,
    false => Errno::INPROGRESS,
};

/// The process or the system is out of descriptors or memory.
#[cfg(unix)]
const SHORTAGES: &[Errno] = &[Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
/// The process or the system is out of descriptors or memory.
#[cfg(windows)]
const SHORTAGES: &[Errno] = &[Errno::MFILE, Errno::NOBUFS];

/// Listens on `address` for all workers. Linux distributes connections among listeners of the same
/// port, one for each worker; elsewhere, the workers [share] one listener.
///
/// Only the listeners of one call share the port. A second server on the same port is refused.
pub(crate) fn listen_on(
    address: SocketAddr,
    workers: usize,
) -> io::Result<(SocketAddr, Vec<Socket>)> {
    // This fails if another process listens there, even if it shares the port.
    let first = bound(address, |_| Ok(()))?;
    let address = local_addr(&first)?;
    Ok((address, system::listen(first, address, workers)?))
}

/// Shares a listener that was opened elsewhere among the workers. Its connections go to the worker
/// that accepts them first.
pub(crate) fn share(listener: Socket, workers: usize) -> io::Result<Vec<Socket>> {
    let socket = SockRef::from(&listener);
    if socket.r#type()? != Type::STREAM || !is_listening(&listener)? {
        let text = "the socket is not a stream socket that listens";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    socket.set_nonblocking(true)?;
    let mut listeners = (1..workers)
        .map(|_| listener.try_clone())
        .collect::<io::Result<Vec<_>>>()?;
    listeners.push(listener);
    Ok(listeners)
}

/// Returns whether a socket listens.
#[cfg(not(target_vendor = "apple"))]
fn is_listening(socket: &Socket) -> io::Result<bool> {
    Ok(rustix::net::sockopt::socket_acceptconn(socket)?)
}

/// Returns true, because Apple's systems cannot tell. Accepting fails if it does not listen.
#[cfg(target_vendor = "apple")]
const fn is_listening(_: &Socket) -> io::Result<bool> {
    Ok(true)
}

/// Returns a non-blocking socket that is bound to `address` after `prepare` has set its options.
fn bound(
    address: SocketAddr,
    prepare: impl FnOnce(&socket2::Socket) -> io::Result<()>,
) -> io::Result<Socket> {
    let socket = system::stream(Domain::for_address(address))?;
    // Connections of an earlier server may linger at the address. Windows does not wait for them,
    // and its option of this name would let other processes take the port.
    if cfg!(unix) {
        socket.set_reuse_address(true)?;
    }
    prepare(&socket)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Starts to connect to `address`, from a port of `source` if given. The socket becomes writable
/// once it is connected or has [an error](take_error).
pub(crate) fn connect(address: SocketAddr, source: Option<IpAddr>) -> io::Result<Socket> {
    let socket = system::stream(Domain::for_address(address))?;
    if let Some(source) = source {
        system::choose_port_late(&socket);
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&address.into()).map_err(errno) {
        Ok(()) => Ok(socket.into()),
        Err(error) if error == CONNECTING => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// Prepares a socket that was opened elsewhere.
pub(crate) fn prepare(socket: &Socket) -> io::Result<()> {
    set_nonblocking(socket)?;
    // This fails for Unix domain sockets, which do not need it.
    _ = SockRef::from(socket).set_tcp_nodelay(true);
    Ok(())
}

/// Lets calls return at once that would have to wait.
pub(crate) fn set_nonblocking(socket: &Socket) -> io::Result<()> {
    SockRef::from(socket).set_nonblocking(true)
}

/// Returns the address of the peer.
pub(crate) fn peer_addr(socket: &Socket) -> io::Result<SocketAddr> {
    let address = SockRef::from(socket).peer_addr()?;
    address.as_socket().ok_or_else(not_an_ip_address)
}

/// Returns our address.
pub(crate) fn local_addr(socket: &Socket) -> io::Result<SocketAddr> {
    let address = SockRef::from(socket).local_addr()?;
    address.as_socket().ok_or_else(not_an_ip_address)
}

fn not_an_ip_address() -> io::Error {
    let text = "a Unix domain socket has no IP address";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Returns the pending error of a socket and clears it.
pub(crate) fn take_error(socket: &Socket) -> io::Result<()> {
    SockRef::from(socket).take_error()?.map_or(Ok(()), Err)
}

/// The result of an attempt to accept a connection.
pub(crate) enum Accepted {
    /// A connection.
    Connection(Socket),
    /// No connection is waiting.
    Nothing,
    /// The process is out of file descriptors or memory. Retrying at once would only spin.
    Shortage,
}

/// Accepts one connection.
pub(crate) fn accept(listener: &Socket) -> io::Result<Accepted> {
    accepted(system::accept(listener))
}

/// Interprets the result of accepting a connection, whose socket is non-blocking.
pub(crate) fn accepted(outcome: rustix::io::Result<Socket>) -> io::Result<Accepted> {
    match outcome {
        Ok(socket) => {
            // This fails only if the connection is lost, which reading will report.
            _ = SockRef::from(&socket).set_tcp_nodelay(true);
            Ok(Accepted::Connection(socket))
        }
        Err(Errno::AGAIN) => Ok(Accepted::Nothing),
        Err(error @ (Errno::INVAL | Errno::NOTSOCK | Errno::BADF | Errno::OPNOTSUPP)) => {
            Err(error.into())
        }
        Err(error) if SHORTAGES.contains(&error) => Ok(Accepted::Shortage),
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
pub(crate) fn receive(socket: &Socket, buffer: &mut [u8]) -> Received {
    loop {
        return match system::receive(socket, buffer) {
            Ok(0) => Received::End,
            Ok(bytes) => Received::Bytes(bytes),
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
pub(crate) fn write(socket: &Socket, bytes: &[u8]) -> Result<usize, ConnectionLost> {
    outcome(|| system::write(socket, bytes))
}

/// Writes several slices; returns how many bytes the kernel accepted.
pub(crate) fn write_slices(
    socket: &Socket,
    slices: &[IoSlice<'_>],
) -> Result<usize, ConnectionLost> {
    outcome(|| system::write_slices(socket, slices))
}

#[inline]
fn outcome(
    mut attempt: impl FnMut() -> rustix::io::Result<usize>,
) -> Result<usize, ConnectionLost> {
    loop {
        return match attempt() {
            Ok(bytes) => Ok(bytes),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Ok(0),
            Err(error) if SHORTAGES.contains(&error) => Ok(0),
            Err(_) => Err(ConnectionLost),
        };
    }
}

/// Ends the stream to the peer; its stream can still be read.
pub(crate) fn end_output(socket: &Socket) {
    // This fails only if the connection is lost, which reading will report.
    _ = SockRef::from(socket).shutdown(Shutdown::Write);
}

/// Lets closing the socket reset the connection, so that the kernel drops what it has not sent yet.
/// Otherwise a peer that reads nothing would hold that memory for minutes.
pub(crate) fn reset_on_close(socket: &Socket) {
    // This fails for Unix domain sockets, whose memory belongs to the peer.
    _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}

/// Lets the kernel drop what it has not sent once the peer has taken nothing for this long, also
/// after the socket is closed. Only Linux has such a limit.
pub(crate) fn limit_unsent(socket: &Socket, time_max: Duration) {
    // This fails for Unix domain sockets, whose memory belongs to the peer.
    #[cfg(target_os = "linux")]
    let _ = SockRef::from(socket).set_tcp_user_timeout(Some(time_max));
    _ = (socket, time_max);
}

/// Returns the code of an error of the system; they all have one.
pub(super) fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::CONNABORTED)
}
