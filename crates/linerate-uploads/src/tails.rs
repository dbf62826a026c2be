//! Log files that the server follows as they grow. Each is parsed once for any number of viewers.

mod growing;
mod tail;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use linerate_budget::{Budget, Consumer};
use linerate_logview::session::Limits;

use crate::{memory::ALLOCATED_FOR_8, options::LogsOptions};
pub(crate) use tail::Tail;

/// All followed files.
#[derive(Debug, Default)]
pub(crate) struct Tails(Vec<Arc<Tail>>);

impl Tails {
    /// Starts to read the files, each on its own thread. A file that does not exist yet is waited
    /// for. Their memory is limited by the options and charged to the budget of the process.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started.
    pub(crate) fn start(
        options: &LogsOptions,
        limits: &Limits,
        process: &Budget,
    ) -> std::io::Result<Self> {
        let paths = &options.tail;
        let bytes_max = options.tails_budget_bytes(process.bytes_max().unwrap_or(u64::MAX));
        let limits = within(limits.clone(), bytes_max / (paths.len() as u64).max(1));
        let tails = paths.iter().map(|path| {
            let name = name_of(path, paths);
            let lease = process.lease(Consumer::Tails);
            Tail::start(name, path.clone(), limits.clone(), lease)
        });
        tails.collect::<std::io::Result<_>>().map(Self)
    }

    /// Returns the names by which the files can be followed.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.0.iter().map(|tail| tail.name().to_owned());
        names.collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Tail>> {
        self.0.iter().find(|tail| tail.name() == name).cloned()
    }
}

/// Lowers the limits of a log so that it uses at most `bytes_max` bytes of memory.
fn within(mut limits: Limits, bytes_max: u64) -> Limits {
    // `bytes_max` includes the overhead of the allocator.
    let bytes = usize::try_from(bytes_max / ALLOCATED_FOR_8 * 8).unwrap_or(usize::MAX);
    limits.aggregate = limits.aggregate.within(bytes);
    limits
}

/// Returns the name of a file for viewers: the last component of its path if that is unique,
/// otherwise the whole path.
fn name_of(path: &Path, all: &[PathBuf]) -> String {
    let namesakes = all.iter().filter(|it| it.file_name() == path.file_name());
    let name = match path.file_name() {
        Some(name) if namesakes.count() == 1 => name.to_string_lossy(),
        _ => path.to_string_lossy(),
    };
    name.into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::name_of;

    #[test]
    fn namesakes_are_told_apart_by_their_whole_paths() {
        let paths = ["/a/access.log", "/b/access.log", "/b/other.log"].map(PathBuf::from);
        let names: Vec<_> = paths.iter().map(|path| name_of(path, &paths)).collect();
        assert_eq!(names, ["/a/access.log", "/b/access.log", "other.log"]);
    }
}
