//! Checking that bytes are frames as a server sends them; see [`Frames`](crate::Frames).

pub(crate) mod encoded;

use linerate_proto::{Header, Opcode, ProtocolError};

/// Why bytes are not valid [`Frames`](crate::Frames).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FramesError {
    /// There is a control frame; only the connection itself sends those.
    #[error("control frame at byte {at}")]
    Control {
        /// The byte offset at which the frame starts.
        at: usize,
    },
    /// A frame is a fragment or has reserved bits set.
    #[error("fragment or reserved bits at byte {at}")]
    Fragment {
        /// The byte offset at which the frame starts.
        at: usize,
    },
    /// A frame header is invalid.
    #[error("invalid frame header at byte {at}: {error}")]
    Header {
        /// The byte offset at which the frame starts.
        at: usize,
        /// What is wrong with the header.
        #[source]
        error: ProtocolError,
    },
    /// The last frame is incomplete.
    #[error("incomplete frame at byte {at}")]
    Incomplete {
        /// The byte offset at which the frame starts.
        at: usize,
    },
    /// A frame is masked, which frames from a server never are (RFC 6455 §5.1).
    #[error("masked frame at byte {at}")]
    Masked {
        /// The byte offset at which the frame starts.
        at: usize,
    },
    /// A text message is not valid UTF-8.
    #[error("text message at byte {at} is not UTF-8")]
    NotUtf8 {
        /// The byte offset at which the frame starts.
        at: usize,
    },
}

/// Checks that `bytes` are complete, unmasked messages, and returns their number.
fn check(bytes: &[u8]) -> Result<u64, FramesError> {
    let (mut at, mut messages) = (0, 0);
    while at < bytes.len() {
        let incomplete = FramesError::Incomplete { at };
        let (header, start) = Header::decode(&bytes[at..])
            .map_err(|error| FramesError::Header { at, error })?
            .ok_or(incomplete)?;
        if header.opcode.is_control() {
            return Err(FramesError::Control { at });
        }
        if !header.fin || header.rsv != 0 || header.opcode == Opcode::Continuation {
            return Err(FramesError::Fragment { at });
        }
        if header.mask.is_some() {
            return Err(FramesError::Masked { at });
        }
        let payload_bytes = usize::try_from(header.payload_bytes).map_err(|_| incomplete)?;
        let payload = bytes[at + start..].get(..payload_bytes).ok_or(incomplete)?;
        if header.opcode == Opcode::Text && std::str::from_utf8(payload).is_err() {
            return Err(FramesError::NotUtf8 { at });
        }
        at += start + payload_bytes;
        messages += 1;
    }
    Ok(messages)
}
