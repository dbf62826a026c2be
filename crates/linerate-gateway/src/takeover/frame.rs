//! What precedes each message: its version, kind, number of descriptors, and length.

use thiserror::Error;

/// The oldest and newest version of the protocol that this program has.
pub(super) const PROTOCOL: (u16, u16) = (1, 1);

/// Size of a header, in bytes: two letters, the version (2), the kind (1), the number of
/// descriptors (1) and the length of the payload (4), big-endian.
pub(super) const HEADER_BYTES: usize = 10;
/// Maximum size of the payload of a message, in bytes.
pub(super) const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// Maximum number of descriptors of a message. Linux sends no more at a time (`SCM_MAX_FD`).
pub(super) const DESCRIPTORS_MAX: usize = 253;

/// The first bytes of a header, which other protocols do not begin with.
const MAGIC: [u8; 2] = *b"LT";

/// The header of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    /// The version of the protocol in which the message is written.
    pub(super) version: u16,
    /// The kind of the message.
    pub(super) kind: u8,
    /// The number of descriptors that come with the first byte of the message.
    pub(super) descriptors: usize,
    /// The length of the payload.
    pub(super) payload_bytes: usize,
}

/// The bytes are not the header of a message.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub(crate) enum FrameError {
    /// The first bytes are different.
    #[error("not a takeover message (it begins with {found:02x?}); is the peer linerate?")]
    Magic {
        /// The bytes found.
        found: [u8; 2],
    },
    /// The payload is too long.
    #[error("message of {bytes} bytes exceeds the limit of {PAYLOAD_BYTES_MAX}")]
    TooLong {
        /// The length.
        bytes: u32,
    },
    /// There are too many descriptors.
    #[error("message with {descriptors} descriptors exceeds the limit of {DESCRIPTORS_MAX}")]
    TooManyDescriptors {
        /// The number of descriptors.
        descriptors: u8,
    },
}

impl Header {
    /// Reads a header.
    pub(super) fn parse(bytes: [u8; HEADER_BYTES]) -> Result<Self, FrameError> {
        let [m0, m1, v0, v1, kind, descriptors, l0, l1, l2, l3] = bytes;
        if [m0, m1] != MAGIC {
            return Err(FrameError::Magic { found: [m0, m1] });
        }
        if usize::from(descriptors) > DESCRIPTORS_MAX {
            return Err(FrameError::TooManyDescriptors { descriptors });
        }
        let length = u32::from_be_bytes([l0, l1, l2, l3]);
        let payload_bytes = usize::try_from(length).unwrap_or(usize::MAX);
        if payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(FrameError::TooLong { bytes: length });
        }
        Ok(Self {
            version: u16::from_be_bytes([v0, v1]),
            kind,
            descriptors: usize::from(descriptors),
            payload_bytes,
        })
    }

    /// Writes a header.
    ///
    /// # Panics
    /// Panics if the message exceeds a limit.
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        assert!(
            self.payload_bytes <= PAYLOAD_BYTES_MAX,
            "the message is split"
        );
        assert!(self.descriptors <= DESCRIPTORS_MAX, "the message is split");
        let [v0, v1] = self.version.to_be_bytes();
        let [l0, l1, l2, l3] = (self.payload_bytes as u32).to_be_bytes();
        let [m0, m1] = MAGIC;
        [
            m0,
            m1,
            v0,
            v1,
            self.kind,
            self.descriptors as u8,
            l0,
            l1,
            l2,
            l3,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{FrameError, Header, PAYLOAD_BYTES_MAX};

    #[test]
    fn headers_are_read_as_they_were_written_up_to_the_limits() {
        let header = Header {
            version: 1,
            kind: 4,
            descriptors: 253,
            payload_bytes: PAYLOAD_BYTES_MAX,
        };
        let bytes = header.to_bytes();
        assert_eq!(&bytes, b"LT\0\x01\x04\xfd\x01\0\0\0");
        assert_eq!(Header::parse(bytes), Ok(header));

        let parse = |at: usize, byte: u8| {
            let mut bytes = bytes;
            bytes[at] = byte;
            Header::parse(bytes).unwrap_err()
        };
        assert_eq!(parse(9, 1), FrameError::TooLong { bytes: 0x0100_0001 });
        let descriptors = 254;
        assert_eq!(
            parse(5, 254),
            FrameError::TooManyDescriptors { descriptors }
        );
        assert_eq!(parse(0, b'G'), FrameError::Magic { found: *b"GT" });
    }
}
