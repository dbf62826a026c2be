//! Who runs on which core, and who goes first there.
//!
//! Attackers, live clients and the server share a machine. So that what is measured is how the server
//! shares its time and not how the machine does, live clients run as soon as they have something to
//! do, then the server, and attackers when these have nothing to do.

use std::{
    path::Path,
    process::{Command, Stdio, id},
    thread,
};

use anyhow::{Result, ensure};
use rustix::{
    process::setpriority_process,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

/// The core of a server that is to have one for itself.
pub(crate) const SERVER: usize = 0;

/// Returns the number of cores.
pub(crate) fn count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Binds this process to a core.
pub(crate) fn take(core: usize) -> Result<()> {
    let cores = count();
    ensure!(
        core < cores,
        "{cores} core(s) are too few, {} are needed",
        core + 1
    );
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Binds this process to the last core.
pub(crate) fn take_last() -> Result<()> {
    take(count() - 1)
}

/// This thread, bound to the last core for a while.
#[derive(Debug)]
pub(crate) struct OnLast {
    before: CpuSet,
}

impl OnLast {
    pub(crate) fn take() -> Result<Self> {
        let before = sched_getaffinity(None)?;
        take_last()?;
        Ok(Self { before })
    }
}

impl Drop for OnLast {
    fn drop(&mut self) {
        // It was allowed before.
        _ = sched_setaffinity(None, &self.before);
    }
}

/// Lets this thread go before others, as far as that is allowed; not those that it starts.
pub(crate) fn go_first() {
    _ = setpriority_process(None, -20);
    schedule(&["--reset-on-fork", "--fifo", "--pid", "10"]);
}

/// Returns what starts a server before whom attackers do not go, as far as that is allowed; one that
/// `is_alone` lets nobody but live clients go before it.
pub(crate) fn before_attackers(server: &Path, is_alone: bool) -> Command {
    let fifo = ["--fifo", "5"];
    let is_allowed = || {
        let mut command = Command::new("chrt");
        let silent = command.args(fifo).arg("true").stderr(Stdio::null());
        silent.status().is_ok_and(|status| status.success())
    };
    // Without the permission, `nice` goes on all the same.
    let (program, arguments) = match is_alone && is_allowed() {
        true => ("chrt", fifo),
        false => ("nice", ["-n", "-20"]),
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(server);
    command
}

/// Lets all others go before this process.
pub(crate) fn go_last() {
    _ = setpriority_process(None, 10);
}

/// Sets the policy of the scheduler for this thread. Without it, what disturbs is on both sides of the
/// comparison.
fn schedule(arguments: &[&str]) {
    let mut command = Command::new("chrt");
    command.args(arguments).arg(id().to_string());
    _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}
