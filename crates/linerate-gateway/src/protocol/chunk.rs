//! The chunks of streaming responses (RFC 9112 §7.1).
//!
//! A block is encoded as a chunk at once, so that all clients on HTTP/1.1 share it. Its size has a
//! fixed number of digits, and is written once it is known.

use std::{io::Write, ops::Range};

/// The number of bytes before the payload: eight digits and CRLF.
const HEAD_BYTES: usize = 10;

/// What follows the payload.
const END: &[u8] = b"\r\n";

/// The chunk after the last one.
pub(crate) const LAST: &[u8] = b"0\r\n\r\n";

/// Appends a chunk whose payload `append` appends.
///
/// # Errors
/// Those of `append`.
pub(crate) fn encode<E>(
    out: &mut Vec<u8>,
    append: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(&[b'0'; HEAD_BYTES]);
    append(out)?;
    let payload_bytes = out.len() - start - HEAD_BYTES;
    let mut head = &mut out[start..start + HEAD_BYTES];
    write!(head, "{payload_bytes:08x}\r\n").expect("a block has less than 4 GiB");
    out.extend_from_slice(END);
    Ok(())
}

/// Returns where the payload of a chunk of this length is.
pub(crate) const fn payload(chunk_bytes: usize) -> Range<usize> {
    HEAD_BYTES..chunk_bytes - END.len()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::{encode, payload};

    #[test]
    fn a_chunk_has_its_size() {
        let mut chunk = Vec::new();
        let append = |out: &mut Vec<u8>| {
            out.extend_from_slice(&[b'x'; 300]);
            Ok::<(), Infallible>(())
        };
        encode(&mut chunk, append).unwrap();
        assert!(chunk.starts_with(b"0000012c\r\nxx"), "{chunk:?}");
        assert!(chunk.ends_with(b"x\r\n"), "{chunk:?}");
        assert_eq!(chunk[payload(chunk.len())], [b'x'; 300]);
    }
}
