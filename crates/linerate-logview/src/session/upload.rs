//! The files of a session: which file a byte belongs to, and the figures of all of them.

use std::time::Duration;

use super::{Limits, SessionError, VERDICT_BYTES, followed::count, message};
use crate::{
    aggregate::Aggregator,
    decode::{DecodeError, Progress},
    format::Format,
    input::{Input, JUDGING_BYTES_MAX},
    summary::{Damage, Summary},
};

/// The number of lines from which on the share of requests is meaningful.
const LINES_MIN: u64 = 1_000;

/// The uploaded files, one after the other, and their figures.
#[derive(Debug)]
pub(super) struct Upload {
    files: Vec<message::File>,
    /// The index of the file that is being received, or the number of files once all are complete.
    current: usize,
    /// How many bytes of the current file were received.
    current_bytes: u64,
    /// How many bytes were received in total.
    received: u64,
    /// The byte count of the last acknowledgement that was polled.
    pub(super) acked: u64,
    /// When the first and the last snapshot were polled.
    pub(super) snapshots: Option<(Duration, Duration)>,
    /// True once the client has sent `finish` and all bytes have arrived, or has sent `stop`.
    is_complete: bool,
    /// The format that the client named.
    format: Option<Format>,
    input: Input,
    /// True while the remainder of a damaged file is skipped.
    is_skipping: bool,
    /// True while the decoder holds back decoded bytes because the work limit was reached.
    is_draining: bool,
    log: Aggregator,
    verdict: Verdict,
}

impl Upload {
    /// Creates an upload of the announced files if their number, names and sizes are within the
    /// limits.
    pub(super) fn new(start: message::StartRequest, limits: &Limits) -> Result<Self, SessionError> {
        check(&start, limits)?;
        let format = match start.format.as_str() {
            "auto" => None,
            text => Some(Format::parse(text).map_err(SessionError::Format)?),
        };
        let mut aggregate = limits.aggregate.clone();
        if !start.rows {
            aggregate.line_bytes_sum_max = 0;
        }
        let mut upload = Self {
            files: start.files,
            current: 0,
            current_bytes: 0,
            received: 0,
            acked: 0,
            snapshots: None,
            is_complete: false,
            input: Input::new(format.clone(), limits.decode.clone()),
            format,
            is_skipping: false,
            is_draining: false,
            log: Aggregator::new(aggregate),
            verdict: Verdict::default(),
        };
        upload.end_complete_files(limits)?;
        Ok(upload)
    }

    /// Counts and parses bytes, stopping after about `work_max` bytes of work.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        work_max: usize,
        limits: &Limits,
    ) -> Result<Progress, SessionError> {
        if self.is_complete {
            return Err(SessionError::AfterFinish);
        }
        let beyond = self.received + bytes.len() as u64 - self.acked;
        if beyond > limits.window_bytes {
            return Err(SessionError::WindowExceeded {
                bytes: beyond,
                window_bytes: limits.window_bytes,
            });
        }
        let mut progress = Progress::default();
        while (progress.read < bytes.len() || self.is_draining) && progress.work < work_max {
            let rest = &bytes[progress.read..];
            let room = self.room().ok_or_else(|| self.mismatch(rest.len()))?;
            let len = usize::try_from(room).unwrap_or(usize::MAX).min(rest.len());
            let part = self.take_of_file(&rest[..len], work_max - progress.work)?;
            self.is_draining = !part.is_done;
            self.end_complete_files(limits)?;
            progress.read += part.read;
            progress.work += part.work;
        }
        progress.is_done = progress.read == bytes.len() && !self.is_draining;
        if self.received > limits.upload_bytes_max {
            return Err(SessionError::TooLarge {
                bytes: self.received,
                bytes_max: limits.upload_bytes_max,
            });
        }
        Ok(progress)
    }

    /// Ends the upload. Fails if it is incomplete.
    pub(super) fn finish(&mut self, limits: &Limits) -> Result<(), SessionError> {
        if self.is_complete {
            return Ok(());
        }
        self.take(b"", usize::MAX, limits)?;
        let is_open_ended = |file: &message::File| file.size.is_none();
        if self.files.get(self.current).is_some_and(is_open_ended) {
            self.end_file(limits)?;
            self.end_complete_files(limits)?;
        }
        if self.current < self.files.len() {
            return Err(self.mismatch(0));
        }
        self.is_complete = true;
        Ok(())
    }

    /// Ends the upload early: counts what has arrived, up to the last whole line.
    pub(super) fn stop(&mut self) {
        let log = &mut self.log;
        if !self.is_complete && self.current < self.files.len() {
            // Passes on what was held back to detect the format. A compressed file is always cut
            // short, which is what the client wanted.
            _ = self.input.handle_eof(|event| count(log, event));
        }
        self.is_complete = true;
    }

    /// Returns whether the upload has ended: it was finished and is complete, or it was stopped.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns how many bytes were parsed.
    pub(super) fn bytes(&self) -> u64 {
        self.received
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let names: usize = self.files.iter().map(|file| file.name.capacity()).sum();
        let format = self.format.as_ref().map_or(0, Format::memory_bytes);
        size_of::<Self>()
            + names
            + self.files.capacity() * size_of::<message::File>()
            + format
            + self.log.memory_bytes()
            + self.input.memory_bytes_max()
    }

    /// Returns by how many bytes `memory_bytes` may grow while `work` bytes are parsed, including
    /// memory held only temporarily while lists grow.
    pub(super) fn growth_bytes_max(&self, work: usize, limits: &Limits) -> usize {
        let input = match self.current + 1 < self.files.len() {
            true => limits.decode.zstd_bytes() + JUDGING_BYTES_MAX,
            false => self.input.growth_bytes_max(),
        };
        input + self.log.growth_bytes_max(work)
    }

    /// Returns the files as the client announced them.
    pub(super) fn files(&self) -> &[message::File] {
        &self.files
    }

    pub(super) fn log(&self) -> &Aggregator {
        &self.log
    }

    pub(super) fn summary(&self) -> Summary {
        self.log.summary()
    }

    /// Returns how many bytes the current file can still accept, or `None` if all files are
    /// complete.
    fn room(&self) -> Option<u64> {
        let size = self.files.get(self.current)?.size;
        Some(size.map_or(u64::MAX, |size| size - self.current_bytes))
    }

    fn take_of_file(&mut self, bytes: &[u8], work_max: usize) -> Result<Progress, SessionError> {
        let log = &mut self.log;
        let skipped = Progress {
            read: bytes.len(),
            work: bytes.len(),
            is_done: true,
        };
        let decoded = match self.is_skipping {
            true => Ok(skipped),
            false => self
                .input
                .handle_some(bytes, work_max, |event| count(log, event)),
        };
        let progress = match decoded {
            Ok(progress) => progress,
            Err(error) => {
                self.handle_damage(error)?;
                skipped
            }
        };
        self.received += progress.read as u64;
        self.current_bytes += progress.read as u64;
        let judged = self.verdict.after_input(&self.log);
        judged.map_err(|reason| self.in_file(reason))?;
        Ok(progress)
    }

    /// Ends the current file if it is complete, and all empty files that follow.
    fn end_complete_files(&mut self, limits: &Limits) -> Result<(), SessionError> {
        while !self.is_draining && self.room() == Some(0) {
            self.end_file(limits)?;
        }
        Ok(())
    }

    fn end_file(&mut self, limits: &Limits) -> Result<(), SessionError> {
        if !std::mem::take(&mut self.is_skipping) {
            let log = &mut self.log;
            match self.input.handle_eof(|event| count(log, event)) {
                Ok(()) => self.log.handle_eof(),
                Err(error) => self.handle_damage(error)?,
            }
            self.is_skipping = false;
        }
        let judged = self.verdict.at_eof(&self.log);
        judged.map_err(|reason| self.in_file(reason))?;
        self.verdict = Verdict::of_next_file(&self.log);
        self.input = Input::new(self.format.clone(), limits.decode.clone());
        self.current += 1;
        self.current_bytes = 0;
        Ok(())
    }

    /// Counts what was read of a damaged file, and skips the remainder. Fails if no request was
    /// read, or if the file was refused for another reason.
    fn handle_damage(&mut self, error: DecodeError) -> Result<(), SessionError> {
        let log = &mut self.log;
        // Passes on what was held back until the format is known, and returns the same error.
        let _ = self.input.handle_eof(|event| count(log, event));
        let name = self.files[self.current].name.clone();
        let lines = self.log.lines() - self.verdict.lines_before;
        let damage = Damage::new(name, &error, self.current_bytes, lines);
        match damage.filter(|_| self.log.requests() > self.verdict.requests_before) {
            Some(damage) => self.log.handle_damage(damage),
            None => return Err(self.in_file(SessionError::Decode(error))),
        }
        self.is_skipping = true;
        Ok(())
    }

    fn in_file(&self, reason: SessionError) -> SessionError {
        if self.files.len() == 1 {
            return reason;
        }
        SessionError::InFile {
            file: self.current + 1,
            reason: Box::new(reason),
        }
    }

    /// Returns the error for a byte count, with `more` bytes added, that differs from the announced
    /// one.
    fn mismatch(&self, more: usize) -> SessionError {
        let sizes = self.files.iter().filter_map(|file| file.size);
        SessionError::SizeMismatch {
            announced: sizes.sum(),
            received: self.received + more as u64,
        }
    }
}

fn check(start: &message::StartRequest, limits: &Limits) -> Result<(), SessionError> {
    if start.files.is_empty() || start.files.len() > limits.files_max {
        return Err(SessionError::FileCount {
            files: start.files.len(),
            files_max: limits.files_max,
        });
    }
    let mut announced = 0u64;
    for (index, file) in start.files.iter().enumerate() {
        if file.name.len() > limits.name_bytes_max {
            return Err(SessionError::NameTooLong {
                bytes: file.name.len(),
                bytes_max: limits.name_bytes_max,
            });
        }
        if file.size.is_none() && index + 1 < start.files.len() {
            return Err(SessionError::OpenEndedFile { file: index + 1 });
        }
        announced = announced.saturating_add(file.size.unwrap_or(0));
    }
    if announced > limits.upload_bytes_max {
        return Err(SessionError::TooLarge {
            bytes: announced,
            bytes_max: limits.upload_bytes_max,
        });
    }
    Ok(())
}

/// Judges each file once: after its first MiB, or at its end if that comes sooner.
///
/// A file is rejected if it has bytes but no request at all, or if fewer than 1 % of 1,000 or more
/// lines are requests. It is never rejected later: figures with many unparsed lines are worth more
/// than an error.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    passed: bool,
    /// The decompressed bytes of the files before this one.
    bytes_before: u64,
    /// The requests of the files before this one.
    requests_before: u64,
    /// The lines of the files before this one.
    lines_before: u64,
}

impl Verdict {
    /// Creates the verdict on the file that follows what `log` has counted so far.
    pub(super) fn of_next_file(log: &Aggregator) -> Self {
        Self {
            bytes_before: log.bytes_read(),
            requests_before: log.requests(),
            lines_before: log.lines(),
            ..Self::default()
        }
    }

    /// Judges the file once enough bytes were parsed.
    pub(super) fn after_input(&mut self, log: &Aggregator) -> Result<(), SessionError> {
        if self.passed || self.bytes(log) < VERDICT_BYTES {
            return Ok(());
        }
        self.judge(log)
    }

    /// Judges the file at its end, unless it already passed.
    pub(super) fn at_eof(&mut self, log: &Aggregator) -> Result<(), SessionError> {
        if self.passed || self.bytes(log) == 0 {
            return Ok(());
        }
        self.judge(log)
    }

    fn judge(&mut self, log: &Aggregator) -> Result<(), SessionError> {
        let requests = log.requests() - self.requests_before;
        let lines = log.lines() - self.lines_before;
        if requests > 0 && (lines < LINES_MIN || requests >= lines.div_ceil(100)) {
            self.passed = true;
            return Ok(());
        }
        Err(SessionError::NotALog { requests, lines })
    }

    /// Returns how many decompressed bytes of this file were parsed.
    fn bytes(&self, log: &Aggregator) -> u64 {
        log.bytes_read() - self.bytes_before
    }
}
