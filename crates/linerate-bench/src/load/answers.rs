//! What a server sends, compared with what it should send, byte by byte.
//!
//! Nearly all servers send a message in one frame with the shortest header, so the bytes of that are
//! compared as they come. The first header that differs has the rest of the connection read by an
//! engine, which knows what else is allowed: fragments, longer headers, Pings.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use linerate_proto::engine::MessageKind;
use linerate_proto::{Client, Config, Engine, Event, Header, Limits, MaskKey, Opcode};

use super::message::Expected;
use super::{LoadError, Wire};

/// The comparison of one connection's input.
#[derive(Debug)]
pub(crate) struct Answers {
    wire: Wire,
    kind: MessageKind,
    /// The message that comes next or is coming.
    message: u64,
    /// How much of it has come: of its frame, or of its payload once there is an engine.
    at: usize,
    engine: Option<Box<Engine<Client<fn() -> MaskKey>>>>,
}

impl Answers {
    /// Starts before the first message; all are of one `kind`, which means nothing on a raw wire.
    pub(crate) fn new(wire: Wire, kind: MessageKind) -> Self {
        Self {
            wire,
            kind,
            message: 0,
            at: 0,
            engine: None,
        }
    }

    /// Returns how many messages have come.
    pub(crate) fn messages(&self) -> u64 {
        self.message
    }

    /// Has the next message be the one that is numbered `message`; returns whether that can be, which
    /// is not so within a message.
    pub(crate) fn skip_to(&mut self, message: u64) -> bool {
        let is_between = self.at == 0;
        if is_between {
            self.message = message;
        }
        is_between
    }

    /// Takes input. `expected` gives the messages by their numbers, and `None` for those that nobody
    /// asked for. Pongs that are due are appended to `control`.
    ///
    /// # Errors
    ///
    /// The input is something else.
    pub(crate) fn handle_input<'e>(
        &mut self,
        input: &mut [u8],
        control: &mut Vec<u8>,
        expected: impl Fn(u64) -> Option<Expected<'e>>,
    ) -> Result<(), LoadError> {
        let mut input = input;
        if self.engine.is_none() {
            let taken = self.compare_frames(input, &expected)?;
            input = &mut input[taken..];
            if input.is_empty() {
                return Ok(());
            }
            self.begin_careful(control, &expected)?;
        }
        self.read_carefully(input, control, &expected)
    }

    /// Compares frames as they should be; returns how many bytes were taken before a header that
    /// differs.
    fn compare_frames<'e>(
        &mut self,
        input: &[u8],
        expected: &impl Fn(u64) -> Option<Expected<'e>>,
    ) -> Result<usize, LoadError> {
        let mut taken = 0;
        while taken < input.len() {
            let Some(message) = expected(self.message) else {
                return match self.wire {
                    Wire::Raw => Err(self.unasked()),
                    Wire::WebSocket => Ok(taken),
                };
            };
            let due = &message.frame[self.at..];
            let bytes = due.len().min(input.len() - taken);
            let piece = &input[taken..][..bytes];
            if piece != &due[..bytes] {
                let same = common(piece, due);
                return match (self.at + same).checked_sub(message.header_bytes) {
                    None => Ok(taken),
                    Some(byte) => Err(self.differs(byte, due[same], piece[same])),
                };
            }
            taken += bytes;
            self.at += bytes;
            if self.at == message.frame.len() {
                self.message += 1;
                self.at = 0;
            }
        }
        Ok(taken)
    }

    /// Hands over to an engine, within a header at most.
    fn begin_careful<'e>(
        &mut self,
        control: &mut Vec<u8>,
        expected: &impl Fn(u64) -> Option<Expected<'e>>,
    ) -> Result<(), LoadError> {
        static CONFIG: LazyLock<Arc<Config>> = LazyLock::new(|| {
            Arc::new(Config {
                // What comes is compared, never stored.
                limits: Limits {
                    message_bytes_max: u64::MAX,
                    frame_bytes_max: u64::MAX,
                    fragments_max: u32::MAX,
                },
                ping_interval: None,
                ..Config::default()
            })
        });
        // Only Pongs and Close frames are masked with it.
        let client = Client::new((|| MaskKey([0x9E, 0x37, 0x79, 0xB9])) as fn() -> MaskKey);
        let engine = Engine::new(client, Arc::clone(&CONFIG), Duration::ZERO);
        self.engine = Some(Box::new(engine));
        // What was taken of the header is as expected, and still has to be read.
        let mut head = [0; Header::BYTES_MAX];
        let bytes = std::mem::take(&mut self.at);
        if let Some(message) = expected(self.message) {
            head[..bytes].copy_from_slice(&message.frame[..bytes]);
        }
        self.read_carefully(&mut head[..bytes], control, expected)
    }

    fn read_carefully<'e>(
        &mut self,
        input: &mut [u8],
        control: &mut Vec<u8>,
        expected: &impl Fn(u64) -> Option<Expected<'e>>,
    ) -> Result<(), LoadError> {
        let Some(mut engine) = self.engine.take() else {
            return Ok(());
        };
        let mut events = engine.handle_input(input, Duration::ZERO);
        while let Some(event) = events.next() {
            let event = event.map_err(|source| LoadError::Protocol {
                message: self.message,
                source,
            })?;
            match event {
                Event::Binary(bytes) => self.compare(MessageKind::Binary, bytes, true, expected)?,
                Event::Chunk(chunk) => {
                    self.compare(chunk.kind, chunk.bytes, chunk.ends, expected)?;
                }
                Event::Close(close) => {
                    let code = close.code.map(|code| code.as_u16());
                    return Err(LoadError::Closed { code });
                }
                Event::Ping(_) => {
                    events.poll_transmit(control);
                }
                Event::Pong(_) => {}
                Event::Text(text) => {
                    self.compare(MessageKind::Text, text.as_bytes(), true, expected)?;
                }
            }
        }
        self.engine = Some(engine);
        Ok(())
    }

    /// Compares a piece of a payload, the last one of its message if it `ends`.
    fn compare<'e>(
        &mut self,
        kind: MessageKind,
        piece: &[u8],
        ends: bool,
        expected: &impl Fn(u64) -> Option<Expected<'e>>,
    ) -> Result<(), LoadError> {
        let message = expected(self.message).ok_or_else(|| self.unasked())?;
        if kind != self.kind {
            return Err(LoadError::Opcode {
                message: self.message,
                expected: opcode(self.kind),
                found: opcode(kind),
            });
        }
        let due = &message.payload()[self.at..];
        let same = common(piece, due);
        if same < piece.len().min(due.len()) {
            return Err(self.differs(self.at + same, due[same], piece[same]));
        }
        let bytes = (self.at + piece.len()) as u64;
        let expected = message.payload().len() as u64;
        match bytes.cmp(&expected) {
            Ordering::Greater => Err(LoadError::Long {
                message: self.message,
                bytes,
                expected,
            }),
            Ordering::Less if ends => Err(LoadError::Short {
                message: self.message,
                bytes,
                expected,
            }),
            _ if ends => {
                self.message += 1;
                self.at = 0;
                Ok(())
            }
            _ => {
                self.at += piece.len();
                Ok(())
            }
        }
    }

    fn differs(&self, byte: usize, expected: u8, found: u8) -> LoadError {
        LoadError::Differs {
            message: self.message,
            byte: byte as u64,
            expected,
            found,
        }
    }

    fn unasked(&self) -> LoadError {
        LoadError::Unasked {
            message: self.message,
        }
    }
}

/// Returns how many bytes are the same at the start of both.
fn common(a: &[u8], b: &[u8]) -> usize {
    if a.len() <= b.len() && a == &b[..a.len()] {
        return a.len();
    }
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn opcode(kind: MessageKind) -> Opcode {
    match kind {
        MessageKind::Binary => Opcode::Binary,
        MessageKind::Text => Opcode::Text,
    }
}

#[cfg(test)]
mod tests;
