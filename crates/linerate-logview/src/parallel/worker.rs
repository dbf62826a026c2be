//! Parses chunks, on any thread.

use super::Chunk;
use crate::aggregate::{Batch, Limits};
use crate::format::{Format, Parser};
use crate::lines::LineSplitter;

/// Parses chunks into batches.
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

    /// Parses a chunk whose lines are in `format`. Reuses the memory of `spare` if given.
    pub fn parse(&mut self, chunk: Chunk, format: &Format, spare: Option<Batch>) -> Batch {
        if self.parser.format() != format {
            self.parser = Parser::new(format.clone());
        }
        let mut batch = spare.unwrap_or_else(|| Batch::new(&self.limits));
        batch.clear();
        let Self {
            parser, splitter, ..
        } = self;
        let first_byte = chunk.text.as_ptr().addr();
        // Pieces end with a line feed, so every line is borrowed from the chunk.
        if parser.wants_marks() {
            splitter.handle_marked_input(&chunk.text, |line, marks| {
                batch.add(parser, line, marks, first_byte);
            });
        } else {
            splitter.handle_input(&chunk.text, |line| {
                batch.add(parser, line, None, first_byte);
            });
        }
        batch.text = chunk.text;
        batch.bytes_read = chunk.bytes_read;
        batch
    }
}
