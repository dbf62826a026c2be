//! Keeps the calling thread on the cores of the load, away from the server's cores.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::LoadError;
use super::error::system;

/// Keeps the calling thread on certain cores until it is dropped.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// Moves the calling thread to `cores`. If `cores` is empty, the thread stays where it is.
    ///
    /// # Errors
    ///
    /// Returns an error if none of the cores exists or may be used.
    pub(crate) fn to(cores: &[u32]) -> Result<Self, LoadError> {
        let before = sched_getaffinity(None).map_err(system("cannot read the CPU affinity"))?;
        if !cores.is_empty() {
            let mut set = CpuSet::new();
            for &core in cores {
                if (core as usize) < CpuSet::MAX_CPU {
                    set.set(core as usize);
                }
            }
            sched_setaffinity(None, &set).map_err(system("cannot pin the load to its cores"))?;
        }
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // This process was allowed to use these cores before. If that is no longer so, the thread
        // simply stays on the cores that it may use.
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
