//! The lines of a piece of a log, parsed but not counted yet.

use super::Limits;
use super::dictionaries::Dictionaries;
use super::samples::Samples;
use crate::format::{Parser, Reason, Record};
use crate::lines::{Line, Marks};
use crate::store::Row;

/// The parsed lines of a piece, to be passed to
/// [`Aggregator::merge`](super::Aggregator::merge).
#[derive(Debug)]
pub struct Batch {
    /// The dictionaries of all values of this batch.
    pub(crate) dictionaries: Dictionaries,
    pub(crate) requests: Vec<BatchRequest>,
    /// The unparsed lines by their numbers in the batch.
    pub(crate) samples: Samples,
    pub(crate) blank: u64,
    pub(crate) bytes_read: u64,
    /// The lines themselves.
    pub(crate) text: Vec<u8>,
}

/// A request, with the batch's codes for its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchRequest {
    pub(crate) row: Row,
    /// The number of its line in the batch, from 1.
    pub(crate) line: u64,
    start: u32,
    len: u32,
}

impl Batch {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            dictionaries: Dictionaries::unlimited(),
            requests: Vec::new(),
            samples: Samples::new(limits.samples_max, limits.sample_chars_max),
            blank: 0,
            bytes_read: 0,
            text: Vec::new(),
        }
    }

    /// Returns the line of a request without its line ending.
    pub(crate) fn line(&self, request: &BatchRequest) -> &[u8] {
        &self.text[request.start as usize..][..request.len as usize]
    }

    fn lines(&self) -> u64 {
        self.requests.len() as u64 + self.samples.unparsed() + self.blank
    }

    pub(crate) fn clear(&mut self) {
        self.dictionaries.clear();
        self.requests.clear();
        self.samples.clear();
        self.blank = 0;
    }

    /// Adds a line, using its marks if they are known.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        parser: &mut Parser,
        line: Line<'_>,
        marks: Option<Marks<'_>>,
        first_byte: usize,
    ) {
        if let (Line::Whole(text), Some(marks)) = (line, marks)
            && let Some(record) = parser.parse_usual(text, marks)
        {
            self.add_request(&record, text, first_byte);
        } else {
            self.add_unusual(parser, line, first_byte);
        }
    }

    #[inline(never)]
    fn add_unusual(&mut self, parser: &mut Parser, line: Line<'_>, first_byte: usize) {
        let (text, reason) = match line {
            Line::Whole(text) => match parser.parse(text) {
                Ok(record) => return self.add_request(&record, text, first_byte),
                Err(reason) => (text, reason),
            },
            Line::TooLong(text) => (text, Reason::TooLong),
        };
        if text.is_empty() && reason != Reason::TooLong {
            self.blank += 1;
        } else {
            self.samples.count(self.lines() + 1, text, reason);
        }
    }

    #[inline(always)]
    fn add_request(&mut self, record: &Record<'_>, text: &[u8], first_byte: usize) {
        self.requests.push(BatchRequest {
            row: self.dictionaries.row(record),
            line: self.lines() + 1,
            start: (text.as_ptr().addr() - first_byte) as u32,
            len: text.len() as u32,
        });
    }
}
