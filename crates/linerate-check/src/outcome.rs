//! What came back.

use std::{fmt::Write, time::Duration};

use crate::{case::Answer, http::Head, http2::Seen, tls};

/// How the connection stood when we looked last.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum End {
    /// The other side ended it, and said so.
    Fin,
    /// It is still there.
    #[default]
    Open,
    /// It was cut.
    Reset,
}

/// A Close frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Closed {
    /// Its code, if it has one.
    pub code: Option<u16>,
    /// How many stages had been sent when it came.
    pub stages: usize,
}

/// All that came back for one input.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The answer to the request, if that is what was sent.
    pub head: Option<Head>,
    /// What came behind an answer that opens no WebSocket, or in place of one.
    pub rest: Vec<u8>,
    /// Messages and Pongs.
    pub answers: Vec<Answer>,
    /// The Close frame.
    pub close: Option<Closed>,
    /// Why something that came back must not be sent by anybody.
    pub fault: Option<String>,
    /// Whether the Ping that we sent in place of what can't be seen was answered.
    pub answers_probe: bool,
    /// What came back over HTTP/2, where frames of that were sent.
    pub http2: Seen,
    /// How the connection ended.
    pub end: End,
    /// How many stages had been sent when it ended.
    pub stages: usize,
    /// How long it took.
    pub took: Duration,
    /// What was measured, where that is what was looked at.
    pub figures: Option<String>,
}

impl Outcome {
    /// Returns whether a WebSocket was opened.
    pub fn opened(&self) -> bool {
        self.head.as_ref().is_some_and(Head::opens)
    }

    /// Returns it in a few words.
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
            Some(Closed {
                code: Some(code), ..
            }) => words.push(format!("Close {code}")),
            Some(Closed { code: None, .. }) => words.push("Close without a code".into()),
            None => {}
        }
        words.push(match self.end {
            End::Fin => "end of the connection".into(),
            End::Reset => "connection cut (RST)".into(),
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

/// Returns the first bytes in hexadecimal, and how many there are.
pub(crate) fn hex(bytes: &[u8], bytes_max: usize) -> String {
    let mut hex = String::new();
    for byte in bytes.iter().take(bytes_max) {
        // Writing to a string can't fail.
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
        outcome.close = Some(Closed {
            code: Some(1002),
            stages: 1,
        });
        outcome.end = End::Fin;
        let words = "text \"Spam\", Close 1002, end of the connection";
        assert_eq!(outcome.in_words(), words);
    }

    #[test]
    fn long_inputs_are_cut() {
        assert_eq!(hex(b"\x81\x00", 4), "8100");
        assert_eq!(hex(&[0xFF; 9], 2), "ffff… (9 bytes)");
    }
}
