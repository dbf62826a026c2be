//! The body of a response that refuses a WebSocket (RFC 9112 §6, §7.1).

use linerate_proto::handshake::Headers;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The maximum number of bytes that only frame chunks, because a chunk may be a single byte.
const FRAMING_BYTES_MAX: usize = 64 << 10;

/// Collects the beginning of a body.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Vec<u8>,
    bytes_max: usize,
    framing: Framing,
    framing_bytes: usize,
}

/// What follows, as far as it is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Framing {
    /// The payload of a chunk, of which this many bytes are left.
    Chunk(u64),
    /// The line end after the payload of a chunk.
    ChunkEnd,
    /// An extension of a chunk, which is ignored, up to the end of the line.
    ChunkExtension(u64),
    /// The length of a chunk in hexadecimal digits, so far.
    ChunkLength { bytes: u64, digits: u8 },
    /// The body is complete.
    Complete,
    /// This many bytes.
    Length(u64),
    /// The body is malformed or too long.
    Truncated,
    /// Everything until the stream ends.
    UntilEnd,
}

const NEXT_CHUNK: Framing = Framing::ChunkLength {
    bytes: 0,
    digits: 0,
};

impl Body {
    /// Creates a collector for the body of an HTTP/1.1 response (RFC 9112 §6.3).
    pub(super) fn http1(status: u16, headers: &Headers, bytes_max: usize) -> Self {
        let mut lengths = headers.all("Content-Length");
        let is_encoded = headers.first("Transfer-Encoding").is_some();
        let framing = if status < 200 || status == 204 || status == 304 {
            Framing::Complete
        } else if is_encoded {
            NEXT_CHUNK
        } else {
            match (lengths.next(), lengths.next()) {
                (None, _) => Framing::UntilEnd,
                (Some(digits), None) => Self::length(digits),
                // §6.3 requires that such a response is discarded, at least if the lengths differ.
                (Some(_), Some(_)) => Framing::Truncated,
            }
        };
        Self::new(framing, bytes_max)
    }

    /// Returns what follows a head with this `Content-Length`.
    fn length(digits: &[u8]) -> Framing {
        let is_number = digits.iter().all(u8::is_ascii_digit);
        let number = str::from_utf8(digits).ok().filter(|_| is_number);
        match number.map(str::parse) {
            Some(Ok(0)) => Framing::Complete,
            Some(Ok(bytes)) => Framing::Length(bytes),
            _ => Framing::Truncated,
        }
    }

    /// Creates a collector for a body that ends with its stream, as over HTTP/2 and HTTP/3.
    #[cfg(any(feature = "http2", feature = "http3"))]
    pub(super) fn until_end(bytes_max: usize) -> Self {
        Self::new(Framing::UntilEnd, bytes_max)
    }

    fn new(framing: Framing, bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            bytes_max,
            framing,
            framing_bytes: 0,
        }
    }

    /// Reads the body until it is complete, too long or malformed, or `io` ends.
    ///
    /// # Cancel safety
    /// What was read until the future is dropped stays.
    pub(super) async fn read(&mut self, io: &mut (impl AsyncRead + Unpin)) {
        let mut buffer = [0; 1 << 10];
        while !self.is_over() {
            match io.read(&mut buffer).await {
                Ok(0) => return self.handle_end(),
                Ok(bytes) => self.push(&buffer[..bytes]),
                Err(_) => return,
            }
        }
    }

    /// Takes the bytes that follow.
    pub(super) fn push(&mut self, mut input: &[u8]) {
        while !input.is_empty() && !self.is_over() {
            match self.framing {
                Framing::Chunk(left) => {
                    let next = |left| match left {
                        0 => Framing::ChunkEnd,
                        left => Framing::Chunk(left),
                    };
                    self.push_part(&mut input, left, next);
                }
                Framing::Length(left) => {
                    let next = |left| match left {
                        0 => Framing::Complete,
                        left => Framing::Length(left),
                    };
                    self.push_part(&mut input, left, next);
                }
                Framing::UntilEnd => self.push_part(&mut input, u64::MAX, |_| Framing::UntilEnd),
                _ => {
                    self.push_framing(input[0]);
                    input = &input[1..];
                }
            }
        }
    }

    /// Takes up to `left` bytes of payload, as many as the limit allows; `next` returns what
    /// follows if a number of bytes is left.
    fn push_part(&mut self, input: &mut &[u8], left: u64, next: impl Fn(u64) -> Framing) {
        let bytes = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let (part, rest) = input.split_at(bytes);
        *input = rest;
        let room = self.bytes_max - self.bytes.len();
        self.bytes.extend_from_slice(&part[..bytes.min(room)]);
        self.framing = match bytes > room {
            true => Framing::Truncated,
            false => next(left - bytes as u64),
        };
    }

    /// Takes a byte between the payloads of chunks.
    fn push_framing(&mut self, byte: u8) {
        self.framing_bytes += 1;
        let begin = |bytes| match bytes {
            // The trailer is of no interest.
            0 => Framing::Complete,
            bytes => Framing::Chunk(bytes),
        };
        self.framing = match (self.framing, byte) {
            _ if self.framing_bytes > FRAMING_BYTES_MAX => Framing::Truncated,
            (Framing::ChunkEnd, b'\r') => Framing::ChunkEnd,
            (Framing::ChunkEnd, b'\n') => NEXT_CHUNK,
            (Framing::ChunkExtension(bytes), b'\n') => begin(bytes),
            (Framing::ChunkExtension(bytes), _) => Framing::ChunkExtension(bytes),
            (Framing::ChunkLength { digits: 0, .. }, b'\r' | b'\n' | b';' | b' ' | b'\t') => {
                Framing::Truncated
            }
            (Framing::ChunkLength { bytes, .. }, b'\n') => begin(bytes),
            (Framing::ChunkLength { bytes, .. }, b'\r' | b';' | b' ' | b'\t') => {
                Framing::ChunkExtension(bytes)
            }
            (Framing::ChunkLength { bytes, digits }, byte) if digits < 15 => {
                match char::from(byte).to_digit(16) {
                    Some(digit) => Framing::ChunkLength {
                        bytes: bytes << 4 | u64::from(digit),
                        digits: digits + 1,
                    },
                    None => Framing::Truncated,
                }
            }
            _ => Framing::Truncated,
        };
    }

    /// Takes the end of the stream.
    fn handle_end(&mut self) {
        if self.framing == Framing::UntilEnd {
            self.framing = Framing::Complete;
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.framing, Framing::Complete | Framing::Truncated)
    }

    /// Returns what was collected, and whether the rest of the body is missing.
    pub(super) fn into_parts(self) -> (Vec<u8>, bool) {
        (self.bytes, self.framing != Framing::Complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 8;

    fn collect(framing: Framing, input: &[u8], cut: usize) -> (Vec<u8>, bool) {
        let mut body = Body::new(framing, MAX);
        body.push(&input[..cut]);
        body.push(&input[cut..]);
        body.handle_end();
        body.into_parts()
    }

    #[test]
    fn bodies_are_collected_up_to_the_limit_however_they_are_cut() {
        for (framing, input, expected, is_truncated) in [
            (Framing::Length(4), &b"SpamEggs"[..], &b"Spam"[..], false),
            (Framing::Length(8), b"SpamEggs", b"SpamEggs", false),
            (Framing::Length(9), b"SpamEggs!", b"SpamEggs", true),
            (Framing::Length(u64::MAX), b"SpamEggs!", b"SpamEggs", true),
            (Framing::Length(9), b"Spam", b"Spam", true),
            (Framing::UntilEnd, b"", b"", false),
            (Framing::UntilEnd, b"SpamEggs", b"SpamEggs", false),
            (Framing::UntilEnd, b"SpamEggs!", b"SpamEggs", true),
            (NEXT_CHUNK, b"4\r\nSpam\r\n0\r\n\r\n", b"Spam", false),
            (NEXT_CHUNK, b"4\nSpam\n0\n", b"Spam", false),
            (
                NEXT_CHUNK,
                b"1;a=b\r\nS\r\n03 ;c\r\npam\r\n0\r\nA: b\r\n\r\n",
                b"Spam",
                false,
            ),
            (
                NEXT_CHUNK,
                b"A\r\nSpamEggs!!\r\n0\r\n\r\n",
                b"SpamEggs",
                true,
            ),
            (
                NEXT_CHUNK,
                b"8\r\nSpamEggs\r\n1\r\n!\r\n0\r\n\r\n",
                b"SpamEggs",
                true,
            ),
            (NEXT_CHUNK, b"4\r\nSpam\r\n", b"Spam", true),
            (NEXT_CHUNK, b"4\r\nSpamEggs", b"Spam", true),
            (NEXT_CHUNK, b"\r\n", b"", true),
            (NEXT_CHUNK, b"\t\r\n", b"", true),
            (NEXT_CHUNK, b"-4\r\nSpam", b"", true),
            (NEXT_CHUNK, b"fffffffffffffffffffffff\r\nSpam", b"", true),
            (Framing::Complete, b"Spam", b"", false),
        ] {
            for cut in 0..=input.len() {
                let collected = collect(framing, input, cut);
                assert_eq!(collected, (expected.to_vec(), is_truncated), "{input:?}");
            }
        }
    }

    #[test]
    fn only_a_number_is_a_length() {
        for (digits, expected) in [
            (&b"0"[..], Framing::Complete),
            (b"18446744073709551615", Framing::Length(u64::MAX)),
            (b"18446744073709551616", Framing::Truncated),
            (b"+5", Framing::Truncated),
            (b"-5", Framing::Truncated),
            (b"5, 5", Framing::Truncated),
            (b"", Framing::Truncated),
            (b"\xFF", Framing::Truncated),
        ] {
            assert_eq!(Body::length(digits), expected, "{digits:?}");
        }
    }

    #[test]
    fn framing_without_payload_has_a_limit() {
        let mut body = Body::new(NEXT_CHUNK, MAX);
        body.push(b"1;");
        for _ in 0..FRAMING_BYTES_MAX {
            assert!(!body.is_over() || body.framing == Framing::Truncated);
            body.push(b"x");
        }
        assert_eq!(body.into_parts(), (Vec::new(), true));
    }
}
