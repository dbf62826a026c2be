//! Reading records.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{FORMAT, Line, Record, Run};

impl Record {
    /// Reads a record.
    ///
    /// A last line without its end is left out: whoever wrote it was stopped in the middle.
    ///
    /// # Errors
    ///
    /// The file can't be read, is of another format, or has a line that doesn't belong there.
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

/// Returns the text up to the end of its last whole line.
pub(super) fn whole_lines(text: &str) -> &str {
    let end = text.rfind('\n').map_or(0, |feed| feed + 1);
    &text[..end]
}

fn parse_run(line: &str) -> Result<Run, ParseError> {
    /// As much of a first line as every format has.
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

/// Why a record can't be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It has no first line that describes a run.
    #[error("{} is no record: its first line describes no run", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// There is a file already, which may have taken hours.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It was written by another version of linerate.
    #[error("{} is a record of format {found}; this linerate reads format {FORMAT}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        found: u32,
    },
    /// A line is none of a record.
    #[error("{}, line {number}, is no line of a record", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        number: usize,
        /// Where in the line, and why.
        source: serde_json::Error,
    },
    /// A second run begins; a file holds one.
    #[error("{}, line {number}, begins a second run", path.display())]
    SecondRun {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        number: usize,
    },
    /// The file can't be read.
    #[error("can't read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file can't be written.
    #[error("can't write {}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::{Measurement, Outcome};

    /// The description of a run of which only the name of the effort matters.
    pub(in crate::record) fn some_run() -> Run {
        let text = r#"{
            "format": 1, "effort": "quick", "started": "2026-01-02T03:04:05Z", "command": "linerate bench",
            "rounds": 3, "measured_ms": 100, "warm_up_ms": 25, "linerate": "0.1.0",
            "host": {
                "cpu": "", "server_cores": [0], "load_cores": [1], "cores": 2, "memory_bytes": 1,
                "kernel": "", "hypervisor": "", "governor": "", "mitigations": [], "tools": []
            },
            "scenarios": [], "contenders": []
        }"#;
        serde_json::from_str(text).unwrap()
    }

    pub(in crate::record) fn some_measurement(round: u32) -> Measurement {
        Measurement {
            cell: "pipeline/5B".into(),
            contender: "linerate".into(),
            round,
            outcome: Outcome::Failed {
                reason: "it crashed".into(),
            },
        }
    }

    fn text(lines: &[Line]) -> String {
        let lines = lines.iter();
        lines
            .map(|line| serde_json::to_string(line).unwrap() + "\n")
            .collect()
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out_wherever_it_was_cut() {
        let whole = text(&[
            Line::Run(some_run()),
            Line::Measurement(some_measurement(0)),
        ]);
        let last = text(&[Line::Measurement(some_measurement(1))]);
        for cut in 0..last.len() {
            let record = Record::parse(&format!("{whole}{}", &last[..cut])).unwrap();
            assert_eq!(record.measurements, [some_measurement(0)], "{cut}");
        }
        let record = Record::parse(&(whole + &last)).unwrap();
        assert_eq!(record.measurements.len(), 2);
        assert_eq!(record.run, some_run());
    }

    #[test]
    fn a_broken_line_in_the_middle_is_named() {
        let whole = text(&[
            Line::Run(some_run()),
            Line::Measurement(some_measurement(0)),
        ]);
        let error = Record::parse(&whole.replace("\"round\"", "\"turn\"")).unwrap_err();
        let error = error.in_file("a.jsonl".as_ref());
        assert_eq!(error.to_string(), "a.jsonl, line 2, is no line of a record");
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let run = Line::Run(some_run());
        let old = text(std::slice::from_ref(&run)).replace("\"format\":1", "\"format\":7");
        for (text, message) in [
            ("", "a.jsonl is no record: its first line describes no run"),
            (
                &old,
                "a.jsonl is a record of format 7; this linerate reads format 1",
            ),
            ("{}\n", "a.jsonl, line 1, is no line of a record"),
            (
                &text(&[run.clone(), run]),
                "a.jsonl, line 2, begins a second run",
            ),
        ] {
            let error = Record::parse(text).unwrap_err();
            assert_eq!(error.in_file("a.jsonl".as_ref()).to_string(), message);
        }
    }
}
