//! A log that the server reads itself.

use super::{Limits, message::ServerMessage};
use crate::{
    aggregate::Aggregator,
    decode::DecodeError,
    input::{Input, LogEvent},
};

/// A growing log: the figures of its files, one after the other as they are rotated.
///
/// ```
/// use linerate_logview::session::{Followed, Limits};
///
/// let mut log = Followed::new(Limits::default());
/// log.handle_input(b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n")?;
/// assert!(log.snapshot().contains(r#""requests":1"#));
/// # Ok::<(), linerate_logview::decode::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Followed {
    limits: Limits,
    input: Input,
    log: Aggregator,
    bytes: u64,
    /// True while the remainder of the file is skipped because it cannot be decompressed.
    is_skipping: bool,
}

impl Followed {
    /// Creates a log of which nothing has been read.
    ///
    /// Because it never ends, the oldest requests make way for the newest when there is not enough
    /// space for all.
    pub fn new(mut limits: Limits) -> Self {
        limits.aggregate.columns_age = true;
        Self {
            input: Input::new(None, limits.decode.clone()),
            log: Aggregator::new(limits.aggregate.clone()),
            limits,
            bytes: 0,
            is_skipping: false,
        }
    }

    /// Parses the next bytes of the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be decompressed. The remainder of the file is then
    /// skipped.
    pub fn handle_input(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if self.is_skipping {
            return Ok(());
        }
        self.bytes += bytes.len() as u64;
        let log = &mut self.log;
        let decoded = self.input.handle_input(bytes, |event| count(log, event));
        self.is_skipping = decoded.is_err();
        decoded
    }

    /// Ends the current file. The next input begins a new one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be decompressed or was truncated.
    pub fn handle_eof(&mut self) -> Result<(), DecodeError> {
        let next = Input::new(None, self.limits.decode.clone());
        let mut input = std::mem::replace(&mut self.input, next);
        let log = &mut self.log;
        let was_skipping = std::mem::take(&mut self.is_skipping);
        let decoded = input.handle_eof(|event| count(log, event));
        self.log.handle_eof();
        if was_skipping { Ok(()) } else { decoded }
    }

    /// Returns how many bytes of the files were read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn log(&self) -> &Aggregator {
        &self.log
    }

    /// Returns how many bytes of heap the log holds, within a few KiB.
    pub fn memory_bytes(&self) -> usize {
        self.log.memory_bytes() + self.input.memory_bytes_max()
    }

    /// Returns the snapshot message of the current figures, which is the same for all viewers.
    pub fn snapshot(&self) -> String {
        let summary = Box::new(self.log.summary());
        let snapshot = ServerMessage::Snapshot {
            is_final: false,
            summary,
        };
        snapshot.to_json()
    }
}

pub(super) fn count(log: &mut Aggregator, event: LogEvent<'_>) {
    match event {
        LogEvent::Bytes(bytes) => log.handle_input(bytes),
        LogEvent::Fit(fit) => log.set_fit(fit.clone()),
        LogEvent::Format(format) => log.set_format(format.clone()),
    }
}
