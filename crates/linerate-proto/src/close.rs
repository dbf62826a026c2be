//! Close codes and the payload of Close frames (RFC 6455 §5.5.1, §7.4).

use core::fmt;

use crate::error::{ProtocolError, SendError};

/// The status code of a Close frame (RFC 6455 §7.4).
///
/// Holds only codes that may be sent, which excludes 1005, 1006 and 1015 (§7.4.1).
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CloseCode(u16);

impl CloseCode {
    /// 1000: the connection has fulfilled its purpose.
    pub const NORMAL: Self = Self(1000);
    /// 1001: the endpoint is going away (a server shuts down, the user leaves a page).
    pub const GOING_AWAY: Self = Self(1001);
    /// 1002: the peer violated the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// 1003: the endpoint received a kind of data that it does not accept.
    pub const UNSUPPORTED_DATA: Self = Self(1003);
    /// 1007: the data is not consistent with its type, such as text that is not UTF-8.
    pub const INVALID_PAYLOAD: Self = Self(1007);
    /// 1008: a message violates the endpoint's policy.
    pub const POLICY_VIOLATION: Self = Self(1008);
    /// 1009: a message is too big to process.
    pub const MESSAGE_TOO_BIG: Self = Self(1009);
    /// 1010: an extension that the client requires was not negotiated.
    pub const MANDATORY_EXTENSION: Self = Self(1010);
    /// 1011: the endpoint encountered an unexpected condition.
    pub const INTERNAL_ERROR: Self = Self(1011);
    /// 1012: the service is restarting (IANA registry).
    pub const SERVICE_RESTART: Self = Self(1012);
    /// 1013: try again later (IANA registry).
    pub const TRY_AGAIN_LATER: Self = Self(1013);

    /// Returns the code if it may be sent in a Close frame, `None` otherwise.
    ///
    /// The codes defined by RFC 6455 §7.4.1 and the IANA registry (1000–1003, 1007–1014) and those
    /// for libraries and applications (3000–4999, §7.4.2) are allowed.
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(code)),
            _ => None,
        }
    }

    /// Returns the code as a number.
    pub const fn as_u16(self) -> u16 {
        self.0
    }
}

impl fmt::Debug for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CloseCode({})", self.0)
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The code and the reason of a Close frame; the reason borrows from the frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CloseFrame<'a> {
    /// The status code; `None` if the frame has no payload (locally reported as 1005).
    pub code: Option<CloseCode>,
    /// The reason, at most 123 bytes. The peer controls this text.
    pub reason: &'a str,
}

impl<'a> CloseFrame<'a> {
    /// The maximum length of a reason in bytes: the 125 of a control frame less the code (§5.5.1).
    pub const REASON_BYTES_MAX: usize = 123;

    /// Parses the unmasked payload of a Close frame.
    ///
    /// # Errors
    /// Fails if the payload has exactly one byte, the code must not be sent, or the reason is not
    /// UTF-8.
    pub fn decode(payload: &'a [u8]) -> Result<Self, ProtocolError> {
        match payload {
            [] => Ok(Self {
                code: None,
                reason: "",
            }),
            [_] => Err(ProtocolError::CloseTooShort),
            [high, low, reason @ ..] => {
                let code = u16::from_be_bytes([*high, *low]);
                let known = CloseCode::new(code).ok_or(ProtocolError::CloseCode { code })?;
                let reason = linerate_simd::utf8::validate(reason).map_err(|error| {
                    ProtocolError::InvalidUtf8 {
                        offset: error.valid_up_to() as u64,
                    }
                })?;
                Ok(Self {
                    code: Some(known),
                    reason,
                })
            }
        }
    }
}

/// The payload of a control frame: at most 125 bytes, stored inline (RFC 6455 §5.5).
#[derive(Clone, Copy)]
pub(crate) struct ControlPayload {
    bytes: [u8; 125],
    len: u8,
}

impl ControlPayload {
    pub(crate) const BYTES_MAX: usize = 125;

    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; 125],
            len: 0,
        }
    }

    /// Builds the payload of a Close frame.
    pub(crate) fn close(code: Option<CloseCode>, reason: &str) -> Result<Self, SendError> {
        let mut payload = Self::new();
        if let Some(code) = code {
            payload.extend(&code.as_u16().to_be_bytes());
        }
        if reason.len() > CloseFrame::REASON_BYTES_MAX {
            return Err(SendError::CloseReasonTooLong {
                bytes: reason.len(),
            });
        }
        payload.extend(reason.as_bytes());
        Ok(payload)
    }

    /// Replaces the content; `bytes` must fit.
    pub(crate) fn set(&mut self, bytes: &[u8]) {
        self.len = 0;
        self.extend(bytes);
    }

    /// Appends `bytes`, which must fit.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let start = self.len as usize;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u8;
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

impl fmt::Debug for ControlPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ControlPayload({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a table, independently of the `match` above.
    #[test]
    fn close_codes_equal_the_registry() {
        let mut allowed = [false; 65_536];
        for code in [
            1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014,
        ] {
            allowed[code] = true;
        }
        allowed[3000..5000].fill(true);
        for code in 0..=u16::MAX {
            assert_eq!(
                CloseCode::new(code).is_some(),
                allowed[code as usize],
                "{code}"
            );
        }
    }

    #[test]
    fn decodes_code_and_reason() {
        assert_eq!(
            CloseFrame::decode(b""),
            Ok(CloseFrame {
                code: None,
                reason: ""
            })
        );
        assert_eq!(
            CloseFrame::decode(b"\x03\xe8bye"),
            Ok(CloseFrame {
                code: Some(CloseCode::NORMAL),
                reason: "bye"
            })
        );
        assert_eq!(
            CloseFrame::decode(b"\x03"),
            Err(ProtocolError::CloseTooShort)
        );
        assert_eq!(
            CloseFrame::decode(b"\x03\xed"),
            Err(ProtocolError::CloseCode { code: 1005 })
        );
        assert_eq!(
            CloseFrame::decode(b"\x03\xe8ab\xff"),
            Err(ProtocolError::InvalidUtf8 { offset: 2 })
        );
    }

    #[test]
    fn a_reason_of_123_bytes_fits_and_124_do_not() {
        let reason = [b'x'; 124];
        let text = |n| core::str::from_utf8(&reason[..n]).unwrap();
        let payload = ControlPayload::close(Some(CloseCode::NORMAL), text(123)).unwrap();
        assert_eq!(payload.as_slice().len(), 125);
        assert!(matches!(
            ControlPayload::close(Some(CloseCode::NORMAL), text(124)),
            Err(SendError::CloseReasonTooLong { bytes: 124 })
        ));
    }
}
