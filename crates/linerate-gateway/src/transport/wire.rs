//! Writes bytes to one client, independent of the transport.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use linerate::{CloseCode, Deflate, Frames, Sender};
use linerate_budget::Account;
use linerate_proto::deflate;
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

    /// Returns whether the session is a task, which waits for its outlet.
    fn has_task(&self) -> bool {
        true
    }

    /// Wakes what runs the session if it is not a task.
    fn wake_session(&self) {}

    /// Ends the stream after everything that was sent.
    fn close(&self, disconnect: &Disconnect);
}

/// Converts a [`Disconnect`] to the code and reason of the Close frame.
pub(super) type Farewell = fn(&Disconnect) -> Disconnect;

/// The sending half of a WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocketWire {
    sender: Sender,
    farewell: Farewell,
    /// `None` if blocks are not compressed. The mutex exists only because a wire must be `Sync`; it
    /// is never contended.
    compression: Option<Mutex<Compression>>,
}

/// How blocks are compressed for a client. Everything that is sent goes through its wire, except
/// for control frames, which are never compressed.
#[derive(Debug)]
pub(super) struct Compression {
    deflate: Deflate,
    /// The blocks in the client's window, if it keeps one.
    follower: Option<Follower>,
    /// The account that compressed blocks are charged to.
    account: Account,
}

impl Compression {
    /// Returns the compression for a connection, given the options and what was agreed on for
    /// messages to the client.
    pub(super) fn new(
        deflate: Option<Deflate>,
        agreed: Option<deflate::Context>,
        account: Account,
    ) -> Option<Self> {
        let (deflate, agreed) = deflate.zip(agreed)?;
        Some(Self {
            deflate,
            follower: Follower::is_possible(agreed).then(Follower::default),
            account,
        })
    }

    /// Returns the frames to send for a block.
    pub(super) fn frames(&mut self, block: &Block) -> Frames {
        match &mut self.follower {
            Some(follower) => block.compressed_after(follower, &self.deflate, &self.account),
            None => block.compressed(&self.deflate, &self.account),
        }
    }

    /// Records that it is not known what was sent.
    pub(super) fn leave(&mut self) {
        if let Some(follower) = &mut self.follower {
            follower.leave();
        }
    }
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
        let compression = Compression::new(deflate, sender.compression(), compressed);
        Self {
            sender,
            farewell,
            compression: compression.map(Mutex::new),
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
        let mut compression = self.compression.as_ref().map(Mutex::lock);
        let frames = match &mut compression {
            Some(compression) => compression.frames(block),
            None => block.frames(),
        };
        if let Err(error) = self.sender.try_feed_frames([&frames]) {
            if let Some(compression) = &mut compression {
                compression.leave();
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
        let (code, reason) = close_frame(self.farewell, disconnect);
        // This can fail only because of the length of the reason, which has been truncated.
        _ = self.sender.start_close(code, &reason);
    }
}

/// Returns the code and reason of the Close frame, whose reason is not too long.
pub(super) fn close_frame(farewell: Farewell, disconnect: &Disconnect) -> (CloseCode, String) {
    let disconnect = farewell(disconnect);
    let code = CloseCode::new(disconnect.code).unwrap_or(CloseCode::INTERNAL_ERROR);
    let reason = &disconnect.reason;
    let end = reason.floor_char_boundary(Disconnect::REASON_BYTES_MAX);
    (code, reason[..end].to_owned())
}
