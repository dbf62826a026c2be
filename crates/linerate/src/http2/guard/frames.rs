//! What a client sends, frame by frame (RFC 9113 §3.4, §4, §5.1).

use h2::Reason;

use super::{
    ended::Ended,
    head::{CONTINUATION, DATA, HEAD_BYTES, HEADERS, Head, SETTINGS},
    settings::Settings,
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
    /// So many bytes that are not looked at.
    Rest(u32),
}

impl Place {
    const HEAD: Self = Self::Head {
        head: [0; HEAD_BYTES],
        bytes: 0,
    };
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            place: Place::Rest(PREFACE_BYTES),
            has_begun: false,
            block: None,
            ended: Ended::default(),
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

    /// Takes the next part of the input; returns how long that is.
    fn step(&mut self, input: &[u8]) -> Result<usize, Reason> {
        let (taken, left) = match &mut self.place {
            Place::Head { head, bytes } => {
                let taken = input.len().min(HEAD_BYTES - *bytes);
                head[*bytes..*bytes + taken].copy_from_slice(&input[..taken]);
                *bytes += taken;
                if *bytes == HEAD_BYTES {
                    let head = Head::decode(*head);
                    self.place = self.handle_head(head)?;
                }
                return Ok(taken);
            }
            Place::Settings { settings, left } => {
                let taken = part(input, *left);
                settings.handle_input(taken)?;
                (taken, left)
            }
            Place::Rest(left) => (part(input, *left), left),
        };
        *left -= taken.len() as u32;
        if *left == 0 {
            self.place = Place::HEAD;
        }
        Ok(taken.len())
    }

    /// Judges a frame by its head; returns what comes behind that.
    fn handle_head(&mut self, head: Head) -> Result<Place, Reason> {
        self.judge(&head)?;
        self.has_begun = true;
        self.block = head.leaves_block_open().then_some(head.stream);
        if head.ends_stream() {
            self.ended.insert(head.stream);
        }
        let left = head.payload_bytes;
        Ok(match head.kind {
            _ if left == 0 => Place::HEAD,
            SETTINGS => Place::Settings {
                settings: Settings::default(),
                left,
            },
            _ => Place::Rest(left),
        })
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

/// Returns as much of the input as belongs to a part of which so many bytes are left.
fn part(input: &[u8], left: u32) -> &[u8] {
    &input[..input.len().min(left as usize)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\xff\xff";
    const REQUEST: &[u8] = b"\0\0\x01\x01\x04\0\0\0\x01\x82";

    /// What becomes of this behind preface and settings, whichever way it is cut.
    fn judged(frames: &[&[u8]]) -> Result<(), Reason> {
        let whole = [PREFACE, SETTINGS, &frames.concat()].concat();
        let verdict = judged_in([&whole[..]]);
        assert_eq!(judged_in(whole.chunks(1)), verdict);
        for at in 0..=whole.len() {
            let (first, second) = whole.split_at(at);
            assert_eq!(judged_in([first, second]), verdict, "cut at {at}");
        }
        verdict
    }

    fn judged_in<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Reason> {
        let mut frames = Frames::default();
        pieces.into_iter().try_for_each(|piece| {
            let broken = frames.handle_input(piece);
            broken.map_err(|broken| broken.reason)
        })
    }

    #[test]
    fn frames_in_order_pass() {
        let data = b"\0\0\x05\0\0\0\0\0\x01\0\0\x09\x09\x09";
        let window = b"\0\0\x04\x08\0\0\0\0\x01\0\0\0\x01";
        let ping = b"\0\0\x08\x06\0\0\0\0\0linerate";
        let unknown = b"\0\0\x01\xb7\xff\0\0\0\x01a";
        assert_eq!(judged(&[REQUEST, data, window, ping, unknown]), Ok(()));
    }

    #[test]
    fn what_came_whole_before_a_fault_is_good() {
        let fault = b"\0\0\x07\x06\0\0\0\0\0";
        let input = [PREFACE, SETTINGS, REQUEST, fault].concat();
        let broken = Frames::default().handle_input(&input).unwrap_err();
        assert_eq!(broken.good_bytes, input.len() - fault.len());
        let mut frames = Frames::default();
        let (first, second) = input.split_at(input.len() - 1);
        assert_eq!(frames.handle_input(first), Ok(()));
        let broken = frames.handle_input(second).unwrap_err();
        assert_eq!(broken.good_bytes, 0);
    }

    #[test]
    fn s19_settings_come_first() {
        for first in [&b"\0\0\x08\x06\0\0\0\0\0"[..], b"\0\0\0\x04\x01\0\0\0\0"] {
            let input = [PREFACE, first].concat();
            let broken = Frames::default().handle_input(&input).unwrap_err();
            assert_eq!(broken.reason, Reason::PROTOCOL_ERROR);
            assert_eq!(broken.good_bytes, PREFACE.len());
        }
    }

    #[test]
    fn s20_a_window_beyond_the_most_is_an_error_of_flow_control() {
        let most = b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff";
        let over = b"\0\0\x0c\x04\0\0\0\0\0\0\x05\xff\xff\xff\xff\0\x04\x80\0\0\0";
        assert_eq!(judged(&[most]), Ok(()));
        assert_eq!(judged(&[over]), Err(Reason::FLOW_CONTROL_ERROR));
    }

    #[test]
    fn s03_nothing_comes_between_the_parts_of_a_field_block() {
        let begun = b"\0\0\x01\x01\0\0\0\0\x01\x82";
        let more = b"\0\0\0\x09\0\0\0\0\x01";
        let last = b"\0\0\0\x09\x04\0\0\0\x01";
        let ping = b"\0\0\x08\x06\0\0\0\0\0linerate";
        let other = b"\0\0\0\x09\x04\0\0\0\x03";
        assert_eq!(judged(&[begun, more, last, ping]), Ok(()));
        for frames in [
            &[&begun[..], ping][..],
            &[begun, other],
            &[begun, more, REQUEST],
            &[begun, last, last],
            &[last],
        ] {
            assert_eq!(judged(frames), Err(Reason::PROTOCOL_ERROR), "{frames:?}");
        }
    }

    #[test]
    fn s04_a_stream_that_was_ended_has_no_more_data_or_fields() {
        let data = b"\0\0\0\0\0\0\0\0\x01";
        let end = b"\0\0\0\0\x01\0\0\0\x01";
        let other = b"\0\0\0\0\0\0\0\0\x03";
        let reset = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";
        assert_eq!(judged(&[REQUEST, end, reset, other]), Ok(()));
        for behind in [&data[..], end, REQUEST] {
            let verdict = judged(&[REQUEST, end, reset, behind]);
            assert_eq!(verdict, Err(Reason::STREAM_CLOSED));
        }
        let whole = b"\0\0\x01\x01\x05\0\0\0\x01\x82";
        assert_eq!(judged(&[whole, data]), Err(Reason::STREAM_CLOSED));
        let begun = b"\0\0\x01\x01\x01\0\0\0\x01\x82";
        let last = b"\0\0\0\x09\x04\0\0\0\x01";
        assert_eq!(judged(&[begun, last]), Ok(()));
    }
}
