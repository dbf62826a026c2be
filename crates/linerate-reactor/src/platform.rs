//! What differs between operating systems: the type of a socket.

/// A socket that is closed when it is dropped: an `OwnedFd` on Unix, an `OwnedSocket` on Windows.
#[cfg(unix)]
pub type Socket = std::os::fd::OwnedFd;

/// A socket that is closed when it is dropped: an `OwnedFd` on Unix, an `OwnedSocket` on Windows.
#[cfg(windows)]
pub type Socket = std::os::windows::io::OwnedSocket;
