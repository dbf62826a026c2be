//! Notifies systemd of the server's state (sd_notify(3)), if systemd has started it.

use std::{env, os::unix::net::UnixDatagram};

/// Notifies systemd that the server is ready.
pub(super) fn ready() {
    tell("READY=1");
}

/// Notifies systemd that the server is stopping.
pub(super) fn stopping() {
    tell("STOPPING=1");
}

/// Notifies systemd that another process is the main one of the unit from now on.
pub(super) fn main_process(pid: u32) {
    tell(&format!("MAINPID={pid}"));
}

fn tell(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let told = UnixDatagram::unbound().and_then(|socket| match path.to_str() {
        Some(name) if name.starts_with('@') => send_abstract(&socket, &name[1..], state),
        _ => socket.send_to(state.as_bytes(), &path),
    });
    if let Err(error) = told {
        tracing::warn!(%error, state, "cannot notify systemd");
    }
}

/// Sends to a socket in the abstract namespace, which has no path in the file system.
fn send_abstract(socket: &UnixDatagram, name: &str, state: &str) -> std::io::Result<usize> {
    use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
    let address = SocketAddr::from_abstract_name(name)?;
    socket.send_to_addr(state.as_bytes(), &address)
}
