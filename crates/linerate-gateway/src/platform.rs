//! What differs between platforms.

use std::{io, time::Duration};

#[cfg(unix)]
use std::os::fd::{AsRawFd, RawFd};

use linerate_reactor::LocalReactor;
use socket2::{SockRef, Socket};
#[cfg(unix)]
use tokio::io::{Interest, unix::AsyncFd};

/// True if the kernel distributes connections among listeners that share a port. Elsewhere, all
/// workers accept from the same listener.
pub(crate) const HAS_SHARED_PORTS: bool = cfg!(target_os = "linux");

/// True if connections have the options of the listener that accepted them.
pub(crate) const HAS_INHERITED_OPTIONS: bool = cfg!(target_os = "linux");

/// Waits until a [`LocalReactor`] has something to handle.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Readable(AsyncFd<Descriptor>);

#[cfg(unix)]
#[derive(Debug)]
struct Descriptor(RawFd);

#[cfg(unix)]
impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

#[cfg(unix)]
impl Readable {
    /// Watches `reactor`, which must live longer, on the current runtime.
    pub(crate) fn new(reactor: &LocalReactor) -> io::Result<Self> {
        let descriptor = Descriptor(reactor.descriptor());
        #[expect(deprecated, reason = "the reactor lives longer")]
        AsyncFd::with_interest(descriptor, Interest::READABLE).map(Self)
    }

    /// Waits until something has happened since the last wait. Cancel-safe.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        self.0.readable().await?.clear_ready();
        Ok(())
    }
}

/// Waits for a short time, since Windows has no descriptor that tells whether there is something to
/// handle.
#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) struct Readable;

#[cfg(not(unix))]
impl Readable {
    /// How often a reactor is looked at.
    const INTERVAL: Duration = Duration::from_millis(2);

    pub(crate) fn new(_: &LocalReactor) -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits until something may have happened. Cancel-safe.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        tokio::time::sleep(Self::INTERVAL).await;
        Ok(())
    }
}

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
