//! Inspects the first message of a TLS client before the TLS library sees it (RFC 8446 §4.1.2,
//! §5.1).
//!
//! For a message that cannot be a ClientHello, or that offers only prohibited versions, the
//! standards require specific alerts, which rustls does not always send: see [`HelloError`]. The
//! inspected bytes are passed on unchanged; the TLS library checks everything else.

#[cfg(test)]
mod tests;

/// Record types (§5.1).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// The type of a handshake message (§4).
const CLIENT_HELLO: u8 = 1;

/// TLS 1.2; newer versions also put this number in the version field of their hello (§4.1.2).
const TLS12: u16 = 0x0303;

/// The extension that lists versions (§4.2.1).
const SUPPORTED_VERSIONS: u16 = 43;

const RECORD_HEADER_BYTES: usize = 5;
const MESSAGE_HEADER_BYTES: usize = 4;

/// Why a TLS connection must be closed during the client's first message.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// The peer sent an alert instead of a hello, which ends the connection (§6).
    #[error("TLS alert instead of a ClientHello")]
    Alerted,
    /// A record of another type arrived between the parts of the hello (§5.1).
    #[error("TLS record of type {record_type} inside a ClientHello")]
    Interrupted {
        /// The type of that record.
        record_type: u8,
    },
    /// The length of the hello exceeds the limit.
    #[error("TLS ClientHello of {bytes} bytes exceeds the limit of {bytes_max}")]
    TooLong {
        /// The length in the header of the message, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// The client offers only prohibited versions (RFC 7568, RFC 8996).
    #[error("TLS ClientHello offers no version newer than {version:#06x}")]
    Version {
        /// The newest of them, as encoded in the hello.
        version: u16,
    },
}

impl HelloError {
    /// Returns the alert to send (§6.2); `None` if the peer has already ended the connection.
    pub const fn alert(&self) -> Option<u8> {
        match self {
            Self::Alerted => None,
            Self::Interrupted { .. } => Some(10),
            Self::TooLong { .. } => Some(50),
            Self::Version { .. } => Some(70),
        }
    }

    /// Returns the record to send before closing the connection; `None` if none is to be sent.
    pub const fn record(&self) -> Option<[u8; 7]> {
        match self.alert() {
            Some(alert) => Some([ALERT, 3, 3, 0, 2, 2, alert]),
            None => None,
        }
    }
}

/// Inspects the bytes of a TLS client up to the end of its hello.
///
/// ```
/// use linerate_tls::{HelloError, HelloReader};
///
/// let mut reader = HelloReader::new();
/// let close_notify = b"\x15\x03\x03\x00\x02\x01\x00";
/// assert_eq!(reader.handle_input(close_notify), Err(HelloError::Alerted));
/// ```
#[derive(Debug, Default)]
pub struct HelloReader {
    header: [u8; RECORD_HEADER_BYTES],
    header_len: usize,
    /// Bytes of the record that have not arrived yet.
    record_left: usize,
    /// The start of the message: up to its version, or up to its end if that version is old.
    message: Vec<u8>,
    /// Bytes of the message that have not arrived yet, once its start is known.
    skipping: Option<usize>,
}

impl HelloReader {
    /// The maximum length of a hello in bytes, the same as in rustls.
    pub const BYTES_MAX: usize = 0xFFFF;

    /// Creates a reader for a connection from which nothing has been read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the bytes of a read; returns `true` once there is nothing more to inspect.
    ///
    /// That is the case if the hello is complete, or if the bytes are not a hello, which the TLS
    /// library then reports.
    ///
    /// # Errors
    /// Fails if the connection must be closed, after sending [`HelloError::record`].
    pub fn handle_input(&mut self, mut input: &[u8]) -> Result<bool, HelloError> {
        while let Some((&byte, rest)) = input.split_first() {
            if self.record_left == 0 {
                input = rest;
                if self.take_header_byte(byte)? {
                    return Ok(true);
                }
                continue;
            }
            let here = self.record_left.min(input.len());
            let (taken, is_over) = self.take_message(&input[..here])?;
            if is_over {
                return Ok(true);
            }
            self.record_left -= taken;
            input = &input[taken..];
        }
        Ok(false)
    }

    /// Returns how many bytes of memory are allocated, in addition to the reader itself.
    #[cfg(fuzzing)]
    pub fn kept_bytes(&self) -> usize {
        self.message.capacity()
    }

    /// Takes a byte of a record's header; returns `true` if the record is not a handshake record.
    fn take_header_byte(&mut self, byte: u8) -> Result<bool, HelloError> {
        self.header[self.header_len] = byte;
        self.header_len += 1;
        if self.header_len < RECORD_HEADER_BYTES {
            return Ok(false);
        }
        self.header_len = 0;
        let [kind, _, _, high, low] = self.header;
        self.record_left = usize::from(u16::from_be_bytes([high, low]));
        match kind {
            HANDSHAKE => Ok(false),
            ALERT => Err(HelloError::Alerted),
            _ if self.message.is_empty() => Ok(true),
            record_type => Err(HelloError::Interrupted { record_type }),
        }
    }

    /// Takes some bytes of the message; returns how many, and whether the rest can be ignored.
    fn take_message(&mut self, bytes: &[u8]) -> Result<(usize, bool), HelloError> {
        if let Some(left) = &mut self.skipping {
            let taken = bytes.len().min(*left);
            *left -= taken;
            return Ok((taken, *left == 0));
        }
        let wanted = match self.announced_bytes() {
            None => MESSAGE_HEADER_BYTES,
            Some(_) if self.message.len() < VERSION_END => VERSION_END,
            Some(bytes) => MESSAGE_HEADER_BYTES + bytes,
        };
        let taken = bytes.len().min(wanted - self.message.len());
        self.message.extend_from_slice(&bytes[..taken]);
        if self.message.len() < wanted {
            return Ok((taken, false));
        }
        Ok((taken, self.judge()?))
    }

    /// Checks the part of the message that is available; returns `true` if the rest can be ignored.
    fn judge(&mut self) -> Result<bool, HelloError> {
        let [kind, ..] = self.message[..] else {
            return Ok(false);
        };
        let announced = self.announced_bytes().unwrap_or_default();
        if kind != CLIENT_HELLO {
            return Ok(true);
        }
        if announced > Self::BYTES_MAX {
            return Err(HelloError::TooLong {
                bytes: announced,
                bytes_max: Self::BYTES_MAX,
            });
        }
        let Some(version) = self.message.get(MESSAGE_HEADER_BYTES..VERSION_END) else {
            // The message is too short for a version, or the version has not arrived yet.
            return Ok(announced < VERSION_END - MESSAGE_HEADER_BYTES);
        };
        let version = u16::from_be_bytes([version[0], version[1]]);
        let left = MESSAGE_HEADER_BYTES + announced - self.message.len();
        if version >= TLS12 {
            self.skipping = Some(left);
            return Ok(left == 0);
        }
        // §4.2.1: if the extension that lists versions is present, only these versions count.
        if left == 0 && lists_versions(&self.message[VERSION_END..]) == Some(false) {
            return Err(HelloError::Version { version });
        }
        Ok(left == 0)
    }

    /// Returns the length of the message without its header, in bytes.
    fn announced_bytes(&self) -> Option<usize> {
        let &[_, high, middle, low] = self.message.first_chunk()?;
        Some(u32::from_be_bytes([0, high, middle, low]) as usize)
    }
}

/// Where the version of a hello ends.
const VERSION_END: usize = MESSAGE_HEADER_BYTES + 2;

/// Returns whether a hello has the extension that lists versions; `None` if it is malformed.
///
/// `hello` is the part after the version field.
fn lists_versions(hello: &[u8]) -> Option<bool> {
    const RANDOM_BYTES: usize = 32;
    let hello = hello.get(RANDOM_BYTES..)?;
    let (_session, hello) = split_vector::<1>(hello)?;
    let (_suites, hello) = split_vector::<2>(hello)?;
    let (_compressions, hello) = split_vector::<1>(hello)?;
    if hello.is_empty() {
        return Some(false);
    }
    let (mut extensions, _) = split_vector::<2>(hello)?;
    while let Some((kind, rest)) = extensions.split_first_chunk() {
        if u16::from_be_bytes(*kind) == SUPPORTED_VERSIONS {
            return Some(true);
        }
        (_, extensions) = split_vector::<2>(rest)?;
    }
    Some(false)
}

/// Splits off a vector whose length is encoded in `N` bytes (§3.4).
fn split_vector<const N: usize>(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<N>()?;
    let length = length
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    rest.split_at_checked(length)
}
