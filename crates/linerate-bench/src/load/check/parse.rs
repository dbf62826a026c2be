//! The slow path of the check: frames of any form, compressed or not.

use flate2::{Decompress, FlushDecompress, Status};
use linerate_proto::{CloseFrame, Header, Opcode, ProtocolError};

use super::super::LoadError;
use crate::cell::Deflate;

/// The message that the frames have to carry next.
#[derive(Debug)]
pub(crate) struct Expected<'a> {
    /// Number of the message on its connection.
    pub(crate) message: u64,
    /// Opcode of the message.
    pub(crate) opcode: Opcode,
    /// Payload of the message; `None` if no message is due.
    pub(crate) payload: Option<&'a [u8]>,
}

/// What a piece of input led to.
#[derive(Debug, PartialEq)]
pub(crate) enum Progress {
    /// A Close frame with this code.
    Closed(Option<u16>),
    /// The end of a message that is correct as a whole.
    Message,
    /// Nothing that counts, for instance part of a header.
    Nothing,
    /// Part of a message; this many bytes of its payload are correct so far.
    Payload(usize),
    /// A Ping with this payload, which has to be answered.
    Ping(Vec<u8>),
}

/// Parses frames and compares their payload.
#[derive(Debug)]
pub(crate) struct Frames {
    /// The part of a header that has arrived.
    head: [u8; Header::BYTES_MAX],
    head_bytes: usize,
    /// The frame whose header has arrived, and how many bytes of its payload are missing.
    frame: Option<(Header, u64)>,
    /// True if the first frame of the message has arrived.
    in_message: bool,
    /// Number of bytes of the message's payload that are correct so far.
    payload_bytes: usize,
    control: Vec<u8>,
    inflate: Option<Box<Inflate>>,
}

impl Frames {
    pub(crate) fn new(deflate: Deflate) -> Self {
        Self {
            head: [0; Header::BYTES_MAX],
            head_bytes: 0,
            frame: None,
            in_message: false,
            payload_bytes: 0,
            control: Vec::new(),
            inflate: match deflate {
                Deflate::Off => None,
                deflate => Some(Box::new(Inflate::new(deflate))),
            },
        }
    }

    /// Sets the part of a header that arrived before.
    pub(crate) fn begin(&mut self, head: &[u8]) {
        self.head[..head.len()].copy_from_slice(head);
        self.head_bytes = head.len();
    }

    /// Parses part of `input`. Returns the progress and the number of bytes consumed.
    pub(crate) fn take(
        &mut self,
        expected: &Expected<'_>,
        input: &[u8],
    ) -> Result<(Progress, usize), LoadError> {
        let Some((header, missing)) = self.frame else {
            return self.take_head(expected, input);
        };
        let bytes = input
            .len()
            .min(usize::try_from(missing).unwrap_or(usize::MAX));
        let part = &input[..bytes];
        let progress = if header.opcode.is_control() {
            self.control.extend_from_slice(part);
            Progress::Nothing
        } else {
            self.take_payload(expected, part)?;
            Progress::Payload(self.payload_bytes)
        };
        let missing = missing - bytes as u64;
        self.frame = Some((header, missing));
        if missing > 0 {
            return Ok((progress, bytes));
        }
        Ok((self.finish_frame(expected, &header)?, bytes))
    }

    /// Returns whether the next byte is the first of a message, or of a control frame between two
    /// messages.
    pub(crate) fn is_between_messages(&self) -> bool {
        !self.in_message && self.head_bytes == 0 && self.frame.is_none()
    }

    fn take_head(
        &mut self,
        expected: &Expected<'_>,
        input: &[u8],
    ) -> Result<(Progress, usize), LoadError> {
        let before = self.head_bytes;
        let end = (before + input.len()).min(Header::BYTES_MAX);
        self.head[before..end].copy_from_slice(&input[..end - before]);
        let decoded =
            Header::decode(&self.head[..end]).map_err(|source| protocol(expected, source))?;
        let Some((header, header_bytes)) = decoded else {
            self.head_bytes = end;
            return Ok((Progress::Nothing, end - before));
        };
        self.check_header(expected, &header)?;
        self.head_bytes = 0;
        self.frame = Some((header, header.payload_bytes));
        let progress = match header.payload_bytes {
            0 => self.finish_frame(expected, &header)?,
            _ => Progress::Nothing,
        };
        Ok((progress, header_bytes - before))
    }

    fn check_header(&mut self, expected: &Expected<'_>, header: &Header) -> Result<(), LoadError> {
        let message = expected.message;
        if header.mask.is_some() {
            return Err(LoadError::Masked { message });
        }
        let rsv = header.rsv;
        if header.opcode.is_control() {
            return match rsv {
                0 => Ok(()),
                _ => Err(LoadError::Reserved { message, rsv }),
            };
        }
        let payload = expected.payload.ok_or(LoadError::Unasked { message })?;
        match (self.in_message, header.opcode) {
            (true, Opcode::Continuation) => {}
            (true, opcode) => {
                let source = ProtocolError::ExpectedContinuation { opcode };
                return Err(protocol(expected, source));
            }
            (false, Opcode::Continuation) => {
                return Err(protocol(expected, ProtocolError::UnexpectedContinuation));
            }
            (false, found) if found != expected.opcode => {
                return Err(LoadError::Opcode {
                    message,
                    expected: expected.opcode,
                    found,
                });
            }
            (false, _) => {}
        }
        match (&mut self.inflate, rsv) {
            (Some(_), 0) if !self.in_message => return Err(LoadError::Uncompressed { message }),
            (Some(inflate), 4) if !self.in_message => inflate.begin_message(),
            (_, 0) => {}
            _ => return Err(LoadError::Reserved { message, rsv }),
        }
        self.in_message = true;
        let bytes = self.payload_bytes as u64 + header.payload_bytes;
        if self.inflate.is_none() && bytes > payload.len() as u64 {
            return Err(LoadError::Long {
                message,
                bytes,
                expected: payload.len() as u64,
            });
        }
        Ok(())
    }

    fn take_payload(&mut self, expected: &Expected<'_>, part: &[u8]) -> Result<(), LoadError> {
        match &mut self.inflate {
            None => compare(expected, &mut self.payload_bytes, part),
            Some(inflate) => inflate.take(expected, &mut self.payload_bytes, part),
        }
    }

    fn finish_frame(
        &mut self,
        expected: &Expected<'_>,
        header: &Header,
    ) -> Result<Progress, LoadError> {
        self.frame = None;
        let control = std::mem::take(&mut self.control);
        match header.opcode {
            Opcode::Close => {
                let close =
                    CloseFrame::decode(&control).map_err(|source| protocol(expected, source))?;
                return Ok(Progress::Closed(close.code.map(|code| code.as_u16())));
            }
            Opcode::Ping => return Ok(Progress::Ping(control)),
            Opcode::Pong => return Ok(Progress::Nothing),
            Opcode::Binary | Opcode::Continuation | Opcode::Text => {}
        }
        if !header.fin {
            return Ok(Progress::Payload(self.payload_bytes));
        }
        if self.inflate.is_some() {
            // RFC 7692 §7.2.2: the four bytes that the sender removed belong to the message.
            self.take_payload(expected, b"\x00\x00\xff\xff")?;
        }
        let bytes = std::mem::take(&mut self.payload_bytes) as u64;
        self.in_message = false;
        match expected.payload.map_or(0, <[u8]>::len) as u64 {
            payload_bytes if bytes < payload_bytes => Err(LoadError::Short {
                message: expected.message,
                bytes,
                expected: payload_bytes,
            }),
            _ => Ok(Progress::Message),
        }
    }
}

/// Decompresses the answers of a connection.
#[derive(Debug)]
struct Inflate {
    decompress: Decompress,
    deflate: Deflate,
    /// True if the message had a final block. Nothing after it is data (RFC 7692 §7.2.3.4).
    ended: bool,
    output: [u8; 16 << 10],
}

impl Inflate {
    fn new(deflate: Deflate) -> Self {
        Self {
            decompress: Decompress::new(false),
            deflate,
            ended: false,
            output: [0; 16 << 10],
        }
    }

    fn begin_message(&mut self) {
        if self.ended || self.deflate == Deflate::NoTakeover {
            self.decompress.reset(false);
            self.ended = false;
        }
    }

    fn take(
        &mut self,
        expected: &Expected<'_>,
        payload_bytes: &mut usize,
        input: &[u8],
    ) -> Result<(), LoadError> {
        let mut rest = input;
        while !self.ended {
            let (before_in, before_out) = (self.decompress.total_in(), self.decompress.total_out());
            let status = self
                .decompress
                .decompress(rest, &mut self.output, FlushDecompress::Sync)
                .map_err(|_| LoadError::Inflate {
                    message: expected.message,
                })?;
            rest = &rest[(self.decompress.total_in() - before_in) as usize..];
            let made = (self.decompress.total_out() - before_out) as usize;
            compare(expected, payload_bytes, &self.output[..made])?;
            self.ended = status == Status::StreamEnd;
            if rest.is_empty() && made < self.output.len() {
                break;
            }
        }
        Ok(())
    }
}

/// Compares part of a message's payload. `payload_bytes` bytes before it are known to be correct.
fn compare(
    expected: &Expected<'_>,
    payload_bytes: &mut usize,
    part: &[u8],
) -> Result<(), LoadError> {
    let message = expected.message;
    let payload = expected.payload.ok_or(LoadError::Unasked { message })?;
    let rest = &payload[*payload_bytes..];
    let same = super::common(part, rest);
    match (part.get(same), rest.get(same)) {
        (None, _) => {}
        (Some(_), None) => {
            return Err(LoadError::Long {
                message,
                bytes: (*payload_bytes + part.len()) as u64,
                expected: payload.len() as u64,
            });
        }
        (Some(&found), Some(&expected)) => {
            return Err(LoadError::Differs {
                message,
                byte: (*payload_bytes + same) as u64,
                expected,
                found,
            });
        }
    }
    *payload_bytes += part.len();
    Ok(())
}

fn protocol(expected: &Expected<'_>, source: ProtocolError) -> LoadError {
    LoadError::Protocol {
        message: expected.message,
        source,
    }
}
