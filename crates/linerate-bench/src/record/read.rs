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
        Self::parse(&text).map_err(|error| error.in_file(path))
    }

    fn parse(text: &str) -> Result<Self, ParseError> {
        let mut lines = whole_lines(text).lines().enumerate();
        let (_, first) = lines.next().ok_or(ParseError::Empty)?;
        let mut record = Self {
            run: parse_run(first)?,
            cells: Vec::new(),
            measurements: Vec::new(),
        };
        for (index, line) in lines {
            let line = serde_json::from_str(line).map_err(|source| ParseError::Line {
                number: index + 1,
                source,
            })?;
            match line {
                Line::Cell(cell) => record.cells.push(cell),
                Line::Measurement(measurement) => record.measurements.push(measurement),
                Line::Run(_) => return Err(ParseError::SecondRun { number: index + 1 }),
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

fn parse_run(line: &str) -> Result<Run, ParseError> {
    /// The part of the first line that all formats have in common.
    #[derive(serde::Deserialize)]
    struct First {
        format: u32,
    }

    let unreadable = |source| ParseError::Line { number: 1, source };
    let First { format } = serde_json::from_str(line).map_err(unreadable)?;
    if format != FORMAT {
        return Err(ParseError::Format { found: format });
    }
    match serde_json::from_str(line).map_err(unreadable)? {
        Line::Run(run) => Ok(run),
        Line::Cell(_) | Line::Measurement(_) => Err(ParseError::Empty),
    }
}

/// What is wrong with the text of a record.
#[derive(Debug)]
enum ParseError {
    Empty,
    Format {
        found: u32,
    },
    Line {
        number: usize,
        source: serde_json::Error,
    },
    SecondRun {
        number: usize,
    },
}

impl ParseError {
    fn in_file(self, path: &Path) -> RecordError {
        let path = path.to_path_buf();
        match self {
            Self::Empty => RecordError::Empty { path },
            Self::Format { found } => RecordError::Format { path, found },
            Self::Line { number, source } => RecordError::Line {
                path,
                number,
                source,
            },
            Self::SecondRun { number } => RecordError::SecondRun { path, number },
        }
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
