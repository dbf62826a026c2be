//! The choice of cores for servers and load.

use std::io;

use linerate_harness::cores::allowed;
use thiserror::Error;

/// The numbers of the cores that servers and load run on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cores {
    /// Cores for the servers, which run one at a time.
    pub server: Vec<u32>,
    /// Cores for the load and everything else that this process does.
    pub load: Vec<u32>,
}

impl Cores {
    /// Chooses the cores that the caller does not give. Servers get the first half, but at least
    /// one, of the cores that this process may use, and the load gets the others. If there are no
    /// others, both share the same cores.
    ///
    /// # Errors
    ///
    /// Returns an error if this process may not use one of the given cores, or if the system does
    /// not tell which cores it may use.
    pub fn choose(server: Option<Vec<u32>>, load: Option<Vec<u32>>) -> Result<Self, CoresError> {
        let allowed = allowed().map_err(CoresError::Unknown)?;
        Self::choose_from(&allowed, server, load)
    }

    fn choose_from(
        allowed: &[u32],
        server: Option<Vec<u32>>,
        load: Option<Vec<u32>>,
    ) -> Result<Self, CoresError> {
        for &core in server.iter().chain(&load).flatten() {
            if !allowed.contains(&core) {
                return Err(CoresError::NotAllowed {
                    core,
                    allowed: allowed.to_vec(),
                });
            }
        }
        let others = |taken: &[u32]| -> Vec<u32> {
            let free = allowed.iter().filter(|core| !taken.contains(core));
            free.copied().collect()
        };
        let (server, load) = match (server, load) {
            (Some(server), Some(load)) => (server, load),
            (Some(server), None) => {
                let load = others(&server);
                (server, load)
            }
            (None, Some(load)) => (others(&load), load),
            (None, None) => {
                let half = (allowed.len() / 2).max(1).min(allowed.len());
                let (server, load) = allowed.split_at(half);
                (server.to_vec(), load.to_vec())
            }
        };
        // With a single core, or if one side was given all cores, both sides have to share.
        let or_all = |cores: Vec<u32>| {
            if cores.is_empty() {
                allowed.to_vec()
            } else {
                cores
            }
        };
        Ok(Self {
            server: or_all(server),
            load: or_all(load),
        })
    }

    /// Returns whether servers and load share any core.
    pub fn are_shared(&self) -> bool {
        self.server.iter().any(|core| self.load.contains(core))
    }
}

/// The reason why cores cannot be chosen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoresError {
    /// A core does not exist, or this process may not use it.
    #[error("core {core} is not available; available cores: {}", list(allowed))]
    NotAllowed {
        /// Number of the core.
        core: u32,
        /// Numbers of the cores that this process may use.
        allowed: Vec<u32>,
    },
    /// The system does not tell which cores this process may use.
    #[error("cannot read the CPU affinity")]
    Unknown(#[source] io::Error),
}

/// Returns numbers of cores, separated by commas.
pub(crate) fn list(cores: &[u32]) -> String {
    let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
    cores.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        allowed: &[u32],
        server: Option<&[u32]>,
        load: Option<&[u32]>,
    ) -> (Vec<u32>, Vec<u32>, bool) {
        let vec = |cores: &[u32]| cores.to_vec();
        let cores = Cores::choose_from(allowed, server.map(vec), load.map(vec)).unwrap();
        let shared = cores.are_shared();
        (cores.server, cores.load, shared)
    }

    #[test]
    fn the_first_half_is_for_servers() {
        assert_eq!(chosen(&[0, 1], None, None), (vec![0], vec![1], false));
        assert_eq!(
            chosen(&[2, 3, 5, 7, 9], None, None),
            (vec![2, 3], vec![5, 7, 9], false)
        );
    }

    #[test]
    fn a_single_core_is_shared() {
        assert_eq!(chosen(&[4], None, None), (vec![4], vec![4], true));
        assert_eq!(
            chosen(&[4, 5], Some(&[4, 5]), None),
            (vec![4, 5], vec![4, 5], true)
        );
    }

    #[test]
    fn what_is_not_given_is_what_is_left() {
        let allowed = [0, 1, 2, 3];
        assert_eq!(
            chosen(&allowed, Some(&[3]), None),
            (vec![3], vec![0, 1, 2], false)
        );
        assert_eq!(
            chosen(&allowed, None, Some(&[0, 1])),
            (vec![2, 3], vec![0, 1], false)
        );
        assert_eq!(
            chosen(&allowed, Some(&[1]), Some(&[1])),
            (vec![1], vec![1], true)
        );
    }

    #[test]
    fn a_core_that_may_not_be_used_is_named_with_those_that_may() {
        let error = Cores::choose_from(&[0, 2], Some(vec![1]), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "core 1 is not available; available cores: 0, 2"
        );
    }
}
