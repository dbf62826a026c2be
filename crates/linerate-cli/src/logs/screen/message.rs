//! What the view and the engine tell each other.

use std::{error::Error, fmt, io};

use linerate_logview::{
    query::{Query, QueryError, Rows},
    summary::Summary,
};
use ratatui::crossterm::event::Event as TerminalEvent;

/// What the view asks of the engine. A question replaces an earlier one of the same kind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Question {
    /// The figures of the requests that a query selects, now and whenever the log has grown.
    Figures { id: u64, query: Query },
    /// Lines of the requests that a query selects, after the first `offset`.
    Lines {
        id: u64,
        query: Query,
        /// What the lines must contain; empty selects all.
        text: String,
        offset: u64,
    },
}

/// What the engine tells the view.
#[derive(Debug)]
pub(super) enum Update {
    /// Reading has failed. What was read before can still be queried.
    Failed(anyhow::Error),
    Figures {
        id: u64,
        summary: Box<Summary>,
    },
    Lines {
        id: u64,
        rows: Result<Rows, QueryError>,
    },
    Progress(Progress),
    /// A question for figures is refused.
    Refused {
        id: u64,
        error: QueryError,
    },
    /// A question takes longer: this share of the requests was examined, 0 to 1.
    Searching {
        id: u64,
        fraction: f64,
    },
}

/// How much of the log is read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Progress {
    /// Bytes of the files, which may be compressed.
    pub(super) bytes: u64,
    /// Their size, if it is known.
    pub(super) size: Option<u64>,
    /// Bytes per second since the beginning.
    pub(super) rate: f64,
    /// The number of requests so far.
    pub(super) requests: u64,
    pub(super) phase: Phase,
}

/// What the engine does with the files.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Phase {
    /// All files have been read to their end.
    Complete,
    /// All that was there has been read; the files may grow.
    Following,
    #[default]
    Reading,
}

/// What the drawing thread waits for.
#[derive(Debug)]
pub(super) enum Event {
    /// The engine's thread has ended, which it does only by a panic.
    EngineEnded,
    Terminal(TerminalEvent),
    /// The terminal cannot be read.
    TerminalFailed(io::Error),
    /// A signal asks the process to stop.
    Stop,
    Update(Update),
}

/// The view was closed, so that neither the log nor its figures are needed.
#[derive(Debug)]
pub(super) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the view is closed")
    }
}

impl Error for Closed {}
