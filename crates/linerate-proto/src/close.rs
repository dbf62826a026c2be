//! The payloads of Close frames and other control frames (RFC 6455 §5.5).

use core::fmt;

use crate::{
    close_code::CloseCode,
    error::{ProtocolError, SendError},
};

/// The code and the reason of a Close frame; the reason borrows from the frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "RFC 6455 §5.5.1 has these two parts"
)]
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
