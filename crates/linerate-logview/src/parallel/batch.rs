//! The requests of a piece, parsed but not counted yet.

use super::Piece;
use crate::aggregate::Limits;
use crate::aggregate::row::{Dictionaries, Row};
use crate::aggregate::samples::Samples;
use crate::format::{Format, Parser, Reason, Record};
use crate::lines::{Line, LineSplitter, Marks};

/// The parsed lines of a piece, to be passed to
/// [`Aggregator::merge`](crate::aggregate::Aggregator::merge).
#[derive(Debug)]
pub struct Batch {
    /// The dictionaries of all values of this batch.
    pub(crate) dictionaries: Dictionaries,
    pub(crate) requests: Vec<Request>,
    /// The unparsed lines by their numbers in the batch.
    pub(crate) samples: Samples,
    pub(crate) blank: u64,
    pub(crate) bytes_read: u64,
    /// The lines themselves.
    pub(super) text: Vec<u8>,
}

/// A request, with the batch's codes for its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) row: Row,
    /// The number of its line in the batch, from 1.
    pub(crate) line: u64,
    start: u32,
    len: u32,
}

impl Batch {
    fn new(limits: &Limits) -> Self {
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
    pub(crate) fn line(&self, request: &Request) -> &[u8] {
        &self.text[request.start as usize..][..request.len as usize]
    }

    fn lines(&self) -> u64 {
        self.requests.len() as u64 + self.samples.unparsed() + self.blank
    }

    fn clear(&mut self) {
        self.dictionaries.clear();
        self.requests.clear();
        self.samples.clear();
        self.blank = 0;
    }

    /// Adds a line, using its marks if they are known.
    #[inline(always)]
    fn note(
        &mut self,
        parser: &mut Parser,
        line: Line<'_>,
        marks: Option<Marks<'_>>,
        first_byte: usize,
    ) {
        if let (Line::Whole(text), Some(marks)) = (line, marks)
            && let Some(record) = parser.parse_usual(text, marks)
        {
            self.note_request(&record, text, first_byte);
        } else {
            self.note_unusual(parser, line, first_byte);
        }
    }

    #[inline(never)]
    fn note_unusual(&mut self, parser: &mut Parser, line: Line<'_>, first_byte: usize) {
        let (text, reason) = match line {
            Line::Whole(text) => match parser.parse(text) {
                Ok(record) => return self.note_request(&record, text, first_byte),
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
    fn note_request(&mut self, record: &Record<'_>, text: &[u8], first_byte: usize) {
        self.requests.push(Request {
            row: self.dictionaries.row(record),
            line: self.lines() + 1,
            start: (text.as_ptr().addr() - first_byte) as u32,
            len: text.len() as u32,
        });
    }
}

/// Parses pieces into batches.
#[derive(Debug)]
pub struct Worker {
    parser: Parser,
    splitter: LineSplitter,
    limits: Limits,
}

impl Worker {
    /// Creates a worker for a log with these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            parser: Parser::new(Format::default()),
            splitter: LineSplitter::new(limits.line_bytes_max),
            limits,
        }
    }

    /// Parses a piece whose lines are in `format`. Reuses the memory of `spare` if given.
    pub fn parse(&mut self, piece: Piece, format: &Format, spare: Option<Batch>) -> Batch {
        if self.parser.format() != format {
            self.parser = Parser::new(format.clone());
        }
        let mut batch = spare.unwrap_or_else(|| Batch::new(&self.limits));
        batch.clear();
        let Self {
            parser, splitter, ..
        } = self;
        let first_byte = piece.text.as_ptr().addr();
        // Pieces end with a line feed, so every line is borrowed from the piece.
        if parser.wants_marks() {
            splitter.handle_marked_input(&piece.text, |line, marks| {
                batch.note(parser, line, marks, first_byte);
            });
        } else {
            splitter.handle_input(&piece.text, |line| {
                batch.note(parser, line, None, first_byte);
            });
        }
        batch.text = piece.text;
        batch.bytes_read = piece.bytes_read;
        batch
    }
}
