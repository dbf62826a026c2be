//! Windows.

use std::{future, io};

use socket2::Socket;
use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

/// Ctrl-c and ctrl-break, for asynchronous code.
#[derive(Debug)]
pub(crate) struct StopSignals {
    ctrl_break: CtrlBreak,
    ctrl_c: CtrlC,
}

/// The mode of the terminal. A shell on Windows sets its own mode after each program.
#[derive(Debug)]
pub(crate) struct TerminalMode;

impl TerminalMode {
    /// Returns the current mode.
    pub(crate) fn save() -> Self {
        Self
    }

    /// Leaves the mode to the shell.
    pub(crate) fn restore(&self) {}
}

/// Fails, because a program cannot take its console away from a read that has begun.
pub(crate) fn end_standard_input() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A signal that Windows does not have.
#[derive(Debug)]
pub(crate) struct HangUps;

impl StopSignals {
    /// Starts listening for the keys. Must be called within a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            ctrl_break: ctrl_break()?,
            ctrl_c: ctrl_c()?,
        })
    }

    /// Waits for one of the keys.
    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.ctrl_break.recv() => {}
            _ = self.ctrl_c.recv() => {}
        }
    }
}

impl HangUps {
    /// Succeeds.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits forever.
    pub(crate) async fn recv(&mut self) {
        future::pending().await
    }
}

/// Does nothing, because Windows gives huge pages only to programs that ask for them.
pub(crate) fn avoid_huge_pages() -> io::Result<()> {
    Ok(())
}

/// Returns `wanted`, because Windows has no limit of open files.
pub(crate) fn raise_descriptor_limit(wanted: u64) -> io::Result<u64> {
    Ok(wanted)
}

/// Does nothing: Windows does not wait for connections of an earlier server, and its option of this
/// name would let other processes take the port.
pub(crate) fn reuse_address(_socket: &Socket) -> io::Result<()> {
    Ok(())
}

/// Does nothing, because all workers accept from the same socket.
pub(crate) fn share_port(_socket: &Socket) -> io::Result<()> {
    Ok(())
}
