//! Keeping a thread on the cores of the load, away from the server's.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::LoadError;
use super::error::system;

/// The calling thread is on certain cores until this is dropped.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// Moves the calling thread to `cores`; without any it stays where it may be.
    ///
    /// # Errors
    ///
    /// There are no such cores, or they are not for us.
    pub(crate) fn to(cores: &[u32]) -> Result<Self, LoadError> {
        let before = sched_getaffinity(None).map_err(system("the cores to run on are unknown"))?;
        if !cores.is_empty() {
            let mut set = CpuSet::new();
            for &core in cores {
                if (core as usize) < CpuSet::MAX_CPU {
                    set.set(core as usize);
                }
            }
            sched_setaffinity(None, &set).map_err(system("the load cannot be pinned"))?;
        }
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The cores were ours before; if they are no more, this thread is where it may be.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_goes_back_to_where_it_was() {
        let before = sched_getaffinity(None).unwrap();
        let last = (0..CpuSet::MAX_CPU)
            .rfind(|&core| before.is_set(core))
            .unwrap();
        let pinned = Pinned::to(&[last as u32]).unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        drop(pinned);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn cores_that_are_not_there_are_our_own_failure() {
        for core in [1_000, u32::MAX] {
            assert!(Pinned::to(&[core]).unwrap_err().is_ours());
        }
    }
}
