//! Assembles received frames into messages, and checks that the endpoint was allowed to send them.

use flate2::{Decompress, FlushDecompress, Status};

use crate::frame::{ReceivedFrame, Role};

/// The maximum size of an answer after inflating, in bytes.
const INFLATED_BYTES_MAX: usize = 16 << 20;

/// A message or a Pong that the endpoint sends back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The opcode: 1 for text, 2 for binary, 10 for a Pong.
    pub opcode: u8,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(opcode: u8, payload: impl Into<Vec<u8>>) -> Self {
        let payload = payload.into();
        Self { opcode, payload }
    }
}

/// Assembles the messages of one connection.
#[derive(Debug)]
pub(crate) struct Answers {
    from: Role,
    inflate: Option<Decompress>,
    begun: Option<PartialMessage>,
    closed: bool,
}

/// A message whose last fragment has not arrived.
#[derive(Debug)]
struct PartialMessage {
    opcode: u8,
    compressed: bool,
    payload: Vec<u8>,
}

/// What a received frame completes.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Completed {
    Answer(Answer),
    Close(Option<u16>),
    Nothing,
}

impl Answers {
    /// Creates an assembler for the frames of an endpoint with this role.
    pub(crate) fn new(from: Role, compressed: bool) -> Self {
        Self {
            from,
            inflate: compressed.then(|| Decompress::new(false)),
            begun: None,
            closed: false,
        }
    }

    /// Processes a frame, and returns what it completes.
    ///
    /// # Errors
    /// Describes the frame if no endpoint may send it.
    pub(crate) fn take(&mut self, frame: ReceivedFrame) -> Result<Completed, String> {
        self.judge_header(&frame)?;
        match frame.opcode {
            0x8 => self.take_close(&frame),
            0x9 => Ok(Completed::Nothing),
            0xA => Ok(Completed::Answer(Answer {
                opcode: 0xA,
                payload: frame.payload,
            })),
            0x0..=0x2 => self.take_data(frame),
            opcode => Err(format!("a frame with the reserved opcode {opcode:#x}")),
        }
    }

    fn judge_header(&self, frame: &ReceivedFrame) -> Result<(), String> {
        if self.closed {
            return Err(format!(
                "a frame with opcode {:#x} after its Close frame",
                frame.opcode
            ));
        }
        if frame.masked != (self.from == Role::Client) {
            let what = if frame.masked {
                "a masked frame"
            } else {
                "a frame without a mask"
            };
            return Err(what.into());
        }
        if !frame.minimal {
            return Err("a frame whose length is not minimally encoded".into());
        }
        let compresses = self.inflate.is_some() && matches!(frame.opcode, 1 | 2);
        if frame.rsv & if compresses { 3 } else { 7 } != 0 {
            return Err(format!("a frame with reserved bits {:03b}", frame.rsv));
        }
        if frame.opcode >= 8 && (!frame.fin || frame.payload.len() > 125) {
            let bytes = frame.payload.len();
            return Err(format!(
                "a control frame of {bytes} bytes, FIN {}",
                frame.fin
            ));
        }
        Ok(())
    }

    fn take_close(&mut self, frame: &ReceivedFrame) -> Result<Completed, String> {
        self.closed = true;
        let code = frame.close_code();
        if code.is_none() && !frame.payload.is_empty() {
            return Err("a Close frame of one byte".into());
        }
        if let Some(code) = code
            && !may_be_sent(code)
        {
            return Err(format!(
                "a Close frame with the code {code}, which must not be sent"
            ));
        }
        let reason = frame.payload.get(2..).unwrap_or_default();
        if std::str::from_utf8(reason).is_err() {
            return Err("a Close frame whose reason is not UTF-8".into());
        }
        Ok(Completed::Close(code))
    }

    fn take_data(&mut self, frame: ReceivedFrame) -> Result<Completed, String> {
        let begun = match (self.begun.take(), frame.opcode) {
            (Some(mut begun), 0) => {
                begun.payload.extend(frame.payload);
                begun
            }
            (None, 0) => return Err("a continuation frame with no message to continue".into()),
            (Some(_), _) => return Err("a message inside another".into()),
            (None, opcode) => PartialMessage {
                opcode,
                compressed: frame.rsv == 4,
                payload: frame.payload,
            },
        };
        if !frame.fin {
            self.begun = Some(begun);
            return Ok(Completed::Nothing);
        }
        let payload = match (&mut self.inflate, begun.compressed) {
            (Some(inflate), true) => inflated(inflate, begun.payload)?,
            _ => begun.payload,
        };
        if begun.opcode == 1 && std::str::from_utf8(&payload).is_err() {
            return Err("a text message that is not UTF-8".into());
        }
        let opcode = begun.opcode;
        Ok(Completed::Answer(Answer { opcode, payload }))
    }
}

/// Returns whether a Close frame may carry this code (RFC 6455 §7.4 and IANA's registry). The
/// standard does not mention codes from 5000 on.
pub(crate) fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..)
}

/// Inflates a message (RFC 7692 §7.2.2).
fn inflated(inflate: &mut Decompress, mut compressed: Vec<u8>) -> Result<Vec<u8>, String> {
    compressed.extend([0, 0, 0xFF, 0xFF]);
    let mut plain = Vec::with_capacity(4 << 10);
    let start = inflate.total_in();
    loop {
        let taken = (inflate.total_in() - start) as usize;
        let before = plain.len();
        plain.reserve(4 << 10);
        let result =
            inflate.decompress_vec(&compressed[taken..], &mut plain, FlushDecompress::Sync);
        let status =
            result.map_err(|error| format!("a message that cannot be inflated: {error}"))?;
        if plain.len() > INFLATED_BYTES_MAX {
            return Err(format!(
                "a message that inflates to more than {INFLATED_BYTES_MAX} bytes"
            ));
        }
        if status == Status::StreamEnd {
            // Nothing after a final block refers to the data before it.
            inflate.reset(false);
            return Ok(plain);
        }
        let all_taken = (inflate.total_in() - start) as usize == compressed.len();
        if all_taken && (plain.len() < plain.capacity() || plain.len() == before) {
            return Ok(plain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(opcode: u8, payload: &[u8]) -> ReceivedFrame {
        ReceivedFrame {
            fin: true,
            rsv: 0,
            opcode,
            masked: false,
            minimal: true,
            payload: payload.into(),
        }
    }

    fn fault(frame: ReceivedFrame) -> String {
        Answers::new(Role::Server, false).take(frame).unwrap_err()
    }

    #[test]
    fn fragments_are_one_answer() {
        let mut answers = Answers::new(Role::Server, false);
        let mut first = frame(0x1, b"Sp");
        first.fin = false;
        assert_eq!(answers.take(first), Ok(Completed::Nothing));
        let pong = answers.take(frame(0xA, b"?")).unwrap();
        assert!(matches!(
            pong,
            Completed::Answer(Answer { opcode: 0xA, .. })
        ));
        let whole = Answer {
            opcode: 0x1,
            payload: b"Spam".to_vec(),
        };
        assert_eq!(
            answers.take(frame(0x0, b"am")),
            Ok(Completed::Answer(whole))
        );
    }

    #[test]
    fn answers_that_break_a_rule_are_named() {
        let mut masked = frame(0x1, b"");
        masked.masked = true;
        assert_eq!(fault(masked), "a masked frame");
        let mut reserved = frame(0x1, b"");
        reserved.rsv = 4;
        assert!(fault(reserved).contains("reserved bits 100"));
        assert!(fault(frame(0xA, &[0; 126])).contains("126 bytes"));
        assert!(fault(frame(0x8, &1005_u16.to_be_bytes())).contains("1005"));
        assert!(fault(frame(0x8, b"\x03")).contains("one byte"));
        assert!(fault(frame(0x8, b"\x03\xe8\xff")).contains("UTF-8"));
        assert!(fault(frame(0x1, b"\xff")).contains("UTF-8"));
        assert!(fault(frame(0x0, b"")).contains("no message"));
        assert!(fault(frame(0x3, b"")).contains("0x3"));
        let mut answers = Answers::new(Role::Server, false);
        answers.take(frame(0x8, b"")).unwrap();
        assert!(answers.take(frame(0x8, b"")).unwrap_err().contains("after"));
    }

    #[test]
    fn compressed_messages_are_inflated_with_what_came_before() {
        // The examples of RFC 7692 §7.2.3.1 and §7.2.3.2.
        let mut answers = Answers::new(Role::Server, true);
        for wire in [
            &b"\xf2\x48\xcd\xc9\xc9\x07\x00"[..],
            b"\xf2\x00\x11\x00\x00",
        ] {
            let mut hello = frame(0x1, wire);
            hello.rsv = 4;
            let Ok(Completed::Answer(answer)) = answers.take(hello) else {
                panic!("an answer");
            };
            assert_eq!(answer.payload, b"Hello");
        }
    }
}
