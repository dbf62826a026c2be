//! Writes records, one line at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Line, Record, RecordError, Run, read};

/// A record that is being written. Lines that were appended stay in the file even if the process
/// crashes.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Creates a record, and its folder if necessary.
    ///
    /// # Errors
    ///
    /// Returns an error if the file already exists or cannot be written.
    pub fn create(path: &Path, run: &Run) -> Result<Self, RecordError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(unwritable(path))?;
        }
        let opened = OpenOptions::new().append(true).create_new(true).open(path);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Exists {
                path: path.to_path_buf(),
            },
            _ => unwritable(path)(error),
        })?;
        let mut journal = Self {
            file,
            path: path.to_path_buf(),
        };
        journal.append(&Line::Run(run.clone()))?;
        Ok(journal)
    }

    /// Continues a record and returns what it contains. An incomplete last line is removed.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a record or cannot be written.
    pub fn resume(path: &Path) -> Result<(Self, Record), RecordError> {
        let record = Record::read(path)?;
        let opened = OpenOptions::new().append(true).open(path);
        let file = opened.map_err(unwritable(path))?;
        let text = fs::read_to_string(path).map_err(unwritable(path))?;
        let end = read::whole_lines(&text).len();
        file.set_len(end as u64).map_err(unwritable(path))?;
        let path = path.to_path_buf();
        Ok((Self { file, path }, record))
    }

    /// Appends a line.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn append(&mut self, line: &Line) -> Result<(), RecordError> {
        let text = serde_json::to_string(line).map_err(io::Error::from);
        // The line is written at once, so that only the last line of a file can be incomplete.
        text.and_then(|text| self.file.write_all((text + "\n").as_bytes()))
            .map_err(unwritable(&self.path))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    let path = path.to_path_buf();
    move |source| RecordError::Unwritable { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::read::tests::{some_measurement, some_run};

    #[test]
    fn a_journal_goes_on_behind_the_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder/a.jsonl");
        let mut journal = Journal::create(&path, &some_run()).unwrap();
        journal
            .append(&Line::Measurement(some_measurement(0)))
            .unwrap();
        let mut torn = fs::read(&path).unwrap();
        torn.extend(br#"{"line":"measure"#);
        fs::write(&path, torn).unwrap();

        let (mut journal, record) = Journal::resume(&path).unwrap();
        assert_eq!(record.measurements, [some_measurement(0)]);
        journal
            .append(&Line::Measurement(some_measurement(1)))
            .unwrap();
        let record = Record::read(&path).unwrap();
        assert_eq!(
            record.measurements,
            [some_measurement(0), some_measurement(1)]
        );
    }

    #[test]
    fn an_existing_record_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        fs::write(&path, "hours of work").unwrap();
        let error = Journal::create(&path, &some_run()).unwrap_err();
        assert!(matches!(error, RecordError::Exists { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "hours of work");
    }
}
