//! The input of a client, frame by frame (RFC 9113 §3.4, §4, §5.1).

use h2::Reason;

use super::{
    ended::Ended,
    fields::Fields,
    head::{CONTINUATION, DATA, HEAD_BYTES, HEADERS, Head, SETTINGS, STREAM_MASK, WINDOW_UPDATE},
    settings::Settings,
    windows::Windows,
};

/// Length in bytes of the connection preface, which h2 checks.
const PREFACE_BYTES: u32 = 24;

/// The fault for which a connection must be closed.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Broken {
    /// The error with which the connection must be closed.
    pub(super) reason: Reason,
    /// How many bytes of the input belong to frames that were complete before the fault.
    pub(super) good_bytes: usize,
}

/// Parses the frames of a client from pieces of any size.
#[derive(Debug)]
pub(super) struct Frames {
    place: Place,
    has_begun: bool,
    /// The stream whose field block is not complete.
    block: Option<u32>,
    ended: Ended,
    fields: Fields,
    /// The streams of malformed requests found since they were last taken.
    malformed: Vec<u32>,
    windows: Windows,
    /// The streams whose windows are open too far, found since they were last taken.
    overflown: Vec<u32>,
}

/// The part of the input that comes next.
#[derive(Debug)]
enum Place {
    Head {
        head: [u8; HEAD_BYTES],
        bytes: usize,
    },
    Settings {
        settings: Settings,
        left: u32,
    },
    /// The padding length of this HEADERS frame.
    Padding(Head),
    Block(Block),
    /// The increment of a stream's window, as far as it has arrived.
    Window {
        stream: u32,
        increment: u32,
        left: u32,
    },
    /// This many bytes to skip.
    Rest(u32),
}

/// The part of the payload of HEADERS or CONTINUATION that has not arrived yet.
#[derive(Clone, Copy, Debug)]
struct Block {
    stream: u32,
    priority_bytes: u32,
    /// The stream that this one depends on, as far as it has arrived.
    dependency: u32,
    field_bytes: u32,
    padding_bytes: u32,
    /// True if the field block ends with this frame.
    is_last: bool,
}

impl Block {
    /// Handles a byte of the priority fields. They are obsolete, but if a stream depends on itself
    /// (RFC 7540 §5.3.1), h2 does not decode its fields and would then misread all later ones.
    fn handle_priority(&mut self, byte: u8) -> Result<(), Reason> {
        self.priority_bytes -= 1;
        // The last byte is the weight.
        if self.priority_bytes > 0 {
            self.dependency = self.dependency << 8 | u32::from(byte);
        } else if self.dependency & STREAM_MASK == self.stream {
            return Err(Reason::PROTOCOL_ERROR);
        }
        Ok(())
    }
}

impl Place {
    /// The place after a frame.
    const HEAD: Self = Self::Head {
        head: [0; HEAD_BYTES],
        bytes: 0,
    };

    /// Returns the place before `bytes` bytes to skip.
    const fn rest(bytes: u32) -> Self {
        if bytes == 0 {
            Self::HEAD
        } else {
            Self::Rest(bytes)
        }
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            place: Place::Rest(PREFACE_BYTES),
            has_begun: false,
            block: None,
            ended: Ended::default(),
            fields: Fields::default(),
            malformed: Vec::new(),
            windows: Windows::default(),
            overflown: Vec::new(),
        }
    }
}

impl Frames {
    /// Handles input that has arrived. Do not call it again after an error.
    ///
    /// # Errors
    /// Returns the fault for which the connection must be closed.
    pub(super) fn handle_input(&mut self, input: &[u8]) -> Result<(), Broken> {
        let mut rest = input;
        let mut good_bytes = 0;
        while !rest.is_empty() {
            let taken = self
                .step(rest)
                .map_err(|reason| Broken { reason, good_bytes })?;
            rest = &rest[taken..];
            if matches!(self.place, Place::Head { bytes: 0, .. }) {
                good_bytes = input.len() - rest.len();
            }
        }
        Ok(())
    }

    /// Takes the streams of requests that are malformed in a way that h2 cannot see.
    pub(super) fn malformed(&mut self) -> impl Iterator<Item = u32> {
        self.malformed.drain(..)
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

    /// Handles the next part of the input; returns its length.
    fn step(&mut self, input: &[u8]) -> Result<usize, Reason> {
        match &mut self.place {
            Place::Head { bytes: 0, .. } if let Some(head) = input.first_chunk() => {
                self.place = self.handle_head(&Head::decode(*head))?;
                Ok(HEAD_BYTES)
            }
            Place::Head { head, bytes } => {
                let taken = input.len().min(HEAD_BYTES - *bytes);
                head[*bytes..*bytes + taken].copy_from_slice(&input[..taken]);
                *bytes += taken;
                if *bytes == HEAD_BYTES {
                    let head = Head::decode(*head);
                    self.place = self.handle_head(&head)?;
                }
                Ok(taken)
            }
            Place::Settings { settings, left } => {
                let taken = part(input, *left);
                settings.handle_input(taken, &mut self.windows)?;
                *left -= taken.len() as u32;
                if *left == 0 {
                    self.place = Place::HEAD;
                }
                Ok(taken.len())
            }
            Place::Padding(head) => {
                let block = block(head, head.payload_bytes - 1, input[0].into())?;
                self.place = self.behind(block)?;
                Ok(1)
            }
            Place::Block(block) => {
                let block = *block;
                self.handle_block(block, input)
            }
            Place::Window {
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
                    self.place = Place::HEAD;
                }
                Ok(1)
            }
            Place::Rest(left) => {
                let taken = part(input, *left).len();
                self.place = Place::rest(*left - taken as u32);
                Ok(taken)
            }
        }
    }

    /// Checks a frame header; returns the place after it.
    fn handle_head(&mut self, head: &Head) -> Result<Place, Reason> {
        self.judge(head)?;
        self.has_begun = true;
        self.block = head.leaves_block_open().then_some(head.stream);
        if head.ends_stream() {
            self.ended.insert(head.stream);
        }
        let left = head.payload_bytes;
        match head.kind {
            HEADERS => self.fields.begin(),
            SETTINGS if left > 0 => {
                let settings = Settings::default();
                return Ok(Place::Settings { settings, left });
            }
            CONTINUATION => {}
            // h2 checks the window of the connection itself.
            WINDOW_UPDATE if head.stream != 0 => {
                return Ok(Place::Window {
                    stream: head.stream,
                    increment: 0,
                    left,
                });
            }
            _ => return Ok(Place::rest(left)),
        }
        if head.is_padded() {
            return Ok(Place::Padding(*head));
        }
        self.behind(block(head, left, 0)?)
    }

    /// Handles part of a field block; returns its length.
    fn handle_block(&mut self, mut block: Block, input: &[u8]) -> Result<usize, Reason> {
        let taken = if block.priority_bytes > 0 {
            block.handle_priority(input[0])?;
            1
        } else {
            let fields = part(input, block.field_bytes);
            block.field_bytes -= fields.len() as u32;
            self.fields
                .handle_input(fields)
                .ok_or(Reason::COMPRESSION_ERROR)?;
            fields.len()
        };
        self.place = self.behind(block)?;
        Ok(taken)
    }

    /// Returns the next place in a block, or the place after the block if it is complete.
    fn behind(&mut self, block: Block) -> Result<Place, Reason> {
        if block.priority_bytes > 0 || block.field_bytes > 0 {
            return Ok(Place::Block(block));
        }
        if block.is_last {
            let has_fragment = self.fields.end().ok_or(Reason::COMPRESSION_ERROR)?;
            if has_fragment {
                self.malformed.push(block.stream);
            }
        }
        Ok(Place::rest(block.padding_bytes))
    }

    fn judge(&self, head: &Head) -> Result<(), Reason> {
        // §3.4: "This sequence MUST be followed by a SETTINGS frame". "Clients and servers MUST
        // treat an invalid connection preface as a connection error of type PROTOCOL_ERROR."
        if !self.has_begun && (head.kind != SETTINGS || head.is_answer()) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        // §4.3: "Field blocks MUST be transmitted as a contiguous sequence of frames, with no
        // interleaved frames of any other type or from any other stream."
        let continues = (head.kind == CONTINUATION).then_some(head.stream);
        if self.block != continues {
            return Err(Reason::PROTOCOL_ERROR);
        }
        // §4.2: "An endpoint MUST send an error code of FRAME_SIZE_ERROR". Even if the error
        // concerns only a stream, the connection may be closed (§5.4).
        if head.has_wrong_size() {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        // §5.1: "If an endpoint receives additional frames, other than WINDOW_UPDATE, PRIORITY, or
        // RST_STREAM, for a stream that is in this state, it MUST respond with a stream error of
        // type STREAM_CLOSED."
        if matches!(head.kind, DATA | HEADERS) && self.ended.contains(head.stream) {
            return Err(Reason::STREAM_CLOSED);
        }
        Ok(())
    }
}

/// Returns the parts of a HEADERS or CONTINUATION frame of which `left` bytes remain.
fn block(head: &Head, left: u32, padding_bytes: u32) -> Result<Block, Reason> {
    let priority_bytes = head.priority_bytes();
    // §6.2: "Padding that exceeds the size remaining for the field block fragment MUST be treated
    // as a connection error of type PROTOCOL_ERROR."
    let field_bytes = left
        .checked_sub(priority_bytes + padding_bytes)
        .ok_or(Reason::PROTOCOL_ERROR)?;
    Ok(Block {
        stream: head.stream,
        priority_bytes,
        dependency: 0,
        field_bytes,
        padding_bytes,
        is_last: !head.leaves_block_open(),
    })
}

/// Returns the beginning of the input that belongs to a part of which `left` bytes remain.
fn part(input: &[u8], left: u32) -> &[u8] {
    &input[..input.len().min(left as usize)]
}

#[cfg(test)]
mod tests;
