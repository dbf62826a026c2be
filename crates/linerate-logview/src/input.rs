//! One file on its way to the figures: decompression, and detection of the format.

use linerate_simd::newline;

use crate::decode::{self, DecodeError, Decoder, Progress};
use crate::format::{Format, FormatFit};

/// The most bytes that are held back until the format is known, and by which it is judged.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The most bytes that judging a format takes: the first bytes, the places of their lines, and the
/// formats.
pub(crate) const JUDGING_BYTES_MAX: usize = HEAD_BYTES_MAX + (32 << 10);
/// The most lines that are examined to detect the format.
const HEAD_LINES_MAX: usize = 256;

/// The output of [`Input`].
#[derive(Debug)]
#[non_exhaustive]
pub enum LogEvent<'a> {
    /// The next bytes of the log.
    Bytes(&'a [u8]),
    /// How well the detected format fits the first 64 KiB of the log, or all of a shorter one.
    /// Passed once, after these bytes; not for a format that was given.
    Fit(&'a FormatFit),
    /// The format of all following bytes. Passed once, before the first of them.
    Format(&'a Format),
}

/// Accepts the bytes of a file and passes on those of its log.
///
/// The first line that fits a named format determines the format. A log whose first 64 KiB or 256
/// lines fit no named format is treated as `combined`, so that its lines are counted with a reason.
///
/// ```
/// use linerate_logview::aggregate::{Aggregator, Limits};
/// use linerate_logview::decode;
/// use linerate_logview::input::{Input, LogEvent};
///
/// let mut log = Aggregator::new(Limits::default());
/// let mut input = Input::new(None, decode::Limits::default());
/// let line = br#"{"ts":1611280025,"status":200,"request":{"method":"GET","uri":"/a"}}"#;
/// let mut take = |event: LogEvent<'_>| match event {
///     LogEvent::Format(format) => log.set_format(format.clone()),
///     LogEvent::Bytes(bytes) => log.handle_input(bytes),
///     _ => {}
/// };
/// input.handle_input(line, &mut take)?;
/// input.handle_eof(&mut take)?;
/// log.handle_eof();
///
/// let name = input.format().map(|format| format.name());
/// assert_eq!((name, log.requests()), (Some("json"), 1));
/// # Ok::<(), decode::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Input {
    decoder: Decoder,
    detection: Detection,
}

#[derive(Debug)]
struct Detection {
    format: Option<Format>,
    /// True once the format was passed on.
    is_reported: bool,
    /// True once it is known how well the format fits, or if it was given.
    is_judged: bool,
    /// The first bytes: they are held back until the format is known, and kept until it is judged.
    head: Vec<u8>,
    /// The number of bytes in `head` that were examined and fit no format, and the number of those
    /// lines.
    examined: usize,
    lines: usize,
}

impl Input {
    /// Creates an input for a new file. Without a `format`, the format is detected.
    pub fn new(format: Option<Format>, limits: decode::Limits) -> Self {
        Self {
            decoder: Decoder::new(limits),
            detection: Detection {
                is_judged: format.is_some(),
                format,
                is_reported: false,
                head: Vec::new(),
                examined: 0,
                lines: 0,
            },
        }
    }

    /// Decodes the next bytes of the file and passes its log to `each`, in order.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be decompressed.
    pub fn handle_input(
        &mut self,
        input: &[u8],
        each: impl FnMut(LogEvent<'_>),
    ) -> Result<(), DecodeError> {
        self.handle_some(input, usize::MAX, each)?;
        Ok(())
    }

    /// Like [`handle_input`](Self::handle_input), but stops after about `work_max` bytes of work,
    /// possibly in the middle of the input: see [`Decoder::handle_some`].
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be decompressed.
    pub fn handle_some(
        &mut self,
        input: &[u8],
        work_max: usize,
        mut each: impl FnMut(LogEvent<'_>),
    ) -> Result<Progress, DecodeError> {
        let Self { decoder, detection } = self;
        decoder.handle_some(input, work_max, |bytes| detection.take(bytes, &mut each))
    }

    /// Ends the file and passes on the bytes that were held back.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be decompressed or was truncated.
    pub fn handle_eof(&mut self, mut each: impl FnMut(LogEvent<'_>)) -> Result<(), DecodeError> {
        let Self { decoder, detection } = self;
        let result = decoder.handle_eof(|bytes| detection.take(bytes, &mut each));
        detection.decide(&mut each);
        detection.judge(&mut each);
        result
    }

    /// Returns the format of the log, or `None` while it is unknown.
    pub fn format(&self) -> Option<&Format> {
        self.detection.format.as_ref()
    }

    /// Returns the decoder, which knows how the file is compressed and how much was decoded.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Returns the most bytes of heap that the input may use.
    pub fn memory_bytes_max(&self) -> usize {
        let sample = match self.detection.is_judged {
            true => 0,
            false => HEAD_BYTES_MAX,
        };
        self.decoder.memory_bytes_max() + HEAD_BYTES_MAX + sample
    }

    /// Returns by how many bytes [`memory_bytes_max`](Self::memory_bytes_max) may grow once the
    /// first bytes show how the file is compressed.
    pub(crate) fn growth_bytes_max(&self) -> usize {
        self.decoder.growth_bytes_max() + JUDGING_BYTES_MAX
    }
}

impl Detection {
    #[inline]
    fn take(&mut self, bytes: &[u8], each: &mut impl FnMut(LogEvent<'_>)) {
        if self.is_reported {
            each(LogEvent::Bytes(bytes));
            if !self.is_judged {
                self.sample(bytes, each);
            }
            return;
        }
        let room = self.room();
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        if newline::find(head).is_some() {
            self.examine();
        }
        let is_full = self.head.len() == HEAD_BYTES_MAX || self.lines == HEAD_LINES_MAX;
        if self.format.is_some() || is_full {
            self.decide(each);
            each(LogEvent::Bytes(rest));
            self.sample(rest, each);
        }
    }

    /// Returns how many bytes may be added to the head. All of its memory is allocated at once, so
    /// that it never exceeds the limit.
    fn room(&mut self) -> usize {
        if self.head.capacity() == 0 {
            self.head.reserve_exact(HEAD_BYTES_MAX);
        }
        HEAD_BYTES_MAX - self.head.len()
    }

    /// Adds bytes to those by which the format is judged, and judges it when there are enough.
    #[cold]
    fn sample(&mut self, bytes: &[u8], each: &mut impl FnMut(LogEvent<'_>)) {
        let room = self.room();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.head.len() == HEAD_BYTES_MAX {
            self.judge(each);
        }
    }

    /// Passes on how well the format fits, unless that was done or the format was given.
    fn judge(&mut self, each: &mut impl FnMut(LogEvent<'_>)) {
        let head = std::mem::take(&mut self.head);
        if let Some(format) = self.format.as_ref().filter(|_| !self.is_judged) {
            each(LogEvent::Fit(&FormatFit::of(format, &head)));
        }
        self.is_judged = true;
    }

    /// Examines complete lines until one fits a format. They are examined one by one, so that the
    /// result does not depend on how many arrive at once.
    fn examine(&mut self) {
        while self.format.is_none()
            && self.lines < HEAD_LINES_MAX
            && let Some(end) = newline::find(&self.head[self.examined..])
        {
            let line = self.examined..=self.examined + end;
            self.examined = line.end() + 1;
            self.lines += 1;
            self.format = Format::detect(&self.head[line]);
        }
    }

    /// Passes on the format, which defaults to `combined`, and the bytes that were held back.
    fn decide(&mut self, each: &mut impl FnMut(LogEvent<'_>)) {
        if self.is_reported {
            return;
        }
        self.is_reported = true;
        let head = &self.head;
        let format = self
            .format
            .get_or_insert_with(|| Format::detect(head).unwrap_or_default());
        each(LogEvent::Format(format));
        each(LogEvent::Bytes(head));
    }
}

#[cfg(test)]
mod tests {
    use super::{HEAD_BYTES_MAX, Input, LogEvent};
    use crate::decode;
    use crate::format::Format;

    const NOISE: &str = "logfile turned over\n";
    const COMMON: &str = "192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";

    /// Feeds pieces. Returns the format, how many bytes were fed before it was known, and the log.
    fn feed<'a>(
        format: Option<Format>,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (String, usize, Vec<u8>) {
        let mut input = Input::new(format, decode::Limits::default());
        let (mut name, mut fed, mut fed_before, mut log) = (None, 0, 0, Vec::new());
        let mut take = |event: LogEvent<'_>, fed: usize| match event {
            LogEvent::Format(format) => {
                assert!(log.is_empty() && name.is_none());
                name = Some(format.name().to_owned());
                fed_before = fed;
            }
            LogEvent::Bytes(bytes) => log.extend_from_slice(bytes),
            LogEvent::Fit(_) => {}
        };
        for piece in pieces {
            fed += piece.len();
            input.handle_input(piece, |piece| take(piece, fed)).unwrap();
        }
        input.handle_eof(|piece| take(piece, fed)).unwrap();
        (name.unwrap(), fed_before, log)
    }

    #[test]
    fn first_matching_line_decides() {
        let log = format!("{NOISE}{COMMON}{COMMON}");
        let (name, fed, seen) = feed(None, log.as_bytes().chunks(1));
        assert_eq!(name, "common");
        assert_eq!(fed, NOISE.len() + COMMON.len());
        assert_eq!(seen, log.as_bytes());
        let (_, fed, seen) = feed(None, [log.as_bytes()]);
        assert_eq!((fed, seen.len()), (log.len(), log.len()));
    }

    #[test]
    fn how_many_lines_come_at_once_does_not_matter() {
        let combined = COMMON.replace('\n', " \"-\" \"curl\"\n");
        let logs = [
            [COMMON, &combined, &combined].concat(),
            [NOISE, &combined, COMMON, COMMON].concat(),
        ];
        for (log, expected) in logs.iter().zip(["common", "combined"]) {
            for bytes in [1, 7, 100, log.len()] {
                let (name, _, seen) = feed(None, log.as_bytes().chunks(bytes));
                assert_eq!(name, expected, "in pieces of {bytes}");
                assert_eq!(seen, log.as_bytes());
            }
        }
    }

    #[test]
    fn unknown_logs_are_refused_after_64_kib_or_256_lines() {
        let log = NOISE.repeat(300);
        let (name, fed, seen) = feed(None, log.as_bytes().chunks(1));
        assert_eq!((name.as_str(), fed), ("combined", 256 * NOISE.len()));
        assert_eq!(seen, log.as_bytes());
        let log = vec![b'x'; HEAD_BYTES_MAX * 3];
        let (_, fed, seen) = feed(None, log.chunks(1_000));
        assert_eq!(fed, HEAD_BYTES_MAX.next_multiple_of(1_000));
        assert!(seen == log);
    }

    #[test]
    fn last_line_without_a_line_feed_is_parsed() {
        let (name, _, seen) = feed(None, [COMMON.trim_end().as_bytes()]);
        assert_eq!((name.as_str(), seen.len()), ("common", COMMON.len() - 1));
        assert_eq!(feed(None, [&b""[..]]).0, "combined");
    }

    #[test]
    fn fit_is_that_of_the_first_64_kib_however_they_arrive() {
        let json = "{\"ts\":1611280025,\"status\":200}\n";
        let long = [COMMON, NOISE, json].concat().repeat(1_000);
        for (log, expected) in [
            (COMMON.to_owned(), (1, 1, None)),
            (
                format!("{COMMON}{NOISE}\n#x\n{json}{json}"),
                (4, 1, Some(2)),
            ),
            (long, (256, 86, Some(85))),
        ] {
            for bytes in [1, 1_000, HEAD_BYTES_MAX, log.len()] {
                let mut input = Input::new(None, decode::Limits::default());
                let mut fits = Vec::new();
                let mut take = |event: LogEvent<'_>| {
                    if let LogEvent::Fit(fit) = event {
                        fits.push(fit.clone());
                    }
                };
                for piece in log.as_bytes().chunks(bytes) {
                    input.handle_input(piece, &mut take).unwrap();
                }
                input.handle_eof(&mut take).unwrap();
                let [fit] = &fits[..] else {
                    panic!("{fits:?}");
                };
                let other = fit.runner_up.as_ref().map(|other| other.requests);
                assert_eq!((fit.lines, fit.requests, other), expected);
                assert_eq!(fit.format, "common");
            }
        }
    }

    #[test]
    fn given_format_is_not_detected_again() {
        let format = Format::parse("json").unwrap();
        let (name, fed, seen) = feed(Some(format), [&b"a"[..], b"b\n"]);
        assert_eq!((name.as_str(), fed, &seen[..]), ("json", 1, &b"ab\n"[..]));
    }
}
