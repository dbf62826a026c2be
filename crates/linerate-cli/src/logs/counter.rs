//! Counting of a log with one thread per core.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use linerate_logview::{
    aggregate::{Aggregator, Limits},
    format::{Format, FormatFit},
    input::LogEvent,
    parallel::Pool,
    summary::Damage,
};

/// Counts a log. The result does not depend on the number of threads.
#[derive(Debug)]
pub(super) enum Counter {
    /// For a single core, where a second thread would only add the cost of passing data to it.
    Alone(Box<Aggregator>),
    Many(Box<Pool>),
}

impl Counter {
    /// Starts a thread for each core that this process may use.
    pub(super) fn new(limits: Limits) -> Self {
        match available_parallelism() {
            Ok(cores) if cores.get() > 1 => Self::with_threads(limits, cores),
            _ => Self::Alone(Box::new(Aggregator::new(limits))),
        }
    }

    pub(super) fn with_threads(limits: Limits, threads: NonZeroUsize) -> Self {
        Self::Many(Box::new(Pool::new(limits, threads)))
    }

    /// Processes the next piece of a file.
    pub(super) fn count(&mut self, event: LogEvent<'_>) {
        match event {
            LogEvent::Bytes(bytes) => self.handle_input(bytes),
            LogEvent::Fit(fit) => self.set_fit(fit),
            LogEvent::Format(format) => self.set_format(format),
            _ => {}
        }
    }

    pub(super) fn handle_input(&mut self, bytes: &[u8]) {
        match self {
            Self::Alone(log) => log.handle_input(bytes),
            Self::Many(pool) => pool.handle_input(bytes),
        }
    }

    /// Ends a file.
    pub(super) fn handle_eof(&mut self) {
        match self {
            Self::Alone(log) => log.handle_eof(),
            Self::Many(pool) => pool.handle_eof(),
        }
    }

    /// Ends a damaged file.
    pub(super) fn handle_damage(&mut self, damage: Damage) {
        match self {
            Self::Alone(log) => log.handle_damage(damage),
            Self::Many(pool) => pool.handle_damage(damage),
        }
    }

    /// Sets the format of the lines that follow. Must be called at the start of a line.
    pub(super) fn set_format(&mut self, format: &Format) {
        match self {
            Self::Alone(log) => log.set_format(format.clone()),
            Self::Many(pool) => {
                pool.settle();
                pool.set_format(format.clone());
            }
        }
    }

    fn set_fit(&mut self, fit: &FormatFit) {
        match self {
            Self::Alone(log) => log.set_fit(fit.clone()),
            Self::Many(pool) => pool.set_fit(fit.clone()),
        }
    }

    /// Returns the log as far as it is counted: all but the last few chunks.
    pub(super) fn log(&self) -> &Aggregator {
        match self {
            Self::Alone(log) => log,
            Self::Many(pool) => pool.log(),
        }
    }

    /// Returns the log after all complete lines so far have been counted.
    pub(super) fn settled(&mut self) -> &Aggregator {
        match self {
            Self::Alone(log) => log,
            Self::Many(pool) => {
                pool.settle();
                pool.log()
            }
        }
    }
}
