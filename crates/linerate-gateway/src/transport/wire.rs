//! The way of bytes to one client, whatever carries them.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use linerate::{CloseCode, Deflate, Sender};
use linerate_budget::Account;

use crate::protocol::{Block, centrifuge::Disconnect};

/// The way of bytes to one client. Never waits, and is called on the thread of the client's worker.
pub(crate) trait Wire: fmt::Debug + Send + Sync + 'static {
    /// Takes what the protocol's encoder has made, which may wait for [`flush`](Self::flush). Accepted whatever their length while there is room; what is sent to somebody who is
    /// gone is dropped.
    fn send(&self, block: &Block);

    /// Lets go what was sent.
    fn flush(&self);

    /// Forgets what was sent and is not on its way, since the client is to be closed for want of memory.
    fn discard(&self);

    /// Returns how many bytes may be sent; at least one if any may.
    fn room(&self) -> usize;

    /// Returns how many bytes wait for the socket.
    fn queued_bytes(&self) -> usize;

    /// Returns the memory of input that the session has not taken; 0 on a way out only.
    fn received_bytes(&self) -> usize {
        0
    }

    /// Ready when there is room, or the client is gone.
    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Ends the stream behind everything that was sent.
    fn close(&self, disconnect: &Disconnect);
}

/// The sending half of a WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocketWire {
    sender: Sender,
    /// How blocks are compressed, if the client can inflate them.
    deflate: Option<Deflate>,
    /// Where compressed blocks are counted.
    compressed: Account,
}

impl WebSocketWire {
    /// Creates the way through `sender`, on which blocks are compressed as `deflate` says if that was agreed on.
    /// Compressed blocks are counted in `compressed`.
    pub(crate) fn new(sender: Sender, deflate: Option<Deflate>, compressed: Account) -> Self {
        let deflate = deflate.filter(|_| sender.deflates().is_some());
        Self {
            sender,
            deflate,
            compressed,
        }
    }
}

/// The sending half of a WebSocket that is not open yet: until then there is no room.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingWire(Arc<OnceLock<WebSocketWire>>);

impl PendingWire {
    /// Opens the way; to be called once.
    pub(crate) fn open(&self, wire: WebSocketWire) {
        _ = self.0.set(wire);
    }
}

impl Wire for PendingWire {
    fn send(&self, block: &Block) {
        if let Some(wire) = self.0.get() {
            wire.send(block);
        }
    }

    fn flush(&self) {
        if let Some(wire) = self.0.get() {
            wire.flush();
        }
    }

    fn discard(&self) {
        if let Some(wire) = self.0.get() {
            wire.discard();
        }
    }

    fn room(&self) -> usize {
        self.0.get().map_or(0, Wire::room)
    }

    fn queued_bytes(&self) -> usize {
        self.0.get().map_or(0, Wire::queued_bytes)
    }

    fn received_bytes(&self) -> usize {
        self.0.get().map_or(0, Wire::received_bytes)
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0
            .get()
            .map_or(Poll::Pending, |wire| wire.poll_room(cx))
    }

    fn close(&self, disconnect: &Disconnect) {
        if let Some(wire) = self.0.get() {
            wire.close(disconnect);
        }
    }
}

impl Wire for WebSocketWire {
    fn send(&self, block: &Block) {
        let frames = match &self.deflate {
            Some(deflate) => block.compressed(deflate, &self.compressed),
            None => block.frames(),
        };
        if let Err(error) = self.sender.try_feed_frames([&frames]) {
            tracing::debug!(%error, "client takes nothing more");
        }
    }

    fn flush(&self) {
        self.sender.try_flush();
    }

    fn discard(&self) {
        self.sender.discard_unsent();
    }

    fn room(&self) -> usize {
        self.sender.room()
    }

    fn queued_bytes(&self) -> usize {
        self.sender.queued_bytes()
    }

    fn received_bytes(&self) -> usize {
        self.sender.received_bytes()
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.sender.poll_writable(cx).map(drop)
    }

    fn close(&self, disconnect: &Disconnect) {
        let code = CloseCode::new(disconnect.code).unwrap_or(CloseCode::INTERNAL_ERROR);
        let end = disconnect
            .reason
            .floor_char_boundary(Disconnect::REASON_BYTES_MAX);
        // Can only fail because of the length of the reason, which was just cut.
        _ = self.sender.start_close(code, &disconnect.reason[..end]);
    }
}
