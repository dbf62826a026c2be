//! Parses pieces, on any thread.

use super::Piece;
use crate::aggregate::{Batch, Limits};
use crate::format::{Format, Parser};
use crate::lines::LineSplitter;

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
