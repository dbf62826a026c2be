//! The chunks of a streaming response (RFC 9112 §7.1).

use std::io::Write;

use bytes::Bytes;
use linerate_reactor::LocalStream;

/// The maximum size of the line before a chunk: the digits of a `usize`, and CRLF.
const SIZE_BYTES_MAX: usize = 2 * size_of::<usize>() + 2;

/// Sends `bytes` as a chunk. Nothing is sent if there are none, because an empty chunk is the last.
pub(super) fn send(stream: &mut LocalStream<'_>, bytes: &Bytes) {
    if bytes.is_empty() {
        return;
    }
    let mut line = [0; SIZE_BYTES_MAX];
    let mut unused = &mut line[..];
    write!(unused, "{:x}\r\n", bytes.len()).expect("the line is long enough");
    let unused = unused.len();
    stream.send(&line[..SIZE_BYTES_MAX - unused]);
    stream.send_shared(bytes);
    stream.send(b"\r\n");
}

/// Ends the stream with the last chunk.
pub(super) fn end(stream: &mut LocalStream<'_>) {
    stream.send(b"0\r\n\r\n");
    stream.end();
}
