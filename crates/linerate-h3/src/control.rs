//! The peer's control stream and its QPACK streams (RFC 9114 §6.2.1, §7.2; RFC 9204 §4.2).

use linerate_proto::Role;

use crate::{
    fault::{Code, Fault},
    frame::{CANCEL_PUSH, GOAWAY, Head, HeadReader, MAX_PUSH_ID, SETTINGS, unexpected},
    settings::{self, Settings},
    varint,
};

/// A message of the peer that we must act on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ControlEvent {
    /// The peer accepts no new requests.
    GoAway,
    Settings(Settings),
}

/// Reads a control stream.
#[derive(Debug)]
pub(crate) struct ControlReader {
    /// Our role.
    role: Role,
    has_settings: bool,
    head: HeadReader,
    frame: Option<Frame>,
    push_id_max: Option<u64>,
    goaway_id: Option<u64>,
}

/// A frame whose payload has not arrived completely.
#[derive(Debug)]
struct Frame {
    kind: u64,
    left: u64,
    /// The payload that has arrived, if the frame matters to us.
    payload: Option<Vec<u8>>,
}

impl ControlReader {
    pub(crate) fn new(role: Role) -> Self {
        Self {
            role,
            has_settings: false,
            head: HeadReader::default(),
            frame: None,
            push_id_max: None,
            goaway_id: None,
        }
    }

    /// Consumes `input` up to the end of the next message; returns `None` if all of it was consumed
    /// without one.
    ///
    /// # Errors
    /// Returns an error if the peer violates the protocol.
    pub(crate) fn handle_input(
        &mut self,
        input: &mut &[u8],
    ) -> Result<Option<ControlEvent>, Fault> {
        loop {
            let frame = match &mut self.frame {
                Some(frame) => frame,
                None => match self.head.take(input) {
                    Some(head) => {
                        let frame = self.begin(head)?;
                        self.frame.insert(frame)
                    }
                    None => return Ok(None),
                },
            };
            frame.take(input);
            if frame.left > 0 {
                return Ok(None);
            }
            if let Some(frame) = self.frame.take()
                && let Some(event) = self.finish(&frame)?
            {
                return Ok(Some(event));
            }
        }
    }

    /// Checks a frame header.
    fn begin(&mut self, head: Head) -> Result<Frame, Fault> {
        let is_unknown = head.is_unknown()?;
        if !self.has_settings && head.kind != SETTINGS {
            return Err(Fault::connection(
                Code::MISSING_SETTINGS,
                "control stream begins without settings",
            ));
        }
        let payload_bytes_max = match head.kind {
            SETTINGS if !self.has_settings => settings::BYTES_MAX as u64,
            CANCEL_PUSH | GOAWAY => 8,
            MAX_PUSH_ID if self.role == Role::Server => 8,
            _ if is_unknown => varint::MAX,
            _ => return Err(unexpected()),
        };
        if head.payload_bytes > payload_bytes_max {
            return Err(Fault::connection(Code::EXCESSIVE_LOAD, "frame too large"));
        }
        Ok(Frame {
            kind: head.kind,
            left: head.payload_bytes,
            payload: (!is_unknown).then(Vec::new),
        })
    }

    fn finish(&mut self, frame: &Frame) -> Result<Option<ControlEvent>, Fault> {
        let Some(payload) = &frame.payload else {
            return Ok(None);
        };
        if frame.kind == SETTINGS {
            self.has_settings = true;
            return Settings::decode(payload)
                .map(|settings| Some(ControlEvent::Settings(settings)));
        }
        let id = match varint::decode(payload) {
            Some((id, bytes)) if bytes == payload.len() => id,
            _ => return Err(Fault::connection(Code::FRAME_ERROR, "malformed frame")),
        };
        match frame.kind {
            GOAWAY => self.goaway(id).map(Some),
            MAX_PUSH_ID => self.allow_pushes(id).map(|()| None),
            // We never push anything.
            _ => Err(wrong_id()),
        }
    }

    /// Handles a GOAWAY frame.
    ///
    /// RFC 9114 §5.2: "An endpoint MAY send multiple GOAWAY frames indicating different
    /// identifiers, but the identifier in each frame MUST NOT be greater than the identifier in any
    /// previous frame".
    fn goaway(&mut self, id: u64) -> Result<ControlEvent, Fault> {
        let is_request = id.is_multiple_of(4);
        let is_greater = self.goaway_id.is_some_and(|before| id > before);
        if is_greater || self.role == Role::Client && !is_request {
            return Err(wrong_id());
        }
        self.goaway_id = Some(id);
        Ok(ControlEvent::GoAway)
    }

    /// Handles a MAX_PUSH_ID frame.
    ///
    /// §7.2.7: "A MAX_PUSH_ID frame cannot reduce the maximum push ID".
    fn allow_pushes(&mut self, id: u64) -> Result<(), Fault> {
        if self.push_id_max.is_some_and(|before| id < before) {
            return Err(wrong_id());
        }
        self.push_id_max = Some(id);
        Ok(())
    }
}

impl Frame {
    fn take(&mut self, input: &mut &[u8]) {
        let bytes = usize::try_from(self.left).map_or(input.len(), |left| left.min(input.len()));
        let (taken, rest) = input.split_at(bytes);
        *input = rest;
        self.left -= bytes as u64;
        if let Some(payload) = &mut self.payload {
            payload.extend_from_slice(taken);
        }
    }
}

const fn wrong_id() -> Fault {
    Fault::connection(Code::ID_ERROR, "invalid identifier")
}

/// Checks bytes of the peer's QPACK encoder stream (RFC 9204 §4.3). There is no dynamic table, so
/// the only legal instruction is to set its capacity to zero.
pub(crate) fn check_encoder(input: &[u8]) -> Result<(), Fault> {
    const CAPACITY_ZERO: u8 = 0x20;
    match input.iter().all(|byte| *byte == CAPACITY_ZERO) {
        true => Ok(()),
        false => Err(Fault::connection(
            Code::QPACK_ENCODER_STREAM_ERROR,
            "QPACK dynamic table not allowed",
        )),
    }
}

/// Checks the peer's QPACK decoder stream (RFC 9204 §4.4).
#[derive(Debug, Default)]
pub(crate) struct DecoderChecker {
    /// True if the last byte did not complete its instruction.
    is_inside: bool,
}

impl DecoderChecker {
    /// Checks bytes of the stream. Cancellations of streams are allowed and need no action.
    /// Acknowledgements are errors, because we never send anything that needs one.
    pub(crate) fn handle_input(&mut self, input: &[u8]) -> Result<(), Fault> {
        for byte in input {
            if self.is_inside {
                self.is_inside = byte & 0x80 != 0;
                continue;
            }
            if byte & 0xc0 != 0x40 {
                return Err(Fault::connection(
                    Code::QPACK_DECODER_STREAM_ERROR,
                    "unexpected QPACK acknowledgement",
                ));
            }
            self.is_inside = byte & 0x3f == 0x3f;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(role: Role, bytes: &[u8]) -> Result<Vec<ControlEvent>, Fault> {
        let whole = read_pieces(role, &[bytes]);
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(read_pieces(role, &single), whole);
        for cut in 0..bytes.len() {
            assert_eq!(read_pieces(role, &[&bytes[..cut], &bytes[cut..]]), whole);
        }
        whole
    }

    fn read_pieces(role: Role, pieces: &[&[u8]]) -> Result<Vec<ControlEvent>, Fault> {
        let mut reader = ControlReader::new(role);
        let mut events = Vec::new();
        for mut piece in pieces.iter().copied() {
            while let Some(next) = reader.handle_input(&mut piece)? {
                events.push(next);
            }
        }
        Ok(events)
    }

    #[test]
    fn settings_come_first_and_once() {
        let settings = ControlEvent::Settings(Settings {
            is_connect_protocol_enabled: true,
            field_section_bytes_max: None,
        });
        let events = read(Role::Client, b"\x04\x02\x08\x01\x21\x03abc\x07\x01\x04").unwrap();
        assert_eq!(events, [settings, ControlEvent::GoAway]);
        assert_eq!(
            read(Role::Client, b"\x04\x00").unwrap().len(),
            1,
            "settings may be empty"
        );
        let fault = read(Role::Server, b"\x21\x00\x04\x00").unwrap_err();
        assert_eq!(fault.code, Code::MISSING_SETTINGS);
        let fault = read(Role::Server, b"\x04\x00\x04\x00").unwrap_err();
        assert_eq!(fault.code, Code::FRAME_UNEXPECTED);
    }

    #[test]
    fn frames_that_do_not_belong_there_are_faults() {
        for (role, bytes, code) in [
            (
                Role::Server,
                &b"\x04\x00\x00\x00"[..],
                Code::FRAME_UNEXPECTED,
            ),
            (Role::Server, b"\x04\x00\x01\x00", Code::FRAME_UNEXPECTED),
            (Role::Server, b"\x04\x00\x05\x00", Code::FRAME_UNEXPECTED),
            (
                Role::Client,
                b"\x04\x00\x0d\x01\x00",
                Code::FRAME_UNEXPECTED,
            ),
            (Role::Client, b"\x04\x00\x08\x00", Code::FRAME_UNEXPECTED),
            (Role::Client, b"\x04\x00\x03\x01\x00", Code::ID_ERROR),
            (Role::Client, b"\x04\x00\x07\x01\x05", Code::ID_ERROR),
            (
                Role::Client,
                b"\x04\x00\x07\x01\x04\x07\x01\x08",
                Code::ID_ERROR,
            ),
            (
                Role::Server,
                b"\x04\x00\x0d\x01\x07\x0d\x01\x06",
                Code::ID_ERROR,
            ),
            (Role::Client, b"\x04\x00\x07\x02\x04\x04", Code::FRAME_ERROR),
            (Role::Client, b"\x04\x00\x07\x00", Code::FRAME_ERROR),
            (Role::Client, b"\x04\x50\x01", Code::EXCESSIVE_LOAD),
            (Role::Client, b"\x04\x00\x07\x09", Code::EXCESSIVE_LOAD),
        ] {
            assert_eq!(read(role, bytes).unwrap_err().code, code, "{bytes:?}");
        }
    }

    #[test]
    fn a_table_that_is_not_there_is_not_filled() {
        assert_eq!(check_encoder(b"\x20\x20"), Ok(()));
        for bytes in [
            &b"\x21"[..],
            b"\x3f\xe1\x1f",
            b"\xc0\x00",
            b"\x41a\x00",
            b"\x00",
        ] {
            let fault = check_encoder(bytes).unwrap_err();
            assert_eq!(fault.code, Code::QPACK_ENCODER_STREAM_ERROR);
        }
    }

    #[test]
    fn a_decoder_may_only_give_streams_up() {
        let mut checker = DecoderChecker::default();
        assert_eq!(checker.handle_input(b"\x40\x7f"), Ok(()));
        assert_eq!(checker.handle_input(b"\x80"), Ok(()));
        assert_eq!(checker.handle_input(b"\x01\x44"), Ok(()));
        for bytes in [b"\x80", b"\x01"] {
            let fault = DecoderChecker::default().handle_input(bytes).unwrap_err();
            assert_eq!(fault.code, Code::QPACK_DECODER_STREAM_ERROR);
        }
    }
}
