//! The transcript of a conversation, as text or as JSON lines.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use linerate::{Closed, Message, WebSocket};
use serde::Serialize;

use crate::terminal::printable;

/// Maximum number of bytes of a binary message that are shown as text.
const PREVIEW_BYTES: usize = 32;

/// Writes messages to standard output and other events to standard error. As JSON, everything goes
/// to standard output.
#[derive(Debug)]
pub(super) struct Transcript {
    opened: Instant,
    json: bool,
    /// True if standard output is a terminal, so that control characters must be escaped.
    is_terminal: bool,
}

/// One line of the transcript in JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a> {
    Close {
        code: u16,
        reason: &'a str,
        clean: bool,
    },
    Message(Payload<'a>),
    Open {
        url: &'a str,
        subprotocol: Option<&'a str>,
        /// The window size of our compressor (RFC 7692), or `None` if messages are not compressed.
        #[serde(skip_serializing_if = "Option::is_none")]
        compression_window_bits: Option<u8>,
    },
    Pong {
        latency_ms: f64,
    },
    #[serde(rename = "round_trips")]
    RoundTrips {
        count: u32,
        min_ms: f64,
        mean_ms: f64,
        max_ms: f64,
    },
    Sent(Payload<'a>),
}

/// A message; binary messages are written as hexadecimal digits.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Payload<'a> {
    Binary { bytes: usize, hex: String },
    Text { text: &'a str },
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    /// Milliseconds since the connection was opened.
    at_ms: u128,
    #[serde(flatten)]
    event: Event<'a>,
}

impl Transcript {
    /// Creates the transcript of a connection that was opened now.
    pub(super) fn new(json: bool) -> Self {
        Self {
            opened: Instant::now(),
            json,
            is_terminal: io::stdout().is_terminal(),
        }
    }

    pub(super) fn opened(&self, url: &str, ws: &WebSocket) -> io::Result<()> {
        let subprotocol = ws.subprotocol();
        let subprotocol = subprotocol.as_deref();
        let chosen = subprotocol.map(|name| format!(", subprotocol {}", printable(name, &[])));
        let compression = ws.compression();
        let compressed = compression.map(|context| format!(", compressed with {context}"));
        let [chosen, compressed] = [chosen, compressed].map(Option::unwrap_or_default);
        let open = Event::Open {
            url,
            subprotocol,
            compression_window_bits: compression.map(|context| context.window_bits),
        };
        self.note(&format!("connected to {url}{chosen}{compressed}"), open)
    }

    pub(super) fn sent(&self, message: &Message) -> io::Result<()> {
        // In text mode, the user has just typed it.
        if self.json {
            self.write_json(Event::Sent(Payload::of(message)))
        } else {
            Ok(())
        }
    }

    pub(super) fn received(&self, message: &Message) -> io::Result<()> {
        if self.json {
            return self.write_json(Event::Message(Payload::of(message)));
        }
        let text = match message {
            Message::Binary(bytes) => preview(bytes),
            Message::Text(text) if self.is_terminal => printable(text, &['\n', '\t']),
            Message::Text(text) => text.to_string(),
        };
        write_line(&text)
    }

    pub(super) fn pong(&self, latency: Duration) -> io::Result<()> {
        let latency_ms = milliseconds(latency);
        self.note(
            &format!("pong after {latency_ms:.1} ms"),
            Event::Pong { latency_ms },
        )
    }

    /// Writes a summary of the round-trip times, if there were any.
    pub(super) fn round_trips(&self, round_trips: &RoundTrips) -> io::Result<()> {
        let RoundTrips {
            count,
            min,
            sum,
            max,
        } = *round_trips;
        if count == 0 {
            return Ok(());
        }
        let [min_ms, mean_ms, max_ms] = [min, sum / count, max].map(milliseconds);
        self.note(
            &format!("{count} round trips: {min_ms:.1}/{mean_ms:.1}/{max_ms:.1} ms (min/mean/max)"),
            Event::RoundTrips {
                count,
                min_ms,
                mean_ms,
                max_ms,
            },
        )
    }

    pub(super) fn closed(&self, closed: &Closed) -> io::Result<()> {
        let (code, reason) = match &closed.received {
            Some(_) => (closed.code, closed.reason()),
            None => (Closed::ABNORMAL, ""),
        };
        let mut text = match code {
            Closed::NO_STATUS => "closed without a code".to_owned(),
            Closed::ABNORMAL => "closed without a Close frame from the server".to_owned(),
            code => format!("closed: {code}"),
        };
        if !reason.is_empty() {
            text.push(' ');
            text.push_str(&printable(reason, &[]));
        }
        self.note(
            &text,
            Event::Close {
                code,
                reason,
                clean: closed.clean,
            },
        )
    }

    /// Writes an event that is not a message.
    fn note(&self, text: &str, event: Event<'_>) -> io::Result<()> {
        if self.json {
            return self.write_json(event);
        }
        // If standard error is closed, the text is dropped.
        _ = writeln!(io::stderr().lock(), "{text}");
        Ok(())
    }

    fn write_json(&self, event: Event<'_>) -> io::Result<()> {
        let at_ms = self.opened.elapsed().as_millis();
        write_line(&serde_json::to_string(&Line { at_ms, event })?)
    }
}

/// Statistics of the times between Pings and their Pongs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrips {
    count: u32,
    min: Duration,
    sum: Duration,
    max: Duration,
}

impl RoundTrips {
    pub(super) fn add(&mut self, time: Duration) {
        self.min = if self.count == 0 {
            time
        } else {
            self.min.min(time)
        };
        self.max = self.max.max(time);
        self.sum += time;
        self.count += 1;
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

impl<'a> Payload<'a> {
    fn of(message: &'a Message) -> Self {
        match message {
            Message::Binary(bytes) => Self::Binary {
                bytes: bytes.len(),
                hex: hex(bytes, ""),
            },
            Message::Text(text) => Self::Text { text },
        }
    }
}

/// Writes a line and flushes it immediately, because the reader may be waiting for it.
fn write_line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// Returns a description of a binary message: its length and its first bytes.
fn preview(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(PREVIEW_BYTES)];
    let more = if shown.len() < bytes.len() {
        " …"
    } else {
        ""
    };
    let unit = if bytes.len() == 1 { "byte" } else { "bytes" };
    format!("binary, {} {unit}: {}{more}", bytes.len(), hex(shown, " "))
}

fn hex(bytes: &[u8], separator: &str) -> String {
    let mut hex = String::with_capacity(bytes.len() * (2 + separator.len()));
    for (place, byte) in bytes.iter().enumerate() {
        let separator = if place > 0 { separator } else { "" };
        // Writing to a string cannot fail.
        _ = write!(hex, "{separator}{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use linerate::Message;

    use super::{Event, Line, Payload, preview};

    #[test]
    fn a_preview_is_short_and_says_the_length() {
        assert_eq!(preview(b""), "binary, 0 bytes: ");
        assert_eq!(preview(b"\0"), "binary, 1 byte: 00");
        assert_eq!(
            preview(&[0xAB; 32]),
            format!("binary, 32 bytes: {}", ["ab"; 32].join(" "))
        );
        assert!(preview(&[0xAB; 33]).ends_with(" ab …"));
    }

    #[test]
    fn json_lines_name_the_event() {
        let json = |event| serde_json::to_string(&Line { at_ms: 7, event }).unwrap();
        let message = Message::from(vec![0, 255]);
        assert_eq!(
            json(Event::Message(Payload::of(&message))),
            r#"{"at_ms":7,"event":"message","kind":"binary","bytes":2,"hex":"00ff"}"#
        );
        assert_eq!(
            json(Event::Sent(Payload::Text { text: "a\"" })),
            r#"{"at_ms":7,"event":"sent","kind":"text","text":"a\""}"#
        );
        assert_eq!(
            json(Event::Close {
                code: 1001,
                reason: "bye",
                clean: true
            }),
            r#"{"at_ms":7,"event":"close","code":1001,"reason":"bye","clean":true}"#
        );
    }
}
