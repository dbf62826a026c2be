//! Writes bytes to one client, independent of the transport.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use linerate::{CloseCode, Deflate, Sender};
use linerate_budget::Account;
use parking_lot::Mutex;

use crate::protocol::{Block, codes::Disconnect, lockstep::Follower};

/// The byte stream to one client. Its methods never block, and are called on the thread of the
/// client's worker.
pub(crate) trait Wire: fmt::Debug + Send + Sync + 'static {
    /// Queues the output of a protocol encoder, possibly until [`flush`](Self::flush). While there
    /// is room, a block of any length is accepted. Blocks for a client that has disconnected are
    /// dropped.
    fn send(&self, block: &Block);

    /// Flushes queued blocks.
    fn flush(&self);

    /// Drops everything queued that is not yet being written, because the client is about to be
    /// closed for lack of memory.
    fn discard(&self);

    /// Returns how many bytes may be sent; at least 1 if there is any room.
    fn room(&self) -> usize;

    /// Returns how many bytes are queued for the socket.
    fn queued_bytes(&self) -> usize;

    /// Returns the memory used by input that the session has not read yet, in bytes; 0 for a
    /// one-way stream.
    fn received_bytes(&self) -> usize {
        0
    }

    /// Completes when there is room, or when the client has disconnected.
    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Ends the stream after everything that was sent.
    fn close(&self, disconnect: &Disconnect);
}

/// Converts a [`Disconnect`] to the code and reason of the Close frame.
type Farewell = fn(&Disconnect) -> Disconnect;

/// The sending half of a WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocketWire {
    sender: Sender,
    farewell: Farewell,
    /// The options for compressing blocks, if the client can decompress them.
    deflate: Option<Deflate>,
    /// The blocks in the client's window, if it keeps one. Everything that is sent goes through
    /// this wire, except for control frames, which are never compressed. The mutex exists only
    /// because a wire must be `Sync`; it is never contended.
    follower: Option<Mutex<Follower>>,
    /// The account that compressed blocks are charged to.
    compressed: Account,
}

impl WebSocketWire {
    /// Creates a wire that sends through `sender` and compresses blocks with `deflate`, if
    /// compression was negotiated. Compressed blocks are charged to `compressed`.
    pub(crate) fn new(
        sender: Sender,
        farewell: Farewell,
        deflate: Option<Deflate>,
        compressed: Account,
    ) -> Self {
        let agreed = sender.compression();
        let can_follow = agreed.is_some_and(Follower::is_possible);
        Self {
            sender,
            farewell,
            deflate: deflate.filter(|_| agreed.is_some()),
            follower: can_follow.then(Mutex::default),
            compressed,
        }
    }
}

/// The sending half of a WebSocket that is not open yet; it has no room until it is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingWire(Arc<OnceLock<WebSocketWire>>);

impl PendingWire {
    /// Opens the wire. Call this once.
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
        let mut follower = self.follower.as_ref().map(Mutex::lock);
        let frames = match (&self.deflate, &mut follower) {
            (Some(deflate), Some(follower)) => {
                block.compressed_after(follower, deflate, &self.compressed)
            }
            (Some(deflate), None) => block.compressed(deflate, &self.compressed),
            (None, _) => block.frames(),
        };
        if let Err(error) = self.sender.try_feed_frames([&frames]) {
            if let Some(follower) = &mut follower {
                follower.leave();
            }
            tracing::debug!(%error, "cannot send to client");
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
        let disconnect = (self.farewell)(disconnect);
        let code = CloseCode::new(disconnect.code).unwrap_or(CloseCode::INTERNAL_ERROR);
        let end = disconnect
            .reason
            .floor_char_boundary(Disconnect::REASON_BYTES_MAX);
        // This can fail only because of the length of the reason, which has just been truncated.
        _ = self.sender.start_close(code, &disconnect.reason[..end]);
    }
}
