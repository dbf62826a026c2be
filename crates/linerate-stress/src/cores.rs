//! Binds processes to cores, and sets their priorities.
//!
//! Attackers, live clients and the server share a machine. To measure how the server shares its
//! time, and not how the machine does, live clients have the highest priority, then the server, and
//! attackers run only when the others are idle.

use std::{
    hint::spin_loop,
    path::Path,
    process::{Command, Stdio, id},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, bail};
use linerate_harness::cores::{AffinityGuard, allowed, pin};
use rustix::{process::setpriority_process, thread::gettid};

/// Binds this process to the first core, where a server runs alone.
///
/// # Errors
/// If there is no other core for its clients.
pub(crate) fn take_first() -> Result<()> {
    match allowed()?[..] {
        [first, _, ..] => Ok(pin(&[first])?),
        _ => bail!("not enough cores: 1 available, 2 required"),
    }
}

/// Binds this process to the last core.
pub(crate) fn take_last() -> Result<()> {
    Ok(pin(&[last()?])?)
}

/// Binds this thread to the last core until the result is dropped.
pub(crate) fn borrow_last() -> Result<AffinityGuard> {
    Ok(AffinityGuard::to(&[last()?])?)
}

fn last() -> Result<u32> {
    let allowed = allowed()?;
    allowed.last().copied().context("no core is available")
}

/// Gives this thread, but not those that it starts, the highest priority, as far as that is
/// permitted.
pub(crate) fn go_first() {
    _ = setpriority_process(None, -20);
    let mut command = Command::new("chrt");
    command.args(["--reset-on-fork", "--fifo", "--pid", "10"]);
    // If that is not permitted, the disturbance affects both sides of the comparison.
    command.arg(id().to_string()).stdout(Stdio::null());
    _ = command.stderr(Stdio::null()).status();
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

/// Keeps all cores busy until it is dropped, but only when nothing else wants to run.
///
/// This is the baseline for work that a server does with the lowest priority: an idle core wakes up
/// later than a busy one changes threads, and a host takes it away sooner.
pub(crate) struct BusyCores {
    is_over: Arc<AtomicBool>,
}

impl BusyCores {
    pub(crate) fn begin() -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        for _ in allowed()? {
            let is_over = Arc::clone(&is_over);
            thread::Builder::new().name("busy".into()).spawn(move || {
                if go_idle() {
                    while !is_over.load(Ordering::Relaxed) {
                        spin_loop();
                    }
                }
            })?;
        }
        Ok(Self { is_over })
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Makes this thread run only when no other wants the core. Returns whether that succeeded.
fn go_idle() -> bool {
    let mut command = Command::new("chrt");
    command.args(["--idle", "--pid", "0"]);
    command.arg(gettid().as_raw_nonzero().to_string());
    let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}
