//! Figures of a log in bounded memory: what [`Summary`] is made from.

mod counts;
mod excerpt;
mod keys;
mod samples;
mod timeline;

use crate::format::{Format, Parser, Reason, Record};
use crate::lines::{Line, LineSplitter};
use crate::summary::{Bots, ErrorPaths, Filterable, Firewall, Panels, RowsKept, Summary};
use counts::{Methods, Statuses};
use keys::KeyTable;
use samples::Samples;
use timeline::Timeline;

/// What an [`Aggregator`] may keep.
///
/// With all defaults reached it holds less than 40 MiB. What does not fit is counted, and the
/// summary says which of its figures are then lower bounds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The longest line that is parsed, 64 KiB: eight times what servers take as a request line.
    pub line_bytes_max: usize,
    /// How many distinct addresses are told apart, 262,144.
    pub addresses_max: usize,
    /// How many bytes their text may take up, 10 MiB: 40 for each, which IPv6 needs.
    pub address_bytes_max: usize,
    /// How many distinct paths are told apart, 131,072.
    pub paths_max: usize,
    /// How many bytes their text may take up, 16 MiB: 128 for each.
    pub path_bytes_max: usize,
    /// How many methods are told apart, 32: the nine of HTTP and those of WebDAV.
    pub methods_max: usize,
    /// How many buckets the timeline has at most, 2,880: two days of minutes.
    pub timeline_buckets_max: usize,
    /// How many of the first unparsed lines are kept, 5.
    pub samples_max: usize,
    /// How many characters of each are kept, 200.
    pub sample_chars_max: usize,
    /// How many of the most frequent paths a summary lists, 20.
    pub top_paths_max: usize,
    /// How many characters of each it lists, 1,000.
    pub top_path_chars_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes_max: 64 << 10,
            addresses_max: 262_144,
            address_bytes_max: 10 << 20,
            paths_max: 131_072,
            path_bytes_max: 16 << 20,
            methods_max: 32,
            timeline_buckets_max: 2_880,
            samples_max: 5,
            sample_chars_max: 200,
            top_paths_max: 20,
            top_path_chars_max: 1_000,
        }
    }
}

/// Parses a log that arrives in pieces and counts what is in it.
///
/// The figures do not depend on how the log was cut into pieces. No memory is allocated for a
/// line whose address and path are known. See the [crate] for an example.
#[derive(Debug)]
pub struct Aggregator {
    splitter: LineSplitter,
    parser: Parser,
    figures: Figures,
    bytes_read: u64,
    top_paths_max: usize,
    top_path_chars_max: usize,
}

impl Aggregator {
    /// Creates an aggregator that has seen nothing.
    pub fn new(limits: Limits) -> Self {
        Self {
            splitter: LineSplitter::new(limits.line_bytes_max),
            parser: Parser::new(Format::default()),
            bytes_read: 0,
            top_paths_max: limits.top_paths_max,
            top_path_chars_max: limits.top_path_chars_max,
            figures: Figures::new(limits),
        }
    }

    /// Takes the next bytes of the log, of any number, and counts each line that they end.
    pub fn handle_input(&mut self, input: &[u8]) {
        self.bytes_read += input.len() as u64;
        let Self {
            splitter,
            parser,
            figures,
            ..
        } = self;
        splitter.handle_input(input, |line| figures.count(parser, line));
    }

    /// Ends the log: counts a last line that has no line feed.
    pub fn handle_eof(&mut self) {
        let Self {
            splitter,
            parser,
            figures,
            ..
        } = self;
        splitter.handle_eof(|line| figures.count(parser, line));
    }

    /// Takes the lines to come as those of another format; call it between two files.
    pub fn set_format(&mut self, format: Format) {
        self.parser = Parser::new(format);
    }

    /// Returns how many lines were counted: requests, unparsed and blank ones.
    pub fn lines(&self) -> u64 {
        self.figures.lines()
    }

    /// Returns how many lines were requests.
    pub fn requests(&self) -> u64 {
        self.figures.requests
    }

    /// Returns how many bytes were taken, those of an unfinished line included.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns the figures so far. An unfinished last line is not among them.
    ///
    /// This looks at every distinct path once, so call it a few times a second and not for each
    /// piece.
    pub fn summary(&self) -> Summary {
        let figures = &self.figures;
        Summary {
            lines: figures.lines(),
            requests: figures.requests,
            unparsed: figures.samples.unparsed(),
            blank: figures.blank,
            unparsed_reasons: figures.samples.by_reason(),
            unparsed_samples: figures.samples.list().to_vec(),
            bytes_read: self.bytes_read,
            bytes_sent: figures.bytes_sent,
            unique_addresses: figures.addresses.len(),
            unique_addresses_exact: figures.addresses.not_counted() == 0,
            unique_paths: figures.paths.len(),
            paths_exact: figures.paths.not_counted() == 0,
            paths_not_counted: figures.paths.not_counted(),
            requests_without_path: figures.requests_without_path,
            statuses: figures.statuses.by_code(),
            status_classes: figures.statuses.by_class(),
            methods: figures.methods.by_name(),
            top_paths: figures
                .paths
                .top(self.top_paths_max, self.top_path_chars_max),
            first_time: figures.timeline.first_time(),
            last_time: figures.timeline.last_time(),
            timeline: figures.timeline.summary(),
            format: self.parser.format().name().to_string(),
            approximate: figures.addresses.not_counted() + figures.paths.not_counted() > 0,
            panels: Panels::default(),
            bots: Bots::default(),
            latency: None,
            error_paths: ErrorPaths::default(),
            firewall: Firewall::default(),
            filterable: Filterable::default(),
            rows_kept: RowsKept::default(),
        }
    }

    /// Returns how many bytes of heap the aggregator holds, within a few KiB.
    pub fn memory_bytes(&self) -> usize {
        let figures = &self.figures;
        self.splitter.memory_bytes()
            + figures.addresses.memory_bytes()
            + figures.paths.memory_bytes()
            + figures.timeline.memory_bytes()
    }
}

/// The counters, apart from the splitter that lends the lines.
#[derive(Debug)]
struct Figures {
    requests: u64,
    blank: u64,
    bytes_sent: u64,
    requests_without_path: u64,
    addresses: KeyTable,
    paths: KeyTable,
    statuses: Statuses,
    methods: Methods,
    timeline: Timeline,
    samples: Samples,
}

impl Figures {
    fn new(limits: Limits) -> Self {
        Self {
            requests: 0,
            blank: 0,
            bytes_sent: 0,
            requests_without_path: 0,
            addresses: KeyTable::new(limits.addresses_max, limits.address_bytes_max),
            paths: KeyTable::new(limits.paths_max, limits.path_bytes_max),
            statuses: Statuses::new(),
            methods: Methods::new(limits.methods_max),
            timeline: Timeline::new(limits.timeline_buckets_max),
            samples: Samples::new(limits.samples_max, limits.sample_chars_max),
        }
    }

    fn lines(&self) -> u64 {
        self.requests + self.samples.unparsed() + self.blank
    }

    #[inline]
    fn count(&mut self, parser: &mut Parser, line: Line<'_>) {
        let (text, reason) = match line {
            Line::Whole(text) => match parser.parse(text) {
                Ok(record) => return self.count_request(&record),
                Err(reason) => (text, reason),
            },
            Line::TooLong(text) => (text, Reason::TooLong),
        };
        self.count_other(text, reason);
    }

    #[inline]
    fn count_request(&mut self, record: &Record<'_>) {
        self.requests += 1;
        self.bytes_sent = self.bytes_sent.saturating_add(record.bytes_sent);
        self.statuses.count(record.status);
        self.timeline.count(record.time, record.status);
        self.addresses.count(record.address);
        if record.method.is_empty() {
            self.requests_without_path += 1;
        } else {
            self.methods.count(record.method);
            self.paths.count(record.path);
        }
    }

    #[cold]
    fn count_other(&mut self, text: &[u8], reason: Reason) {
        if text.is_empty() && reason != Reason::TooLong {
            self.blank += 1;
        } else {
            let line = self.lines() + 1;
            self.samples.count(line, text, reason);
        }
    }
}

#[cfg(test)]
mod tests {
    mod cuts;
    mod figures;
    mod limits;
}
