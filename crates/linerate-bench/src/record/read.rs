//! Reading records.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{FORMAT, Line, Record, Run};

impl Record {
    /// Reads a record.
    ///
    /// An incomplete last line is ignored: its writer was stopped in the middle of it.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, has another format, or contains a line that
    /// does not belong there.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let text = fs::read_to_string(path).map_err(|source| RecordError::Unreadable {
            path: path.to_path_buf(),
            source,
        })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, RecordError> {
        let mut lines = whole_lines(text).lines().enumerate();
        let (_, first) = lines.next().ok_or_else(|| empty(path))?;
        let mut record = Self {
            run: parse_run(path, first)?,
            cells: Vec::new(),
            measurements: Vec::new(),
        };
        for (index, line) in lines {
            let number = index + 1;
            match serde_json::from_str(line).map_err(not_a_line(path, number))? {
                Line::Cell(cell) => record.cells.push(cell),
                Line::Measurement(measurement) => record.measurements.push(measurement),
                Line::Run(_) => {
                    let path = path.to_path_buf();
                    return Err(RecordError::SecondRun { path, number });
                }
            }
        }
        Ok(record)
    }
}

/// Returns the text up to the end of its last complete line.
pub(super) fn whole_lines(text: &str) -> &str {
    let end = text.rfind('\n').map_or(0, |feed| feed + 1);
    &text[..end]
}

fn parse_run(path: &Path, line: &str) -> Result<Run, RecordError> {
    /// The part of the first line that all formats have in common.
    #[derive(serde::Deserialize)]
    struct First {
        format: u32,
    }

    let First { format: found } = serde_json::from_str(line).map_err(not_a_line(path, 1))?;
    if found != FORMAT {
        let path = path.to_path_buf();
        return Err(RecordError::Format { path, found });
    }
    match serde_json::from_str(line).map_err(not_a_line(path, 1))? {
        Line::Run(run) => Ok(run),
        Line::Cell(_) | Line::Measurement(_) => Err(empty(path)),
    }
}

fn empty(path: &Path) -> RecordError {
    let path = path.to_path_buf();
    RecordError::Empty { path }
}

fn not_a_line(path: &Path, number: usize) -> impl Fn(serde_json::Error) -> RecordError {
    move |source| RecordError::Line {
        path: path.to_path_buf(),
        number,
        source,
    }
}

/// The reason why a record cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The first line does not describe a run.
    #[error("{}: not a benchmark record: the first line does not describe a run", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file already exists. It may have taken hours to make.
    #[error("{} already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The record was written in the format of another version of linerate.
    #[error("{}: record format {found} is not supported; this version of linerate reads format {FORMAT}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Version of its format.
        found: u32,
    },
    /// A line is not a line of a record.
    #[error("{}:{number}: not a benchmark record line", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, counted from 1.
        number: usize,
        /// What is wrong, and where in the line.
        source: serde_json::Error,
    },
    /// A second run begins. A file holds only one.
    #[error("{}:{number}: a second run begins, but a record holds only one", path.display())]
    SecondRun {
        /// The file.
        path: PathBuf,
        /// Number of the line, counted from 1.
        number: usize,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

#[cfg(test)]
pub(super) mod tests;
