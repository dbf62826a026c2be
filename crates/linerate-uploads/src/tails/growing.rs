//! A growing file, which may be rotated or truncated at any time.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::file_identity::FileIdentity;

/// A file that has been replaced is read until it has not grown for this time, because a server
/// writes to the renamed file until it is told to open the new one.
const REPLACED_QUIET: Duration = Duration::from_secs(5);
/// Maximum time that a file is read after it has been replaced, even if it still grows.
const REPLACED_MAX: Duration = Duration::from_secs(60);

/// Reads what is appended to the file at a path, even if the path later refers to another file.
///
/// When a new file appears at the path (logrotate's `create`), the old one is read until it no
/// longer grows, and then the new one from its beginning. A file that has become shorter than what
/// was read (`copytruncate`) is read from its beginning again.
#[derive(Debug)]
pub(super) struct GrowingFile {
    path: PathBuf,
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    identity: FileIdentity,
    /// Number of bytes read so far.
    position: u64,
    /// Set once another file is at the path.
    replaced: Option<Replaced>,
}

/// When a file was found to be replaced, and when it was last found to have grown since.
#[derive(Clone, Copy, Debug)]
struct Replaced {
    since: Instant,
    grown: Instant,
}

/// The result of a read.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Growth {
    /// This many bytes were read into the beginning of the buffer.
    Bytes(usize),
    /// The file has ended. Another one follows, or the same one from its beginning.
    Ended,
    /// There is nothing to read at the moment.
    None,
}

impl GrowingFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    /// Reads data that has been appended since the last call, as much as fits into `buffer`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or read, for example because it does not exist
    /// yet.
    pub(super) fn read(&mut self, buffer: &mut [u8], now: Instant) -> io::Result<Growth> {
        let Some(open) = &mut self.open else {
            self.open = Some(OpenFile::new(&self.path)?);
            return self.read(buffer, now);
        };
        let read = open.file.read(buffer)?;
        if read > 0 {
            open.position += read as u64;
            if let Some(replaced) = &mut open.replaced {
                replaced.grown = now;
            }
            return Ok(Growth::Bytes(read));
        }
        let (identity, len) = match identity_and_len(&self.path) {
            Ok(found) => found,
            // The file is being rotated. Until the new one exists, the old one is still read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Growth::None),
            Err(error) => return Err(error),
        };
        if identity != open.identity {
            let first = Replaced {
                since: now,
                grown: now,
            };
            let replaced = open.replaced.get_or_insert(first);
            if !replaced.is_over(now) {
                return Ok(Growth::None);
            }
            self.open = None;
            return Ok(Growth::Ended);
        }
        if len < open.position {
            open.file.seek(SeekFrom::Start(0))?;
            open.position = 0;
            return Ok(Growth::Ended);
        }
        Ok(Growth::None)
    }
}

impl Replaced {
    /// Returns whether nothing more is to be expected in the file.
    fn is_over(self, now: Instant) -> bool {
        now.duration_since(self.grown) >= REPLACED_QUIET
            || now.duration_since(self.since) >= REPLACED_MAX
    }
}

impl OpenFile {
    fn new(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let identity = FileIdentity::of_file(&file)?;
        Ok(Self {
            file,
            identity,
            position: 0,
            replaced: None,
        })
    }
}

fn identity_and_len(path: &Path) -> io::Result<(FileIdentity, u64)> {
    Ok((FileIdentity::of_path(path)?, path.metadata()?.len()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File, OpenOptions},
        io::{ErrorKind, Write},
        path::Path,
        time::{Duration, Instant},
    };

    use super::{GrowingFile, Growth};

    fn append(path: &Path, text: &str) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Reads until there is nothing left; the end of a file is shown as `|`.
    fn all(file: &mut GrowingFile, now: Instant) -> String {
        let mut text = String::new();
        let mut buffer = [0; 4];
        loop {
            match file.read(&mut buffer, now).unwrap() {
                Growth::Bytes(read) => text += std::str::from_utf8(&buffer[..read]).unwrap(),
                Growth::Ended => text.push('|'),
                Growth::None => return text,
            }
        }
    }

    #[test]
    fn what_is_there_comes_first_and_then_what_is_appended() {
        let now = Instant::now();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let mut file = GrowingFile::new(path.clone());
        let error = file.read(&mut [0; 4], now).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        append(&path, "one two");
        assert_eq!(all(&mut file, now), "one two");
        assert_eq!(all(&mut file, now), "");
        append(&path, " three");
        assert_eq!(all(&mut file, now), " three");
    }

    #[test]
    fn rotated_file_is_read_until_it_is_quiet_and_then_the_new_one() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("a.log"), folder.path().join("a.log.1"));
        append(&path, "one");
        let mut file = GrowingFile::new(path.clone());
        assert_eq!(all(&mut file, start), "one");
        fs::rename(&path, &old).unwrap();
        append(&old, " late");
        assert_eq!(
            all(&mut file, start),
            " late",
            "the new file does not exist yet"
        );
        append(&old, " later");
        append(&path, "two");
        assert_eq!(all(&mut file, start), " later");
        // The server has not yet been told to open the new file.
        append(&old, " latest");
        assert_eq!(all(&mut file, after(3)), " latest");
        assert_eq!(all(&mut file, after(7)), "");
        assert_eq!(all(&mut file, after(8)), "|two");
    }

    #[test]
    fn rotated_file_that_never_stops_growing_is_given_up() {
        let start = Instant::now();
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("a.log"), folder.path().join("a.log.1"));
        append(&path, "one");
        let mut file = GrowingFile::new(path.clone());
        assert_eq!(all(&mut file, start), "one");
        fs::rename(&path, &old).unwrap();
        append(&path, "two");
        let mut text = String::new();
        for seconds in (0..=60).step_by(4) {
            append(&old, ".");
            text += &all(&mut file, start + Duration::from_secs(seconds));
        }
        assert_eq!(text, format!("{}|two", ".".repeat(16)));
    }

    #[test]
    fn file_that_was_cut_short_is_read_from_its_beginning() {
        let now = Instant::now();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        append(&path, "one two");
        let mut file = GrowingFile::new(path.clone());
        assert_eq!(all(&mut file, now), "one two");
        File::create(&path).unwrap();
        append(&path, "new");
        assert_eq!(all(&mut file, now), "|new");
    }

    #[test]
    fn folder_in_place_of_a_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = GrowingFile::new(folder.path().to_owned());
        assert!(file.read(&mut [0; 4], Instant::now()).is_err());
    }
}
