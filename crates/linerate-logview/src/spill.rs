//! Temporary files for the requests of logs that are too large for memory.

use std::{
    env, fmt,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use thiserror::Error;

/// Disk space that all logs of a process share for their temporary files.
///
/// The files have no names, so that the operating system removes them even if the process is
/// killed.
#[derive(Debug)]
pub struct SpillSpace {
    directory: PathBuf,
    bytes_max: u64,
    /// The name of the setting that limits the space, for error messages.
    setting: &'static str,
    /// True if one file may have at most half of the space that the others leave.
    is_fair: bool,
    used: AtomicU64,
    on_shortage: OnceLock<OnShortage>,
}

/// Frees space; returns false if there is nothing to free.
struct OnShortage(Box<dyn Fn() -> bool + Send + Sync>);

/// Why a temporary file cannot be written or read.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SpillError {
    /// All files together would exceed the limit, or this one its share.
    #[error(
        "it needs more space for temporary files than it may have of the {bytes_max} bytes that may \
         be used ({setting})"
    )]
    Full {
        /// The most bytes of all files together.
        bytes_max: u64,
        /// The setting that limits them.
        setting: &'static str,
    },
    /// The operating system reported an error, such as a full disk.
    #[error("cannot use a temporary file in {}: {message}", directory.display())]
    Io {
        /// The directory of the file.
        directory: PathBuf,
        /// What the operating system reported.
        message: String,
    },
}

impl SpillSpace {
    /// Creates the space: at most `bytes_max` bytes in `directory`, as limited by `setting`.
    pub fn new(directory: PathBuf, bytes_max: u64, setting: &'static str) -> Self {
        Self {
            directory,
            bytes_max,
            setting,
            is_fair: false,
            used: AtomicU64::new(0),
            on_shortage: OnceLock::new(),
        }
    }

    /// Limits each file to half of the space that the others leave, so that one log cannot prevent
    /// all others from being stored.
    #[must_use]
    pub fn with_fair_shares(mut self) -> Self {
        self.is_fair = true;
        self
    }

    /// Sets what is called when a file cannot grow. It should delete a file that is needed less,
    /// and returns false if there is none. Only the first call has an effect.
    pub fn on_shortage(&self, free: impl Fn() -> bool + Send + Sync + 'static) {
        _ = self.on_shortage.set(OnShortage(Box::new(free)));
    }

    /// Returns the usual directory for large temporary files: `$TMPDIR`, or else `/var/tmp` if it
    /// exists, because the one for small files is often in memory.
    pub fn default_directory() -> PathBuf {
        let large = Path::new("/var/tmp");
        match env::var_os("TMPDIR") {
            None if large.is_dir() => large.to_owned(),
            _ => env::temp_dir(),
        }
    }

    /// Returns how many bytes all files have now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Adds `bytes` to a file that has `held` bytes.
    fn reserve(&self, held: u64, bytes: u64) -> Result<(), SpillError> {
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let grown = held.saturating_add(bytes);
        loop {
            let reserved = self.used.fetch_update(set, fetch, |used| {
                let others = used.saturating_sub(held);
                let left = self.bytes_max.saturating_sub(others);
                let share = if self.is_fair { left / 2 } else { left };
                (grown <= share).then_some(others + grown)
            });
            if reserved.is_ok() {
                return Ok(());
            }
            if !self.on_shortage.get().is_some_and(|free| (free.0)()) {
                return Err(SpillError::Full {
                    bytes_max: self.bytes_max,
                    setting: self.setting,
                });
            }
        }
    }

    fn failed(&self, error: &io::Error) -> SpillError {
        SpillError::Io {
            directory: self.directory.clone(),
            message: error.to_string(),
        }
    }
}

impl fmt::Debug for OnShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnShortage(…)")
    }
}

/// A temporary file to which data are appended. Its space is released when it is dropped.
#[derive(Debug)]
pub(crate) struct SpillFile {
    space: Arc<SpillSpace>,
    /// Locked while it is read, because reading moves its position.
    file: Mutex<File>,
    bytes: u64,
}

impl SpillFile {
    pub(crate) fn create(space: &Arc<SpillSpace>) -> Result<Self, SpillError> {
        let file = tempfile::tempfile_in(&space.directory);
        Ok(Self {
            file: Mutex::new(file.map_err(|error| space.failed(&error))?),
            space: space.clone(),
            bytes: 0,
        })
    }

    /// Appends data; returns where they begin.
    pub(crate) fn append(&mut self, data: &[u8]) -> Result<u64, SpillError> {
        let at = self.bytes;
        self.space.reserve(self.bytes, data.len() as u64)?;
        self.bytes += data.len() as u64;
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        let written = file
            .seek(SeekFrom::Start(at))
            .and_then(|_| file.write_all(data));
        written.map_err(|error| self.space.failed(&error))?;
        Ok(at)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fills a buffer with the data that begin at `at`.
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> Result<(), SpillError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file
            .seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(into));
        read.map_err(|error| self.space.failed(&error))
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.space.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{SpillError, SpillFile, SpillSpace};

    fn space(folder: &tempfile::TempDir, bytes_max: u64) -> Arc<SpillSpace> {
        let directory = folder.path().to_owned();
        Arc::new(SpillSpace::new(directory, bytes_max, "the limit"))
    }

    fn full(bytes_max: u64) -> Result<u64, SpillError> {
        let setting = "the limit";
        Err(SpillError::Full { bytes_max, setting })
    }

    #[test]
    fn files_share_the_space_and_release_it() {
        let folder = tempfile::tempdir().unwrap();
        let space = space(&folder, 10);
        let mut one = SpillFile::create(&space).unwrap();
        let mut two = SpillFile::create(&space).unwrap();
        assert_eq!((one.append(b"abc"), one.append(b"defg")), (Ok(0), Ok(3)));
        assert_eq!((two.append(b"xyz"), space.used()), (Ok(0), 10));
        assert_eq!(one.append(b"h"), full(10));
        let mut read = [0; 4];
        one.read(3, &mut read).unwrap();
        assert_eq!(&read, b"defg");
        assert!(two.read(1, &mut read).is_err(), "only two bytes are there");
        let names = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(names.count(), 0, "files have no names");
        drop(one);
        assert_eq!((two.append(b"1234567"), space.used()), (Ok(3), 10));
    }

    #[test]
    fn one_file_has_half_of_what_the_others_leave() {
        let folder = tempfile::tempdir().unwrap();
        let space = SpillSpace::new(folder.path().to_owned(), 16, "the limit");
        let space = Arc::new(space.with_fair_shares());
        let mut one = SpillFile::create(&space).unwrap();
        assert_eq!(one.append(&[0; 9]), full(16));
        assert_eq!((one.append(&[0; 8]), one.append(b"x")), (Ok(0), full(16)));
        let mut two = SpillFile::create(&space).unwrap();
        assert_eq!((two.append(&[0; 4]), two.append(b"x")), (Ok(0), full(16)));
        let mut three = SpillFile::create(&space).unwrap();
        assert_eq!((three.append(&[0; 2]), space.used()), (Ok(0), 14));
        drop(one);
        assert_eq!((two.append(b"xyz"), space.used()), (Ok(4), 9));
    }

    #[test]
    fn space_is_freed_as_long_as_there_is_something_to_free() {
        let folder = tempfile::tempdir().unwrap();
        let space = SpillSpace::new(folder.path().to_owned(), 16, "the limit");
        let space = Arc::new(space.with_fair_shares());
        let mut kept = Vec::new();
        for bytes in [8, 4] {
            let mut file = SpillFile::create(&space).unwrap();
            file.append(&vec![0; bytes]).unwrap();
            kept.push(file);
        }
        let kept = std::sync::Mutex::new(kept);
        space.on_shortage(move || kept.lock().unwrap().pop().is_some());
        let mut file = SpillFile::create(&space).unwrap();
        assert_eq!((file.append(&[0; 4]), space.used()), (Ok(0), 12));
        assert_eq!((file.append(&[0; 4]), space.used()), (Ok(4), 8));
        assert_eq!((file.append(b"x"), space.used()), (full(16), 8));
    }

    #[test]
    fn an_error_of_the_system_names_the_directory() {
        let space = SpillSpace::new("/nonexistent/folder".into(), 10, "the limit");
        let error = SpillFile::create(&Arc::new(space)).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
    }
}
