//! Binds processes to cores, and sets their priorities.
//!
//! Attackers, live clients and the server share a machine. To measure how the server shares its
//! time, and not how the machine does, live clients have the highest priority, then the server, and
//! attackers run only when the others are idle.

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

/// The core of a server that runs alone on one.
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
        "not enough cores: {cores} available, {} required",
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
        // This cannot fail, because this set was in use before.
        _ = sched_setaffinity(None, &self.before);
    }
}

/// Gives this thread, but not those that it starts, the highest priority, as far as that is
/// permitted.
pub(crate) fn go_first() {
    _ = setpriority_process(None, -20);
    schedule(&["--reset-on-fork", "--fifo", "--pid", "10"]);
}

/// Returns a command that starts a server with a higher priority than the attackers, as far as that
/// is permitted. With `is_alone`, only live clients have a higher priority than the server.
pub(crate) fn before_attackers(server: &Path, is_alone: bool) -> Command {
    let fifo = ["--fifo", "5"];
    let is_allowed = || {
        let mut command = Command::new("chrt");
        let silent = command.args(fifo).arg("true").stderr(Stdio::null());
        silent.status().is_ok_and(|status| status.success())
    };
    // Without the permission, `nice` starts the server with its usual priority.
    let (program, arguments) = match is_alone && is_allowed() {
        true => ("chrt", fifo),
        false => ("nice", ["-n", "-20"]),
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(server);
    command
}

/// Gives this process a low priority.
pub(crate) fn go_last() {
    _ = setpriority_process(None, 10);
}

/// Sets the scheduling policy of this thread. If that is not permitted, the disturbance affects
/// both sides of the comparison.
fn schedule(arguments: &[&str]) {
    let mut command = Command::new("chrt");
    command.args(arguments).arg(id().to_string());
    _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}
