//! Limits of this process.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files of this process to its hard limit and returns that limit; `None`
/// means there is no limit. Processes that are started afterwards inherit the new limit: many
/// systems allow a thousand files at first, which is fewer than the connections of a load.
///
/// # Errors
///
/// Returns an error if the system refuses.
pub fn raise_file_limit() -> io::Result<Option<u64>> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(limit.maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_limit_is_raised_as_far_as_it_goes() {
        let files_max = raise_file_limit().unwrap();
        assert_eq!(getrlimit(Resource::Nofile).current, files_max);
    }
}
