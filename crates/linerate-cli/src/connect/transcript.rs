//! The transcript of a conversation: for people, as lines of text, or as JSON lines.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use linerate::{Closed, Message, WebSocket};
use serde::Serialize;

use super::{
    prompt::Screen,
    view::{View, ending},
};
use crate::terminal::printable;

/// Maximum number of bytes of a binary message that are shown as text.
const PREVIEW_BYTES: usize = 32;

/// Writes messages to standard output and other events to standard error. As JSON, and with a
/// prompt, everything goes to standard output.
#[derive(Debug)]
pub(super) struct Transcript {
    opened: Instant,
    output: Output,
    /// The terminal while it has a prompt.
    screen: Option<Screen>,
}

/// What the transcript looks like.
#[derive(Clone, Copy, Debug)]
pub(super) enum Output {
    Json,
    /// Messages as they arrive.
    Lines,
    /// For people: standard output is a terminal.
    Terminal(View),
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
    pub(super) fn new(output: Output) -> Self {
        Self {
            opened: Instant::now(),
            output,
            screen: None,
        }
    }

    /// Writes everything above a prompt from now on.
    pub(super) fn with_screen(mut self, screen: Screen) -> Self {
        self.screen = Some(screen);
        self
    }

    /// Ends the prompt, if there is one.
    pub(super) async fn end_prompt(&mut self) {
        if let Some(screen) = self.screen.take() {
            screen.end().await;
        }
    }

    pub(super) async fn opened(&self, url: &str, ws: &WebSocket) -> io::Result<()> {
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
            .await
    }

    pub(super) fn sent(&self, message: &Message) -> io::Result<()> {
        match self.output {
            Output::Json => self.write_json(Event::Sent(Payload::of(message))),
            // The user has just typed it.
            Output::Lines | Output::Terminal(_) => Ok(()),
        }
    }

    /// Reports a file that was sent, or as much of it as was.
    pub(super) async fn file(&self, text: &str) -> io::Result<()> {
        match self.output {
            Output::Terminal(view) => self.print_note(view, text).await,
            Output::Json | Output::Lines => Ok(()),
        }
    }

    pub(super) async fn received(&self, message: &Message) -> io::Result<()> {
        match (self.output, message) {
            (Output::Json, _) => self.write_json(Event::Message(Payload::of(message))),
            (Output::Lines, Message::Binary(bytes)) => write_line(&preview(bytes)),
            (Output::Lines, Message::Text(text)) => write_line(text),
            (Output::Terminal(view), _) => self.print(view.received(message, preview)).await,
        }
    }

    /// Reports the Pong of a Ping with this payload.
    pub(super) async fn pong(&self, payload: &str, latency: Duration) -> io::Result<()> {
        let latency_ms = milliseconds(latency);
        let named = match payload {
            "" => String::new(),
            payload => format!(" {payload}"),
        };
        self.note(
            &format!("pong{named} after {latency_ms:.1} ms"),
            Event::Pong { latency_ms },
        )
        .await
    }

    /// Writes a summary of the round-trip times, if there were any.
    pub(super) async fn round_trips(&self, round_trips: &RoundTrips) -> io::Result<()> {
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
        .await
    }

    pub(super) async fn closed(&self, closed: &Closed) -> io::Result<()> {
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
        if let Output::Terminal(_) = self.output {
            text = ending(closed);
        }
        self.note(
            &text,
            Event::Close {
                code,
                reason,
                clean: closed.clean,
            },
        )
        .await
    }

    /// Writes an event that is not a message.
    async fn note(&self, text: &str, event: Event<'_>) -> io::Result<()> {
        match self.output {
            Output::Json => self.write_json(event),
            Output::Terminal(view) if io::stderr().is_terminal() => {
                self.print_note(view, text).await
            }
            Output::Lines | Output::Terminal(_) => {
                // If standard error is closed, the text is dropped.
                _ = writeln!(io::stderr().lock(), "{text}");
                Ok(())
            }
        }
    }

    async fn print_note(&self, view: View, text: &str) -> io::Result<()> {
        self.print(view.note(text)).await
    }

    /// Prints on the terminal, above the prompt if there is one.
    async fn print(&self, text: String) -> io::Result<()> {
        match &self.screen {
            Some(screen) => {
                screen.print(text).await;
                Ok(())
            }
            None => write_line(&text),
        }
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
