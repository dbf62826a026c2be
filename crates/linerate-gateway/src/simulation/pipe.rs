//! A connection between a session and its simulated client.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::{
    protocol::{Block, codes::Disconnect},
    transport::{CommandFrame, Input, Wire},
};

/// The number of bytes that may be on their way to a client.
const ROOM_BYTES: usize = 512;

/// The CPU time of a write to one client.
const WRITE: Duration = Duration::from_micros(7);

/// The bytes on their way to a client.
#[derive(Debug)]
pub(super) struct Pipe {
    /// The number of clients for which this one stands: a write costs the time of as many.
    weight: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sent: Vec<u8>,
    is_closed: bool,
    is_gone: bool,
    waiting: Option<Waker>,
}

impl Pipe {
    pub(super) fn new(weight: u32) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self { weight, state })
    }

    /// Removes what has arrived at the client, and returns whether the server has closed the
    /// connection after it.
    pub(super) fn read(&self, into: &mut Vec<u8>) -> bool {
        let mut state = self.state.lock();
        into.append(&mut state.sent);
        if let Some(waiting) = state.waiting.take() {
            waiting.wake();
        }
        state.is_closed
    }

    /// Cuts the connection after `bytes` of what is on its way.
    pub(super) fn cut(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.sent.truncate(bytes);
        state.is_closed = true;
    }

    /// Ends the connection at the client's side.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock();
        state.is_gone = true;
        state.sent.clear();
        if let Some(waiting) = state.waiting.take() {
            waiting.wake();
        }
    }

    /// Returns the number of bytes that the client has not read.
    pub(super) fn unread(&self) -> usize {
        self.state.lock().sent.len()
    }
}

/// The server's end of a pipe.
#[derive(Debug)]
pub(super) struct ServerEnd(pub(super) Arc<Pipe>);

impl Wire for ServerEnd {
    /// Sends a block. While a worker writes, time passes on its machine.
    fn send(&self, block: &Block) {
        // The first poll advances the clock; the second would only yield.
        _ = tokio::time::advance(WRITE * self.0.weight).now_or_never();
        let mut state = self.0.state.lock();
        if !state.is_gone && !state.is_closed {
            state.sent.extend_from_slice(block.bytes());
        }
    }

    fn flush(&self) {}

    fn discard(&self) {}

    fn room(&self) -> usize {
        let state = self.0.state.lock();
        match state.is_gone {
            true => 0,
            false => ROOM_BYTES.saturating_sub(state.sent.len()),
        }
    }

    fn queued_bytes(&self) -> usize {
        self.0.unread()
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.state.lock();
        if state.is_gone || state.sent.len() < ROOM_BYTES {
            return Poll::Ready(());
        }
        state.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    fn close(&self, _: &Disconnect) {
        self.0.state.lock().is_closed = true;
    }
}

/// The commands of a client.
#[derive(Debug)]
pub(super) struct Commands(pub(super) mpsc::UnboundedReceiver<Bytes>);

impl Input for Commands {
    async fn next(&mut self) -> Option<CommandFrame> {
        self.0.recv().await.map(CommandFrame::Bytes)
    }
}
