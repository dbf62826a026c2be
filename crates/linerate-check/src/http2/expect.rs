//! The expected fate of the streams of a connection, and what was seen on them.

use std::collections::BTreeMap;

use super::frame::error_name;
use crate::{answers::Answer, connection::End, http::Head};

/// The expected fate of a stream.
#[derive(Clone, Debug)]
pub enum Fate {
    /// The stream gets a response with any status, or is reset.
    Answered,
    /// The stream opens a WebSocket that gives these answers and stays open.
    Answers(Vec<Answer>),
    /// The WebSocket sends a Close frame with one of these codes, and then the stream ends.
    Closes {
        /// The codes that fit.
        codes: &'static [u16],
        /// The answers that have to come before it.
        before: Vec<Answer>,
    },
    /// The stream ends, with or without a reset, and gives no answer.
    Ends,
    /// The stream is reset with `PROTOCOL_ERROR`, possibly after an error response (RFC 9113
    /// §8.1.1).
    Malformed,
    /// The same, or a WebSocket is opened.
    MalformedOrOpened,
    /// The response has one of these statuses, and opens no WebSocket.
    Refused(&'static [u16]),
    /// The stream is reset with one of these codes, or the connection ends with one of them
    /// (RFC 9113 §5.4).
    Reset(&'static [u32]),
}

impl Fate {
    /// Returns whether the server may end the whole connection instead of the stream.
    pub(crate) fn may_end_connection(&self) -> bool {
        matches!(
            self,
            Self::Malformed | Self::MalformedOrOpened | Self::Reset(_)
        )
    }
}

/// What came back on an HTTP/2 connection.
#[derive(Clone, Debug, Default)]
pub struct Http2Outcome {
    /// The streams on which something came back, by their numbers.
    pub streams: BTreeMap<u32, StreamOutcome>,
    /// The error code of a GOAWAY, if one came.
    pub goaway: Option<u32>,
    /// How many of our PINGs were answered.
    pub pongs: usize,
}

/// What came back on a stream.
#[derive(Clone, Debug, Default)]
pub struct StreamOutcome {
    /// The response.
    pub head: Option<Head>,
    /// The messages and Pongs of its WebSocket.
    pub answers: Vec<Answer>,
    /// The code of its Close frame; 0 for a Close frame without a code.
    pub close: Option<u16>,
    /// The state of the stream: open, or ended or reset by the server.
    pub end: End,
    /// The error code of the reset.
    pub reset: Option<u32>,
}

impl Http2Outcome {
    /// Describes it in a few words, one item per stream.
    pub(crate) fn in_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (id, stream) in self.streams.iter().take(4) {
            let mut said = stream.in_words();
            if said.is_empty() {
                said.push("nothing".into());
            }
            words.push(format!("stream {id}: {}", said.join(" ")));
        }
        if let Some(code) = self.goaway {
            words.push(format!("GOAWAY {}", error_name(code)));
        }
        words
    }
}

impl StreamOutcome {
    /// Returns the status of the response.
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().and_then(Head::status)
    }

    fn in_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(status) = self.status() {
            words.push(status.to_string());
        }
        if !self.answers.is_empty() {
            words.push(format!("{} answers", self.answers.len()));
        }
        if let Some(code) = self.close {
            words.push(format!("Close {code}"));
        }
        match (self.reset, self.end) {
            (Some(code), _) => words.push(format!("RST_STREAM {}", error_name(code))),
            (None, End::Fin) => words.push("END_STREAM".into()),
            (None, _) => {}
        }
        words
    }
}
