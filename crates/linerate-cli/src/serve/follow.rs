//! Log files that the server reads itself as they grow: parsed once each, for any number of viewers.

mod growing;
mod tail;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use linerate_budget::{Budget, Consumer};
use linerate_logview::session::Limits;

use super::upload::ALLOCATED_FOR_8;
pub(super) use tail::Tail;

/// All files that are followed.
#[derive(Debug, Default)]
pub(super) struct Tails(Vec<Arc<Tail>>);

impl Tails {
    /// Begins to read the files, each on a thread of its own. A file that isn't there yet is waited
    /// for. Together their figures take up `bytes_max` bytes at most, which are counted in the budget of the process.
    ///
    /// # Errors
    /// A thread can't be started.
    pub(super) fn start(
        paths: &[PathBuf],
        limits: &Limits,
        bytes_max: u64,
        process: &Budget,
    ) -> std::io::Result<Self> {
        let limits = within(limits.clone(), bytes_max / (paths.len() as u64).max(1));
        let tails = paths.iter().map(|path| {
            let name = name_of(path, paths);
            let lease = process.lease(Consumer::Tails);
            Tail::start(name, path.clone(), limits.clone(), lease)
        });
        tails.collect::<std::io::Result<_>>().map(Self)
    }

    /// Returns the names by which the files can be followed.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.0.iter().map(|tail| tail.name().to_owned());
        names.collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<Tail>> {
        self.0.iter().find(|tail| tail.name() == name).cloned()
    }
}

/// Lowers the limits of a log until it takes at most `bytes_max` of memory.
fn within(mut limits: Limits, bytes_max: u64) -> Limits {
    // The allocator's overhead is part of it.
    let bytes = usize::try_from(bytes_max / ALLOCATED_FOR_8 * 8).unwrap_or(usize::MAX);
    limits.aggregate = limits.aggregate.within(bytes);
    limits
}

/// Returns what a file is called among the others: the last part of its path if that is enough.
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
