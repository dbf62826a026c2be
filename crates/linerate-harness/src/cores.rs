//! The cores that threads may run on, by their numbers.

use std::io;

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

/// Returns the cores that this thread may use, in ascending order.
///
/// # Errors
/// Returns an error if the system does not tell.
pub fn allowed() -> io::Result<Vec<u32>> {
    Ok(numbers(&sched_getaffinity(None)?))
}

/// Returns the cores that a process may use, in ascending order.
///
/// # Errors
/// Returns an error if there is no such process.
pub fn allowed_for(pid: u32) -> io::Result<Vec<u32>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::NotFound)?;
    Ok(numbers(&sched_getaffinity(Some(pid))?))
}

fn numbers(set: &CpuSet) -> Vec<u32> {
    (0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .map(|core| core as u32)
        .collect()
}

/// Pins this thread, and the threads and processes that it starts later, to `cores`.
///
/// # Errors
/// Returns an error if none of the cores may be used.
pub fn pin(cores: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores {
        if core as usize >= CpuSet::MAX_CPU {
            let message = format!(
                "core {core} is out of range: it must be below {}",
                CpuSet::MAX_CPU
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        set.set(core as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Keeps the calling thread on certain cores until it is dropped.
#[derive(Debug)]
pub struct AffinityGuard {
    before: CpuSet,
}

impl AffinityGuard {
    /// Moves the calling thread to `cores`. If `cores` is empty, the thread stays where it is.
    ///
    /// # Errors
    /// Returns an error if none of the cores may be used.
    pub fn to(cores: &[u32]) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        if !cores.is_empty() {
            pin(cores)?;
        }
        Ok(Self { before })
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        // This process was allowed to use these cores before. If that is no longer so, the thread
        // simply stays on the cores that it may use.
        _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_goes_back_to_where_it_was() {
        let before = allowed().unwrap();
        let last = *before.last().unwrap();
        let pinned = AffinityGuard::to(&[last]).unwrap();
        assert_eq!(allowed().unwrap(), [last]);
        drop(pinned);
        assert_eq!(allowed().unwrap(), before);
        assert_eq!(allowed_for(std::process::id()).unwrap(), before);
    }

    #[test]
    fn cores_and_processes_that_do_not_exist_are_errors() {
        for core in [1_000, u32::MAX] {
            assert!(AffinityGuard::to(&[core]).is_err(), "{core}");
        }
        for pid in [0, u32::MAX] {
            assert!(allowed_for(pid).is_err(), "{pid}");
        }
    }
}
