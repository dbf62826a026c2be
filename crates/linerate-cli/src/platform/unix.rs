//! Unix: Linux and macOS.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
};

use nix::{
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        termios::{SetArg, Termios, tcgetattr, tcsetattr},
    },
    unistd::dup2_stdin,
};
use socket2::Socket;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-c and SIGTERM, for asynchronous code.
#[derive(Debug)]
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

/// SIGHUP, for asynchronous code.
#[derive(Debug)]
pub(crate) struct HangUps(Signal);

impl StopSignals {
    /// Starts listening for the signals. Must be called within a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of the signals.
    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

impl HangUps {
    /// Starts listening for the signal. Must be called within a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Waits for the signal.
    pub(crate) async fn recv(&mut self) {
        self.0.recv().await;
    }
}

/// The mode of the terminal on standard input: whether it passes on lines or keys, and echoes them.
/// `None` if standard input is not a terminal.
#[derive(Debug)]
pub(crate) struct TerminalMode(Option<(OwnedFd, Termios)>);

impl TerminalMode {
    /// Returns the current mode.
    pub(crate) fn save() -> Self {
        let stdin = io::stdin();
        let terminal = stdin.as_fd().try_clone_to_owned().ok();
        Self(terminal.zip(tcgetattr(stdin).ok()))
    }

    /// Restores the mode, as far as the terminal still exists.
    pub(crate) fn restore(&self) {
        if let Self(Some((terminal, mode))) = self {
            _ = tcsetattr(terminal, SetArg::TCSADRAIN, mode);
        }
    }
}

/// Makes every read from standard input that begins now return the end of the input.
pub(crate) fn end_standard_input() -> io::Result<()> {
    Ok(dup2_stdin(File::open("/dev/null")?)?)
}

/// Keeps the allocator from using huge pages, in this process and in those that it starts. Only
/// Linux has them.
pub(crate) fn avoid_huge_pages() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_thp_disable(true)?;
    Ok(())
}

/// Raises the soft limit of open files to `wanted`, or as far as the hard limit allows; returns the
/// resulting soft limit.
pub(crate) fn raise_descriptor_limit(wanted: u64) -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= wanted {
        return Ok(soft);
    }
    let raised = wanted.min(hard);
    setrlimit(Resource::RLIMIT_NOFILE, raised, hard)?;
    Ok(raised)
}

/// Allows the socket to be bound although connections of an earlier server linger at its address.
pub(crate) fn reuse_address(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_address(true)
}

/// Allows the socket to be bound to the same port as others of this user. Other systems than Linux
/// do not distribute connections among such sockets.
pub(crate) fn share_port(socket: &Socket) -> io::Result<()> {
    match cfg!(target_os = "linux") {
        true => socket.set_reuse_port(true),
        false => Ok(()),
    }
}
