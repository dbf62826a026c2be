//! As much of RFC 6455 as clients here need. Servers are ours, so frames are not checked.

use std::{
    io::{self, Read},
    ops::Range,
};

use anyhow::{Result, ensure};
use linerate_testkit::Frame;

/// Returns a request that opens a WebSocket, with the additional header lines `more`.
pub(crate) fn request(path: &str, more: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Version: 13\r\n{more}\r\n"
    )
}

/// Reads the head of a response. What follows it is not read.
pub(crate) fn read_head(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        input.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(head)
}

/// Waits until the WebSocket is open.
pub(crate) fn wait_for_open(input: &mut impl Read) -> Result<()> {
    let head = read_head(input)?;
    ensure!(
        head.starts_with(b"HTTP/1.1 101 "),
        "WebSocket refused: {}",
        head.escape_ascii()
    );
    Ok(())
}

/// Returns a client's frame, masked with zeros.
pub(crate) fn frame(opcode: u8, payload: &[u8]) -> Frame {
    Frame::new(opcode, payload).with_mask(Some([0; 4]))
}

/// Reads a frame of a server, and returns its first byte and its payload.
pub(crate) fn read_frame(input: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 10];
    input.read_exact(&mut head[..2])?;
    let start = match head[1] {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    input.read_exact(&mut head[2..start])?;
    let length = payload_place(&head).map_or(0, |place| place.len());
    let mut payload = vec![0; length];
    input.read_exact(&mut payload)?;
    Ok((head[0], payload))
}

/// Returns the first byte of the first frame of a server and the range of its payload, if the frame
/// is complete.
pub(crate) fn whole_frame(bytes: &[u8]) -> Option<(u8, Range<usize>)> {
    let place = payload_place(bytes)?;
    (bytes.len() >= place.end).then_some((bytes[0], place))
}

/// Returns where the payload is after a header (§5.2), if the header is complete.
fn payload_place(bytes: &[u8]) -> Option<Range<usize>> {
    let (start, length) = match bytes {
        [_, 126, length @ ..] => (4, u16::from_be_bytes(*length.first_chunk()?).into()),
        [_, 127, length @ ..] => (10, u64::from_be_bytes(*length.first_chunk()?)),
        [_, length, ..] => (2, u64::from(*length)),
        _ => return None,
    };
    Some(start..start + usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_whole_with_their_last_byte() {
        let long = [&b"\x81\x7e\x00\x80"[..], &[b'x'; 128]].concat();
        let longer = [&b"\x82\x7f\0\0\0\0\0\x01\0\0"[..], &[b'y'; 65_536]].concat();
        for (wire, first, start) in [(&long, 0x81, 4), (&longer, 0x82, 10)] {
            assert_eq!(whole_frame(wire), Some((first, start..wire.len())));
            for cut in [0, 1, 2, 3, start, wire.len() - 1] {
                assert_eq!(whole_frame(&wire[..cut]), None);
            }
            let read = read_frame(&mut &wire[..]).unwrap();
            assert_eq!(read, (first, wire[start..].to_vec()));
        }
        assert_eq!(whole_frame(b"\x89\x01a\x81"), Some((0x89, 2..3)));
    }
}
