//! What came back for an input.

use std::{fmt::Write, time::Duration};

use crate::{answers::Answer, connection::End, http::Head, http2::Http2Outcome, tls};

/// A received Close frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CloseFrame {
    /// The code, if the frame has one.
    pub code: Option<u16>,
    /// How many stages had been sent when it arrived.
    pub stages: usize,
}

/// Everything that came back for one input.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The response to the request, if a request was sent.
    pub head: Option<Head>,
    /// The bytes after a response that opens no WebSocket, or everything received on a plain TCP
    /// connection.
    pub rest: Vec<u8>,
    /// The messages and Pongs.
    pub answers: Vec<Answer>,
    /// The Close frame.
    pub close: Option<CloseFrame>,
    /// The first thing that came back and that no endpoint may send.
    pub fault: Option<String>,
    /// True if the Ping that we send to endpoints that do not echo was answered.
    pub answers_probe: bool,
    /// What came back over HTTP/2, for inputs of HTTP/2 frames.
    pub http2: Http2Outcome,
    /// The last known state of the connection.
    pub end: End,
    /// How many stages were sent.
    pub stages: usize,
    /// How long the conversation took.
    pub took: Duration,
    /// The measurement, for findings about the server's process.
    pub figures: Option<String>,
}

impl Outcome {
    /// Returns whether a WebSocket was opened.
    pub fn opened(&self) -> bool {
        self.head.as_ref().is_some_and(Head::opens)
    }

    /// Describes the outcome in a few words.
    pub fn in_words(&self) -> String {
        if let Some(figures) = &self.figures {
            return figures.clone();
        }
        let mut words = Vec::new();
        if let Some(head) = &self.head {
            words.push(shortened(&head.line));
        }
        for answer in self.answers.iter().take(3) {
            words.push(answer_in_words(answer));
        }
        if self.answers.len() > 3 {
            words.push(format!("{} more", self.answers.len() - 3));
        }
        words.extend(tls::alert(&self.rest).map(|alert| format!("alert {alert}")));
        words.extend(self.http2.in_words());
        if let Some(fault) = &self.fault {
            words.push(fault.clone());
        }
        match self.close {
            Some(CloseFrame {
                code: Some(code), ..
            }) => words.push(format!("Close {code}")),
            Some(CloseFrame { code: None, .. }) => words.push("Close without a code".into()),
            None => {}
        }
        words.push(match self.end {
            End::Fin => "connection closed".into(),
            End::Reset => "connection reset (RST)".into(),
            End::Open => format!("still open after {:.1} s", self.took.as_secs_f64()),
        });
        words.join(", ")
    }
}

fn answer_in_words(answer: &Answer) -> String {
    let kind = match answer.opcode {
        0x1 => "text",
        0x2 => "binary",
        _ => "Pong",
    };
    match answer.payload.len() {
        0..=16 => format!("{kind} {:?}", String::from_utf8_lossy(&answer.payload)),
        bytes => format!("{kind} of {bytes} bytes"),
    }
}

fn shortened(line: &str) -> String {
    let mut short: String = line.chars().take(60).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// Returns up to `bytes_max` bytes in hexadecimal, and the total number if there are more.
pub(crate) fn hex(bytes: &[u8], bytes_max: usize) -> String {
    let mut hex = String::new();
    for byte in bytes.iter().take(bytes_max) {
        // Writing to a string cannot fail.
        _ = write!(hex, "{byte:02x}");
    }
    if bytes.len() > bytes_max {
        _ = write!(hex, "… ({} bytes)", bytes.len());
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_reads_well() {
        let mut outcome = Outcome {
            answers: vec![Answer {
                opcode: 1,
                payload: b"Spam".to_vec(),
            }],
            ..Outcome::default()
        };
        outcome.took = Duration::from_millis(3_000);
        assert_eq!(outcome.in_words(), "text \"Spam\", still open after 3.0 s");
        outcome.close = Some(CloseFrame {
            code: Some(1002),
            stages: 1,
        });
        outcome.end = End::Fin;
        let words = "text \"Spam\", Close 1002, connection closed";
        assert_eq!(outcome.in_words(), words);
    }

    #[test]
    fn long_inputs_are_cut() {
        assert_eq!(hex(b"\x81\x00", 4), "8100");
        assert_eq!(hex(&[0xFF; 9], 2), "ffff… (9 bytes)");
    }
}
