//! Who runs on which core.

use std::{error::Error, thread};

use rustix::{
    process::setpriority_process,
    thread::{CpuSet, sched_setaffinity},
};

/// The core of the server.
pub(crate) const SERVER: usize = 0;

/// The core of the live clients.
pub(crate) const LIVE: usize = 1;

/// Binds this process to a core.
pub(crate) fn take(core: usize) -> Result<(), Box<dyn Error>> {
    let cores = thread::available_parallelism()?.get();
    if core >= cores {
        return Err(format!("{cores} core(s) are too few, two are needed").into());
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Binds this process to the last core, which may be that of the live clients, and lets all others
/// go first.
pub(crate) fn take_what_is_left() -> Result<(), Box<dyn Error>> {
    take(thread::available_parallelism()?.get() - 1)?;
    Ok(setpriority_process(None, 19)?)
}

/// Lets this process go before others, as far as that is allowed.
pub(crate) fn prefer() {
    // Without it, what disturbs is on both sides of the comparison.
    _ = setpriority_process(None, -20);
}
