//! The input of a client, frame by frame (RFC 9113 §3.4, §4, §6.5).

use super::{
    head::{HEAD_BYTES, Head, SETTINGS, STREAM_MASK, WINDOW_UPDATE},
    windows::Windows,
};

/// Length in bytes of the connection preface, which h2 checks.
const PREFACE_BYTES: u32 = 24;

/// Size of a setting in bytes: an identifier of two bytes and a value of four.
const SETTING_BYTES: usize = 6;

const INITIAL_WINDOW_SIZE: u16 = 0x4;

/// The client's first frame is not its settings, so the connection must be closed.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct SettingsMissing {
    /// How many bytes of the input belong to the connection preface.
    pub(super) preface_bytes: usize,
}

/// Parses the frames of a client from pieces of any size.
#[derive(Debug)]
pub(super) struct Frames {
    position: Position,
    has_begun: bool,
    windows: Windows,
    /// The streams whose windows are open too far, found since they were last taken.
    overflown: Vec<u32>,
}

/// The part of the input that comes next.
#[derive(Debug)]
enum Position {
    Head {
        head: [u8; HEAD_BYTES],
        bytes: usize,
    },
    Settings {
        settings: Settings,
        left: u32,
    },
    /// The increment of a stream's window, as far as it has arrived.
    Window {
        stream: u32,
        increment: u32,
        left: u32,
    },
    /// This many bytes to skip.
    Skipped(u32),
}

impl Position {
    /// The position after a frame.
    const HEAD: Self = Self::Head {
        head: [0; HEAD_BYTES],
        bytes: 0,
    };

    /// Returns the position before `bytes` bytes to skip.
    const fn skipping(bytes: u32) -> Self {
        if bytes == 0 {
            Self::HEAD
        } else {
            Self::Skipped(bytes)
        }
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            position: Position::Skipped(PREFACE_BYTES),
            has_begun: false,
            windows: Windows::default(),
            overflown: Vec::new(),
        }
    }
}

impl Frames {
    /// Handles input that has arrived. Do not call it again after an error.
    ///
    /// # Errors
    /// The connection must be closed.
    pub(super) fn handle_input(&mut self, input: &[u8]) -> Result<(), SettingsMissing> {
        let mut rest = input;
        let mut preface_bytes = 0;
        while !rest.is_empty() {
            let taken = self.step(rest).ok_or(SettingsMissing { preface_bytes })?;
            rest = &rest[taken..];
            if matches!(self.position, Position::Head { bytes: 0, .. }) {
                preface_bytes = input.len() - rest.len();
            }
        }
        Ok(())
    }

    /// Takes the streams whose windows have been opened too far.
    pub(super) fn overflown(&mut self) -> impl Iterator<Item = u32> {
        self.overflown.drain(..)
    }

    /// Records bytes that are being written to the client, which may open its windows by the same
    /// amount.
    pub(super) fn note_written(&mut self, bytes: usize) {
        self.windows.note_written(bytes);
    }

    /// Handles the next part of the input; returns its length, or `None` if the client's first
    /// frame is not its settings.
    fn step(&mut self, input: &[u8]) -> Option<usize> {
        match &mut self.position {
            Position::Head { head, bytes } => {
                if *bytes == 0
                    && let Some(head) = input.first_chunk()
                {
                    self.position = self.handle_head(Head::decode(*head))?;
                    return Some(HEAD_BYTES);
                }
                let taken = input.len().min(HEAD_BYTES - *bytes);
                head[*bytes..*bytes + taken].copy_from_slice(&input[..taken]);
                *bytes += taken;
                if *bytes == HEAD_BYTES {
                    let head = Head::decode(*head);
                    self.position = self.handle_head(head)?;
                }
                Some(taken)
            }
            Position::Settings { settings, left } => {
                let taken = part(input, *left);
                settings.handle_input(taken, &mut self.windows);
                *left -= taken.len() as u32;
                if *left == 0 {
                    self.position = Position::HEAD;
                }
                Some(taken.len())
            }
            Position::Window {
                stream,
                increment,
                left,
            } => {
                *increment = *increment << 8 | u32::from(input[0]);
                *left -= 1;
                if *left == 0 {
                    // §6.9: the first bit is reserved.
                    if self.windows.open(*stream, *increment & STREAM_MASK) {
                        self.overflown.push(*stream);
                    }
                    self.position = Position::HEAD;
                }
                Some(1)
            }
            Position::Skipped(left) => {
                let taken = part(input, *left).len();
                self.position = Position::skipping(*left - taken as u32);
                Some(taken)
            }
        }
    }

    /// Returns the position after a frame header.
    fn handle_head(&mut self, head: Head) -> Option<Position> {
        // §3.4: "This sequence MUST be followed by a SETTINGS frame". "Clients and servers MUST
        // treat an invalid connection preface as a connection error of type PROTOCOL_ERROR."
        if !self.has_begun && (head.kind != SETTINGS || head.is_answer()) {
            return None;
        }
        self.has_begun = true;
        let Head {
            kind,
            payload_bytes: left,
            stream,
            ..
        } = head;
        Some(match (kind, left) {
            (SETTINGS, 1..) => {
                let settings = Settings::default();
                Position::Settings { settings, left }
            }
            // h2 checks the window of the connection itself, and the length of the frame.
            (WINDOW_UPDATE, 4) if stream != 0 => Position::Window {
                stream,
                increment: 0,
                left,
            },
            _ => Position::skipping(left),
        })
    }
}

/// The payload of a SETTINGS frame, as far as it has arrived.
#[derive(Debug, Default)]
struct Settings {
    setting: [u8; SETTING_BYTES],
    bytes: usize,
}

impl Settings {
    /// Handles part of the payload, and resizes the windows accordingly. h2 checks the values.
    fn handle_input(&mut self, input: &[u8], windows: &mut Windows) {
        for byte in input {
            self.setting[self.bytes] = *byte;
            self.bytes += 1;
            if self.bytes == SETTING_BYTES {
                self.bytes = 0;
                self.apply(windows);
            }
        }
    }

    /// Applies a complete setting.
    fn apply(&self, windows: &mut Windows) {
        let [a, b, value @ ..] = self.setting;
        if u16::from_be_bytes([a, b]) == INITIAL_WINDOW_SIZE {
            windows.resize(u32::from_be_bytes(value));
        }
    }
}

/// Returns the beginning of the input that belongs to a part of which `left` bytes remain.
fn part(input: &[u8], left: u32) -> &[u8] {
    &input[..input.len().min(left as usize)]
}

#[cfg(test)]
mod tests;
