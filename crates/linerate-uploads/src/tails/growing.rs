//! A growing file, which may be rotated or truncated at any time.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use crate::file_identity::FileIdentity;

/// Reads what is appended to the file at a path, even if the path later refers to another file.
///
/// When a new file appears at the path (logrotate's `create`), the old one is read to its end
/// before the new one is read from its beginning. A file that has become shorter than what was read
/// (`copytruncate`) is read from its beginning again.
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
    /// Returns an error if the file cannot be opened or read. A file that does not exist is not an
    /// error.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Growth> {
        let Some(open) = &mut self.open else {
            self.open = OpenFile::try_new(&self.path)?;
            return match self.open {
                Some(_) => self.read(buffer),
                None => Ok(Growth::None),
            };
        };
        let read = open.file.read(buffer)?;
        if read > 0 {
            open.position += read as u64;
            return Ok(Growth::Bytes(read));
        }
        let (identity, len) = match identity_and_len(&self.path) {
            Ok(found) => found,
            // The file is being rotated. Until the new one exists, the old one is still read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Growth::None),
            Err(error) => return Err(error),
        };
        if identity != open.identity {
            return self.end_old_file(buffer);
        }
        if len < open.position {
            open.file.seek(SeekFrom::Start(0))?;
            open.position = 0;
            return Ok(Growth::Ended);
        }
        Ok(Growth::None)
    }

    /// Reads what is left of a file that has been replaced by another one.
    fn end_old_file(&mut self, buffer: &mut [u8]) -> io::Result<Growth> {
        if let Some(open) = &mut self.open {
            let read = open.file.read(buffer)?;
            if read > 0 {
                open.position += read as u64;
                return Ok(Growth::Bytes(read));
            }
        }
        self.open = None;
        Ok(Growth::Ended)
    }
}

impl OpenFile {
    /// Opens a file. Returns `None` if it does not exist.
    fn try_new(path: &PathBuf) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let identity = FileIdentity::of_file(&file)?;
        Ok(Some(Self {
            file,
            identity,
            position: 0,
        }))
    }
}

fn identity_and_len(path: &Path) -> io::Result<(FileIdentity, u64)> {
    Ok((FileIdentity::of_path(path)?, path.metadata()?.len()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File, OpenOptions},
        io::Write,
        path::Path,
    };

    use super::{GrowingFile, Growth};

    fn append(path: &Path, text: &str) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Reads until there is nothing left; the end of a file is shown as `|`.
    fn all(file: &mut GrowingFile) -> String {
        let mut text = String::new();
        let mut buffer = [0; 4];
        loop {
            match file.read(&mut buffer).unwrap() {
                Growth::Bytes(read) => text += std::str::from_utf8(&buffer[..read]).unwrap(),
                Growth::Ended => text.push('|'),
                Growth::None => return text,
            }
        }
    }

    #[test]
    fn what_is_there_comes_first_and_then_what_is_appended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let mut file = GrowingFile::new(path.clone());
        assert_eq!(all(&mut file), "", "the file does not exist yet");
        append(&path, "one two");
        assert_eq!(all(&mut file), "one two");
        assert_eq!(all(&mut file), "");
        append(&path, " three");
        assert_eq!(all(&mut file), " three");
    }

    #[test]
    fn rotated_file_is_read_to_its_end_before_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("a.log"), folder.path().join("a.log.1"));
        append(&path, "one");
        let mut file = GrowingFile::new(path.clone());
        assert_eq!(all(&mut file), "one");
        fs::rename(&path, &old).unwrap();
        append(&old, " late");
        assert_eq!(all(&mut file), " late", "the new file does not exist yet");
        append(&old, " later");
        append(&path, "two");
        assert_eq!(all(&mut file), " later|two");
    }

    #[test]
    fn file_that_was_cut_short_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        append(&path, "one two");
        let mut file = GrowingFile::new(path.clone());
        assert_eq!(all(&mut file), "one two");
        File::create(&path).unwrap();
        append(&path, "new");
        assert_eq!(all(&mut file), "|new");
    }

    #[test]
    fn folder_in_place_of_a_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = GrowingFile::new(folder.path().to_owned());
        assert!(file.read(&mut [0; 4]).is_err());
    }
}
