//! The output of a client that polls: it waits for a poll until a WebSocket continues the session.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use linerate::{Deflate, Sender};
use linerate_budget::Account;

use super::super::{
    Admitted,
    wire::{WebSocketWire, Wire},
};
use crate::{
    node::PolledSession,
    protocol::{Block, codes::Disconnect, dialect::WebSocketTransport, polling::messages},
};

/// What carries the output of a session whose client has polled. Its input and its wire share it;
/// both are used on the thread of the worker.
pub(super) struct PolledLink {
    pub(super) session: Arc<PolledSession>,
    transport: &'static WebSocketTransport,
    deflate: Option<Deflate>,
    /// The account that compressed blocks are charged to.
    compressed: Account,
    websocket: OnceLock<WebSocketWire>,
}

/// The wire of a session whose client has polled.
#[derive(Debug)]
pub(super) struct PolledWire(pub(super) Arc<PolledLink>);

impl PolledLink {
    pub(super) fn new(
        session: Arc<PolledSession>,
        transport: &'static WebSocketTransport,
        admitted: &Admitted,
    ) -> Self {
        Self {
            session,
            transport,
            deflate: admitted.settings.config.deflate(),
            compressed: admitted.compressed(),
            websocket: OnceLock::new(),
        }
    }

    /// Sends what no poll has fetched, and everything from now on, on a WebSocket.
    pub(super) fn upgrade(&self, sender: Sender) {
        let compressed = self.compressed.clone();
        let wire = WebSocketWire::new(sender, self.transport.farewell, self.deflate, compressed);
        // In one piece, because a wire takes a piece of any length while it has room.
        let frames = self.session.upgrade().concat();
        let count = messages(&frames).count() as u64;
        wire.send(&Block::new(frames, count));
        wire.flush();
        // A session continues on a WebSocket once.
        _ = self.websocket.set(wire);
    }
}

impl Wire for PolledWire {
    fn send(&self, block: &Block) {
        match self.0.websocket.get() {
            Some(wire) => wire.send(block),
            None => self.0.session.push(block.bytes().clone()),
        }
    }

    fn flush(&self) {
        match self.0.websocket.get() {
            Some(wire) => wire.flush(),
            None => self.0.session.flush(),
        }
    }

    fn discard(&self) {
        match self.0.websocket.get() {
            Some(wire) => wire.discard(),
            None => self.0.session.discard(),
        }
    }

    fn room(&self) -> usize {
        match self.0.websocket.get() {
            Some(wire) => wire.room(),
            None => self.0.session.room(),
        }
    }

    fn queued_bytes(&self) -> usize {
        match self.0.websocket.get() {
            Some(wire) => wire.queued_bytes(),
            None => self.0.session.queued_bytes(),
        }
    }

    fn received_bytes(&self) -> usize {
        let on_websocket = self.0.websocket.get().map_or(0, Wire::received_bytes);
        on_websocket + self.0.session.received_bytes()
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.0.websocket.get() {
            Some(wire) => wire.poll_room(cx),
            None => self.0.session.poll_room(cx),
        }
    }

    fn close(&self, disconnect: &Disconnect) {
        if let Some(wire) = self.0.websocket.get() {
            wire.close(disconnect);
        }
        if *disconnect == Disconnect::NO_PONG {
            // Its client would have fetched the output long ago.
            self.0.session.discard();
        }
        let farewell = (self.0.transport.farewell)(disconnect);
        self.0.session.end(farewell.to_string());
    }
}

impl fmt::Debug for PolledLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolledLink")
            .field("session", &self.session)
            .field("websocket", &self.websocket)
            .finish_non_exhaustive()
    }
}
