//! What differs between platforms.

use std::{io, time::Duration};

use socket2::{SockRef, Socket};

/// True if the kernel distributes connections among listeners that share a port. Elsewhere, all
/// workers accept from the same listener.
pub(crate) const HAS_SHARED_PORTS: bool = cfg!(target_os = "linux");

/// Returns the host name of this machine, if it is UTF-8.
pub(crate) fn host_name() -> Option<String> {
    #[cfg(unix)]
    let name = nix::unistd::gethostname().ok()?;
    #[cfg(not(unix))]
    let name = std::env::var_os("COMPUTERNAME")?;
    name.into_string().ok()
}

/// Allows the socket to be bound although connections of an earlier server linger at its address.
pub(crate) fn reuse_address(socket: &Socket) -> io::Result<()> {
    // Windows does not wait for these connections, and there, this option would let other processes
    // take the port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    _ = socket;
    Ok(())
}

/// Allows the socket to be bound to the same port as others, if there are
/// [shared ports](HAS_SHARED_PORTS).
pub(crate) fn share_port(socket: &Socket) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    socket.set_reuse_port(true)?;
    _ = socket;
    Ok(())
}

/// Ends the connection when the peer has not acknowledged what was sent for `timeout`. Systems
/// other than Linux choose the time themselves.
pub(crate) fn set_unacknowledged_timeout(
    socket: &SockRef<'_>,
    timeout: Duration,
) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(timeout))?;
    _ = (socket, timeout);
    Ok(())
}
