//! What has to become of the streams of a connection, and what became of them.

use std::collections::BTreeMap;

use super::frame::error_name;
use crate::{case::Answer, http::Head, outcome::End};

/// What has to become of a stream.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It is answered, whatever the answer says, or reset.
    Answered,
    /// It opens a WebSocket, which gives these answers and goes on.
    Answers(Vec<Answer>),
    /// The WebSocket on it ends by a Close frame with one of these codes, then the stream ends.
    Closes {
        /// What fits.
        codes: &'static [u16],
        /// What has to come before it.
        before: Vec<Answer>,
    },
    /// It ends, with or without a reset, and gives no answer.
    Ends,
    /// It is reset with `PROTOCOL_ERROR`, or answered with an error before (RFC 9113 §8.1.1).
    Malformed,
    /// It is answered with one of these statuses, and opens no WebSocket.
    Refused(&'static [u16]),
    /// It is reset with one of these codes, or the connection ends with one (RFC 9113 §5.4).
    Reset(&'static [u32]),
}

impl Fate {
    /// Returns whether the connection may end in place of it.
    pub(super) fn may_end_connection(&self) -> bool {
        matches!(self, Self::Malformed | Self::Reset(_))
    }
}

/// What came back on a connection of HTTP/2.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The streams on which something came.
    pub streams: BTreeMap<u32, SeenStream>,
    /// The code of a GOAWAY.
    pub goaway: Option<u32>,
    /// How many PINGs of ours were answered.
    pub pongs: usize,
}

/// What came back on a stream.
#[derive(Clone, Debug, Default)]
pub struct SeenStream {
    /// The response.
    pub head: Option<Head>,
    /// Messages and Pongs of its WebSocket.
    pub answers: Vec<Answer>,
    /// The code of its Close frame, 0 for none.
    pub close: Option<u16>,
    /// Whether the server has ended or reset it.
    pub end: End,
    /// The code of the reset.
    pub reset: Option<u32>,
}

impl Seen {
    /// Returns it in a few words.
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

impl SeenStream {
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
