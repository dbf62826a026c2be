//! HTTP/2 frames (RFC 9113 §4.1, §6).

pub(crate) const DATA: u8 = 0x0;
pub(crate) const HEADERS: u8 = 0x1;
pub(crate) const PRIORITY: u8 = 0x2;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const SETTINGS: u8 = 0x4;
pub(crate) const PUSH_PROMISE: u8 = 0x5;
pub(crate) const PING: u8 = 0x6;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const WINDOW_UPDATE: u8 = 0x8;
pub(crate) const CONTINUATION: u8 = 0x9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const PRIORITIZED: u8 = 0x20;

pub(crate) const NO_ERROR: u32 = 0x0;
pub(crate) const PROTOCOL_ERROR: u32 = 0x1;
pub(crate) const FLOW_CONTROL_ERROR: u32 = 0x3;
pub(crate) const STREAM_CLOSED: u32 = 0x5;
pub(crate) const FRAME_SIZE_ERROR: u32 = 0x6;
pub(crate) const CANCEL: u32 = 0x8;
pub(crate) const COMPRESSION_ERROR: u32 = 0x9;

pub(crate) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(crate) const ENABLE_PUSH: u16 = 0x2;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(crate) const MAX_FRAME_SIZE: u16 = 0x5;
/// The setting with which a server accepts WebSockets (RFC 8441 §3).
pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;

/// A frame that came back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// Removes the first frame from `bytes`. Returns `Ok(None)` if it is incomplete.
    ///
    /// # Errors
    /// Returns the claimed payload length if it is more than `bytes_max`.
    pub(crate) fn take(bytes: &mut Vec<u8>, bytes_max: usize) -> Result<Option<Self>, usize> {
        let Some(head) = bytes.first_chunk::<9>() else {
            return Ok(None);
        };
        let [high, middle, low, kind, flags, stream @ ..] = *head;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if length > bytes_max {
            return Err(length);
        }
        if bytes.len() < 9 + length {
            return Ok(None);
        }
        let payload = bytes[9..9 + length].to_vec();
        bytes.drain(..9 + length);
        Ok(Some(Self {
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7FFF_FFFF,
            payload,
        }))
    }

    /// Returns whether a flag is set.
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the four bytes of the payload at `place` as a number.
    pub(crate) fn number_at(&self, place: usize) -> Option<u32> {
        let bytes = self.payload.get(place..)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes))
    }

    /// Returns the payload without padding and priority, or `None` if the payload is shorter than
    /// its flags and padding length require.
    pub(crate) fn content(&self) -> Option<&[u8]> {
        let mut content = &*self.payload;
        let mut padding = 0;
        if self.has(PADDED) {
            let (first, rest) = content.split_first()?;
            (padding, content) = (usize::from(*first), rest);
        }
        if self.kind == HEADERS && self.has(PRIORITIZED) {
            content = content.get(5..)?;
        }
        content.get(..content.len().checked_sub(padding)?)
    }
}

/// Returns the bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    claiming(payload.len(), kind, flags, stream, payload)
}

/// Returns the bytes of a frame whose header claims a payload of `length` bytes.
pub(crate) fn claiming(
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
    payload: impl AsRef<[u8]>,
) -> Vec<u8> {
    let mut bytes = (length as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload.as_ref());
    bytes
}

/// Returns the bytes of a SETTINGS frame.
pub(crate) fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (name, value) in settings {
        payload.extend(name.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, payload)
}

/// Returns the name of an error code (RFC 9113 §7).
pub(crate) fn error_name(code: u32) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    let name = NAMES.get(code as usize).map(|name| (*name).to_owned());
    name.unwrap_or_else(|| format!("error {code:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_read_however_it_is_cut() {
        let sent = frame(DATA, END_STREAM, 3, b"Spam");
        assert_eq!(sent, b"\0\0\x04\0\x01\0\0\0\x03Spam");
        for cut in 0..sent.len() {
            let mut arrived = sent[..cut].to_vec();
            assert_eq!(Frame::take(&mut arrived, 4), Ok(None));
            arrived.extend(&sent[cut..]);
            let frame = Frame::take(&mut arrived, 4).unwrap().unwrap();
            assert_eq!((frame.stream, &*frame.payload), (3, &b"Spam"[..]));
        }
        assert_eq!(Frame::take(&mut sent.clone(), 3), Err(4));
    }

    #[test]
    fn padding_and_priority_are_no_content() {
        let mut bytes = frame(
            HEADERS,
            PADDED | PRIORITIZED,
            1,
            b"\x02\0\0\0\0\x10field\0\0",
        );
        let frame = Frame::take(&mut bytes, 64).unwrap().unwrap();
        assert_eq!(frame.content(), Some(&b"field"[..]));
        let wrong = Frame {
            payload: b"\x03ab".to_vec(),
            kind: DATA,
            ..frame
        };
        assert_eq!(wrong.content(), None);
    }
}
