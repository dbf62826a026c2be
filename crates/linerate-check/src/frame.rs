//! Frames to send, valid or not, and the parser of what comes back (RFC 6455 §5.2).
//!
//! This shares no code with linerate's engine, so a defect in the engine cannot hide itself from
//! the checker.

/// The masking key of all frames. It is constant, so that an input can be sent again by hand.
const KEY: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// The maximum payload of a received frame, in bytes. A longer one ends the conversation.
const PAYLOAD_BYTES_MAX: u64 = 16 << 20;

/// The role of the endpoint under test, which decides what has to be masked (RFC 6455 §5.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// A client: frames to it are not masked.
    Client,
    /// A server: frames to it are masked.
    Server,
}

/// How the length of a payload is encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LengthForm {
    /// In as few bytes as possible, as the standard requires.
    Minimal,
    /// As 126, followed by two bytes.
    Bits16,
    /// As 127, followed by eight bytes.
    Bits64,
}

/// A frame to send, valid or invalid.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    first: u8,
    payload: Vec<u8>,
    form: LengthForm,
    claimed_bytes: Option<u64>,
    key: [u8; 4],
    masks_wrongly: bool,
}

impl Frame {
    /// Creates a valid frame with FIN set.
    pub(crate) fn new(opcode: u8, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            first: 0x80 | opcode,
            payload: payload.into(),
            form: LengthForm::Minimal,
            claimed_bytes: None,
            key: KEY,
            masks_wrongly: false,
        }
    }

    /// Clears FIN.
    #[must_use]
    pub(crate) fn unfinished(mut self) -> Self {
        self.first &= 0x7F;
        self
    }

    /// Sets these reserved bits: 4 is RSV1, 2 is RSV2, 1 is RSV3.
    #[must_use]
    pub(crate) fn with_rsv(mut self, bits: u8) -> Self {
        self.first |= bits << 4;
        self
    }

    /// Encodes the length in this form.
    #[must_use]
    pub(crate) fn with_form(mut self, form: LengthForm) -> Self {
        self.form = form;
        self
    }

    /// Puts a length into the header that differs from the payload's, in up to eight bytes.
    #[must_use]
    pub(crate) fn claiming(mut self, bytes: u64) -> Self {
        self.claimed_bytes = Some(bytes);
        self
    }

    /// Masks the frame if it must not be masked, and leaves it unmasked if it must be.
    #[must_use]
    pub(crate) fn with_wrong_mask(mut self) -> Self {
        self.masks_wrongly = true;
        self
    }

    /// Uses this masking key, if the frame is masked.
    #[must_use]
    pub(crate) fn with_key(mut self, key: [u8; 4]) -> Self {
        self.key = key;
        self
    }

    /// Appends the bytes of the frame, as sent to an endpoint of this role.
    pub(crate) fn encode(&self, to: Role, wire: &mut Vec<u8>) {
        let masked = (to == Role::Server) != self.masks_wrongly;
        wire.push(self.first);
        self.encode_length(if masked { 0x80 } else { 0 }, wire);
        if !masked {
            wire.extend(&self.payload);
            return;
        }
        wire.extend(self.key);
        let keys = self.key.iter().cycle();
        wire.extend(self.payload.iter().zip(keys).map(|(byte, key)| byte ^ key));
    }

    fn encode_length(&self, mask_bit: u8, wire: &mut Vec<u8>) {
        let bytes = self.claimed_bytes.unwrap_or(self.payload.len() as u64);
        match (self.form, bytes) {
            (LengthForm::Minimal, 0..=125) => wire.push(mask_bit | bytes as u8),
            (LengthForm::Minimal | LengthForm::Bits16, 0..=0xFFFF) => {
                wire.push(mask_bit | 126);
                wire.extend((bytes as u16).to_be_bytes());
            }
            _ => {
                wire.push(mask_bit | 127);
                wire.extend(bytes.to_be_bytes());
            }
        }
    }
}

/// A frame that came back, unmasked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ReceivedFrame {
    /// True if it is the last frame of its message.
    pub(crate) fin: bool,
    /// The reserved bits: 4 is RSV1, 2 is RSV2, 1 is RSV3.
    pub(crate) rsv: u8,
    /// The opcode, 0 to 15.
    pub(crate) opcode: u8,
    /// True if it was masked.
    pub(crate) masked: bool,
    /// True if its length was encoded in as few bytes as possible.
    pub(crate) minimal: bool,
    /// The unmasked payload.
    pub(crate) payload: Vec<u8>,
}

impl ReceivedFrame {
    /// Returns the code of a Close frame, if it has one.
    pub(crate) fn close_code(&self) -> Option<u16> {
        let code = self.payload.first_chunk::<2>()?;
        (self.opcode == 0x8).then_some(u16::from_be_bytes(*code))
    }
}

/// Removes the first frame from `bytes`. Returns `Ok(None)` if it is incomplete.
///
/// # Errors
/// Returns the claimed payload length if it is more than any valid answer could have.
pub(crate) fn take_frame(bytes: &mut Vec<u8>) -> Result<Option<ReceivedFrame>, u64> {
    let Some((header, minimal, payload_bytes)) = header(bytes) else {
        return Ok(None);
    };
    if payload_bytes > PAYLOAD_BYTES_MAX {
        return Err(payload_bytes);
    }
    let masked = bytes[1] & 0x80 != 0;
    let payload_at = header + if masked { 4 } else { 0 };
    let end = payload_at + payload_bytes as usize;
    if bytes.len() < end {
        return Ok(None);
    }
    let mut payload = bytes[payload_at..end].to_vec();
    if masked {
        let keys = bytes[header..payload_at].iter().cycle();
        payload
            .iter_mut()
            .zip(keys)
            .for_each(|(byte, key)| *byte ^= key);
    }
    let first = bytes[0];
    bytes.drain(..end);
    Ok(Some(ReceivedFrame {
        fin: first & 0x80 != 0,
        rsv: first >> 4 & 7,
        opcode: first & 0xF,
        masked,
        minimal,
        payload,
    }))
}

/// Returns the size of the header before the masking key, whether the length is minimally encoded,
/// and the payload length.
fn header(bytes: &[u8]) -> Option<(usize, bool, u64)> {
    match bytes.get(1)? & 0x7F {
        126 => {
            let length = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
            Some((4, length > 125, u64::from(length)))
        }
        127 => {
            let length = u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
            Some((10, length > 0xFFFF, length))
        }
        short => Some((2, true, u64::from(short))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(frame: &Frame, to: Role) -> Vec<u8> {
        let mut wire = Vec::new();
        frame.encode(to, &mut wire);
        wire
    }

    #[test]
    fn frames_for_servers_are_masked() {
        // The examples of RFC 6455 §5.7 have this key.
        let hello = Frame::new(0x1, "Hello");
        let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
        assert_eq!(wire(&hello, Role::Server), masked);
        assert_eq!(wire(&hello, Role::Client), b"\x81\x05Hello");
        let wrong = hello.with_wrong_mask();
        assert_eq!(wire(&wrong, Role::Server), b"\x81\x05Hello");
        assert_eq!(wire(&wrong, Role::Client), masked);
    }

    #[test]
    fn lengths_can_be_wrong_in_every_form() {
        let one = || Frame::new(0x2, [7]).with_wrong_mask();
        assert_eq!(
            wire(&one().with_form(LengthForm::Bits16), Role::Server),
            b"\x82\x7e\0\x01\x07"
        );
        assert_eq!(
            wire(&one().claiming(u64::MAX), Role::Server),
            b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff\x07"
        );
    }

    #[test]
    fn what_was_sent_is_read_however_it_is_cut() {
        for bytes in [0, 125, 126, 65_535, 65_536] {
            for to in [Role::Client, Role::Server] {
                let sent = wire(&Frame::new(0x2, vec![7; bytes]).with_rsv(4), to);
                let mut arrived = sent[..sent.len() - 1].to_vec();
                assert_eq!(take_frame(&mut arrived), Ok(None));
                arrived.push(sent[sent.len() - 1]);
                let frame = take_frame(&mut arrived).unwrap().unwrap();
                assert_eq!(frame.payload, vec![7; bytes]);
                assert_eq!((frame.rsv, frame.minimal), (4, true));
                assert!(arrived.is_empty());
            }
        }
    }

    #[test]
    fn an_answer_without_end_is_an_error() {
        let mut bytes = wire(&Frame::new(0x2, "").claiming(u64::MAX), Role::Client);
        assert_eq!(take_frame(&mut bytes), Err(u64::MAX));
    }
}
