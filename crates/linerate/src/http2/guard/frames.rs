//! What a client sends, frame by frame (RFC 9113 §3.4, §4, §5.1).

use h2::Reason;

use super::{
    ended::Ended,
    fields::Fields,
    head::{CONTINUATION, DATA, HEAD_BYTES, HEADERS, Head, SETTINGS, STREAM_MASK, WINDOW_UPDATE},
    settings::Settings,
    windows::Windows,
};

/// How long the preface is, which h2 looks at.
const PREFACE_BYTES: u32 = 24;

/// What a client did wrong.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Broken {
    /// The error that the connection has to end with.
    pub(super) reason: Reason,
    /// How many bytes of the input belong to frames that came to their end before.
    pub(super) good_bytes: usize,
}

/// Follows the frames of a client, however they are cut.
#[derive(Debug)]
pub(super) struct Frames {
    place: Place,
    has_begun: bool,
    /// The stream whose field block is not at its end.
    block: Option<u32>,
    ended: Ended,
    fields: Fields,
    /// The streams of requests that are malformed, since somebody has asked.
    malformed: Vec<u32>,
    windows: Windows,
    /// The streams whose windows are open too far, since somebody has asked.
    overflown: Vec<u32>,
}

/// What comes next.
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
    /// The length of the padding of these HEADERS.
    Padding(Head),
    Block(Block),
    /// By how much the window of a stream grows, as far as that has come.
    Window {
        stream: u32,
        increment: u32,
        left: u32,
    },
    /// So many bytes that are not looked at.
    Rest(u32),
}

/// The payload of HEADERS or CONTINUATION, as far as it has not come.
#[derive(Clone, Copy, Debug)]
struct Block {
    stream: u32,
    priority_bytes: u32,
    /// The stream that should come first, as far as that has come.
    dependency: u32,
    field_bytes: u32,
    padding_bytes: u32,
    /// The field block ends with it.
    is_last: bool,
}

impl Block {
    /// Takes a byte of which stream should come first. That is obsolete, but of a stream that should come
    /// before itself (RFC 7540 §5.3.1) h2 does not decode the fields, and would misread all that follow.
    fn handle_priority(&mut self, byte: u8) -> Result<(), Reason> {
        self.priority_bytes -= 1;
        // The last byte is a weight.
        if self.priority_bytes > 0 {
            self.dependency = self.dependency << 8 | u32::from(byte);
        } else if self.dependency & STREAM_MASK == self.stream {
            return Err(Reason::PROTOCOL_ERROR);
        }
        Ok(())
    }
}

impl Place {
    /// The place behind a frame.
    const HEAD: Self = Self::Head {
        head: [0; HEAD_BYTES],
        bytes: 0,
    };

    /// The place in front of so many bytes that are not looked at.
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
    /// Takes what has arrived. After an error nothing more may come.
    ///
    /// # Errors
    /// The connection has to end.
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

    /// Returns the streams of requests that are malformed in a way that h2 can't see, once.
    pub(super) fn malformed(&mut self) -> impl Iterator<Item = u32> {
        self.malformed.drain(..)
    }

    /// Returns the streams whose windows have been opened too far, once.
    pub(super) fn overflown(&mut self) -> impl Iterator<Item = u32> {
        self.overflown.drain(..)
    }

    /// Takes note of bytes on their way to the client, which may open its windows by as much.
    pub(super) fn note_written(&mut self, bytes: usize) {
        self.windows.note_written(bytes);
    }

    /// Takes the next part of the input; returns how long that is.
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

    /// Judges a frame by its head; returns what comes behind that.
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
            // h2 looks after the window of the connection.
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

    /// Takes a part of what belongs to a field block; returns how long that is.
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

    /// Returns what comes next in a block or, if nothing of it is left, behind it.
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
        // §3.4: "This sequence MUST be followed by a SETTINGS frame". "Clients and servers MUST treat an
        // invalid connection preface as a connection error of type PROTOCOL_ERROR."
        if !self.has_begun && (head.kind != SETTINGS || head.is_answer()) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        // §4.3: "Field blocks MUST be transmitted as a contiguous sequence of frames, with no interleaved
        // frames of any other type or from any other stream."
        let continues = (head.kind == CONTINUATION).then_some(head.stream);
        if self.block != continues {
            return Err(Reason::PROTOCOL_ERROR);
        }
        // §4.2: "An endpoint MUST send an error code of FRAME_SIZE_ERROR". Where it concerns only a stream
        // the connection may end all the same (§5.4).
        if head.has_wrong_size() {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        // §5.1: "If an endpoint receives additional frames, other than WINDOW_UPDATE, PRIORITY, or
        // RST_STREAM, for a stream that is in this state, it MUST respond with a stream error of type
        // STREAM_CLOSED."
        if matches!(head.kind, DATA | HEADERS) && self.ended.contains(head.stream) {
            return Err(Reason::STREAM_CLOSED);
        }
        Ok(())
    }
}

/// Returns what is in HEADERS or CONTINUATION, of which so many bytes are left.
fn block(head: &Head, left: u32, padding_bytes: u32) -> Result<Block, Reason> {
    let priority_bytes = head.priority_bytes();
    // §6.2: "Padding that exceeds the size remaining for the field block fragment MUST be treated as a
    // connection error of type PROTOCOL_ERROR."
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

/// Returns as much of the input as belongs to a part of which so many bytes are left.
fn part(input: &[u8], left: u32) -> &[u8] {
    &input[..input.len().min(left as usize)]
}

#[cfg(test)]
mod tests;
