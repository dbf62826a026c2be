//! Frame headers (RFC 9114 §7.1).

use crate::{
    fault::{Code, Fault},
    varint,
};

pub(crate) const DATA: u64 = 0x0;
pub(crate) const HEADERS: u64 = 0x1;
pub(crate) const CANCEL_PUSH: u64 = 0x3;
pub(crate) const SETTINGS: u64 = 0x4;
pub(crate) const PUSH_PROMISE: u64 = 0x5;
pub(crate) const GOAWAY: u64 = 0x7;
pub(crate) const MAX_PUSH_ID: u64 = 0xd;

/// The type of a frame and the length of its payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Head {
    pub(crate) kind: u64,
    pub(crate) payload_bytes: u64,
}

impl Head {
    /// Returns whether the frame type is unknown, so that the frame must be skipped (§9).
    ///
    /// # Errors
    /// Returns an error if the type belongs to HTTP/2 and is reserved in HTTP/3 (§7.2.8).
    pub(crate) fn is_unknown(self) -> Result<bool, Fault> {
        match self.kind {
            DATA | HEADERS | CANCEL_PUSH | SETTINGS | PUSH_PROMISE | GOAWAY | MAX_PUSH_ID => {
                Ok(false)
            }
            0x2 | 0x6 | 0x8 | 0x9 => Err(unexpected()),
            _ => Ok(true),
        }
    }

    /// Appends the encoded header.
    pub(crate) fn encode(self, output: &mut Vec<u8>) {
        varint::encode(output, self.kind);
        varint::encode(output, self.payload_bytes);
    }
}

/// Appends a frame.
pub(crate) fn put(output: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    let head = Head {
        kind,
        payload_bytes: payload.len() as u64,
    };
    head.encode(output);
    output.extend_from_slice(payload);
}

/// Returns the fault for a frame that is not allowed at this point.
pub(crate) const fn unexpected() -> Fault {
    Fault::connection(Code::FRAME_UNEXPECTED, "frame not allowed here")
}

/// Returns the fault for a stream that ends in the middle of a frame.
pub(crate) const fn truncated() -> Fault {
    Fault::connection(Code::FRAME_ERROR, "stream ends in the middle of a frame")
}

/// Reads frame headers that arrive in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadReader {
    /// Two integers of at most 8 bytes.
    bytes: [u8; 16],
    filled: usize,
}

impl HeadReader {
    /// Returns whether no byte of the header has arrived yet.
    pub(crate) const fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Returns the buffer for the next bytes, which is never empty. Its length is the number of
    /// bytes that certainly belong to the header.
    pub(crate) fn wanted(&mut self) -> &mut [u8] {
        let known = &self.bytes[..self.filled];
        let kind_bytes = known.first().map_or(1, |first| varint::bytes(*first));
        let length_bytes = known
            .get(kind_bytes)
            .map_or(1, |first| varint::bytes(*first));
        &mut self.bytes[self.filled..kind_bytes + length_bytes]
    }

    /// Records that `bytes` bytes were written to the buffer; returns the header once it is
    /// complete.
    pub(crate) fn advance(&mut self, bytes: usize) -> Option<Head> {
        self.filled += bytes;
        let known = &self.bytes[..self.filled];
        let (kind, kind_bytes) = varint::decode(known)?;
        let (payload_bytes, _) = varint::decode(&known[kind_bytes..])?;
        *self = Self::default();
        Some(Head {
            kind,
            payload_bytes,
        })
    }

    /// Consumes bytes of `input` up to the end of the header.
    pub(crate) fn take(&mut self, input: &mut &[u8]) -> Option<Head> {
        while !input.is_empty() {
            let wanted = self.wanted();
            let bytes = wanted.len().min(input.len());
            wanted[..bytes].copy_from_slice(&input[..bytes]);
            *input = &input[bytes..];
            if let Some(head) = self.advance(bytes) {
                return Some(head);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_however_it_is_cut_and_nothing_behind_it() {
        for (kind, payload_bytes) in [
            (DATA, 0),
            (DATA, 63),
            (HEADERS, 64),
            (DATA, 70_000),
            (varint::MAX, varint::MAX),
        ] {
            let head = Head {
                kind,
                payload_bytes,
            };
            let mut bytes = Vec::new();
            head.encode(&mut bytes);
            let length = bytes.len();
            bytes.extend_from_slice(b"behind");
            for cut in 0..length {
                let mut reader = HeadReader::default();
                assert_eq!(reader.take(&mut &bytes[..cut]), None);
                assert_eq!(reader.is_empty(), cut == 0);
                let mut rest = &bytes[cut..];
                assert_eq!(reader.take(&mut rest), Some(head));
                assert_eq!(rest, b"behind");
                assert!(reader.is_empty());
            }
        }
    }

    #[test]
    fn types_of_http2_are_faults_and_those_to_come_are_skipped() {
        let head = |kind| Head {
            kind,
            payload_bytes: 0,
        };
        for kind in [0x2, 0x6, 0x8, 0x9] {
            let fault = head(kind).is_unknown().unwrap_err();
            assert_eq!(fault.code, Code::FRAME_UNEXPECTED);
        }
        assert_eq!(head(0x21).is_unknown(), Ok(true));
        assert_eq!(head(HEADERS).is_unknown(), Ok(false));
    }
}
