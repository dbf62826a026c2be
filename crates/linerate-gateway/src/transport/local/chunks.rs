//! Sends a streaming response in chunks.

use std::convert::Infallible;

use bytes::Bytes;
use linerate_reactor::LocalStream;

use crate::protocol::{Block, chunk};

/// Sends a block. A long one that was encoded as a chunk is not copied, and can be discarded.
pub(super) fn send(stream: &mut LocalStream<'_>, block: &Block) {
    match block.chunk() {
        Some(chunk) => stream.send_shared(chunk),
        None => send_copy(stream, block.bytes()),
    }
}

/// Sends a copy of `bytes`. Nothing is sent if there are none, because an empty chunk is the last.
pub(super) fn send_copy(stream: &mut LocalStream<'_>, bytes: &Bytes) {
    if bytes.is_empty() {
        return;
    }
    let mut whole = Vec::new();
    let Ok(()) = chunk::encode(&mut whole, |out| {
        out.extend_from_slice(bytes);
        Ok::<(), Infallible>(())
    });
    stream.send(&whole);
}

/// Ends the stream with the last chunk.
pub(super) fn end(stream: &mut LocalStream<'_>) {
    stream.send(chunk::LAST);
    stream.end();
}
