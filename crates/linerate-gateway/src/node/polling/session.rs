//! A session whose client polls: what its own task does, and in `requests` what requests do.

mod requests;

use std::{
    collections::VecDeque,
    mem,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use linerate::{Message, Sender};
use linerate_budget::{Account, Share};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    node::Accounts,
    protocol::polling::{PollEnd, Polled, PollingRefusal},
};
pub(crate) use requests::Probe;

/// The owners of larger pieces of output account for them: several sessions can share them.
const CHARGED_BYTES_MAX: usize = 4 << 10;

/// The memory of a piece of output in addition to its bytes.
const PIECE_BYTES: usize = 64;

/// The limits of a session whose client polls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PollLimits {
    /// The number of bytes of output from which on nothing more is accepted.
    pub(crate) bytes_max: usize,
    /// How long a poll may wait; `None` if the client decides.
    pub(crate) hold: Option<Duration>,
}

/// A session whose client polls.
#[derive(Debug)]
pub(crate) struct PolledSession {
    limits: PollLimits,
    messages: Account,
    state: Mutex<State>,
    /// Wakes all requests whenever something has changed for them.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    output: VecDeque<Bytes>,
    output_bytes: usize,
    /// The part of the account that the output uses.
    share: Share,
    input: Option<Incoming>,
    /// True if the client has polled since the session has asked for input.
    has_polled: bool,
    /// Why the session has ended, for people.
    reason: Option<String>,
    /// The bytes of the input until the session has handled it; `None` if there is none.
    input_bytes: Option<usize>,
    /// True while a request waits for output.
    is_polled: bool,
    /// True while that request waits for more output.
    is_gathering: bool,
    /// True while a request delivers messages of the client.
    is_sending: bool,
    /// Wakes the session when there is input.
    reader: Option<Waker>,
    /// Wakes the session when there is room for output.
    writer: Option<Waker>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Polled,
    /// Like [`Polled`](Self::Polled), while a WebSocket is about to continue the session.
    Probed,
    /// The session continues on a WebSocket.
    Upgraded,
    /// The session has ended; the last output waits for a poll.
    Ended,
    /// The session has ended, and there is nothing to fetch.
    Gone,
}

/// What the session handles next.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The body of a request, with its part of the account.
    Body(Bytes, Share),
    /// A message on the WebSocket that has continued the session.
    Message(Message),
    /// A poll has begun or ended.
    Poll,
    /// A WebSocket continues the session.
    Upgrade(Sender),
}

impl PolledSession {
    pub(super) fn new(limits: PollLimits, accounts: &Accounts) -> Self {
        Self {
            limits,
            messages: accounts.messages.clone(),
            state: Mutex::new(State {
                stage: Stage::Polled,
                output: VecDeque::new(),
                output_bytes: 0,
                share: accounts.backlogs.share(0),
                input: None,
                has_polled: false,
                reason: None,
                input_bytes: None,
                is_polled: false,
                is_gathering: false,
                is_sending: false,
                reader: None,
                writer: None,
            }),
            changed: Notify::new(),
        }
    }

    /// Adds complete frames to the output, possibly until [`flush`](Self::flush).
    pub(crate) fn push(&self, frames: Bytes) {
        let mut state = self.state.lock();
        if !frames.is_empty() && !state.is_over() {
            state.output_bytes += frames.len();
            let charged = charged_bytes(&frames) + state.share.bytes();
            state.share.set(charged);
            state.output.push_back(frames);
        }
    }

    /// Lets a waiting poll fetch the output.
    pub(crate) fn flush(&self) {
        let is_awaited = {
            let state = self.state.lock();
            !state.is_gathering || state.output_bytes >= self.limits.bytes_max
        };
        if is_awaited {
            self.changed.notify_waiters();
        }
    }

    /// Drops the output, because memory is short.
    pub(crate) fn discard(&self) {
        self.state.lock().clear_output();
    }

    /// Returns how many bytes of output there is room for.
    pub(crate) fn room(&self) -> usize {
        let state = self.state.lock();
        match state.is_over() {
            true => 0,
            false => self.limits.bytes_max.saturating_sub(state.output_bytes),
        }
    }

    /// Completes when there is room, or the session has ended.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.is_over() || state.output_bytes < self.limits.bytes_max {
            return Poll::Ready(());
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns the bytes of output that wait for a poll.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.state.lock().output_bytes
    }

    /// Returns the bytes of input that the session has not handled.
    pub(crate) fn received_bytes(&self) -> usize {
        self.state.lock().input_bytes.unwrap_or_default()
    }

    /// Takes the next input once there is some; `None` if the client is gone. Further bodies and
    /// messages wait until [`handled`](Self::handled) is called.
    pub(crate) fn poll_input(&self, cx: &mut Context<'_>) -> Poll<Option<Incoming>> {
        let mut state = self.state.lock();
        if state.stage == Stage::Gone {
            return Poll::Ready(None);
        }
        if mem::take(&mut state.has_polled) {
            return Poll::Ready(Some(Incoming::Poll));
        }
        match state.input.take() {
            Some(incoming) => Poll::Ready(Some(incoming)),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Notes that the session has handled the input that it has taken.
    pub(crate) fn handled(&self) {
        self.state.lock().input_bytes = None;
        self.changed.notify_waiters();
    }

    /// Continues the session on a WebSocket. Returns the output that no poll has fetched.
    pub(crate) fn upgrade(&self) -> Vec<Bytes> {
        let mut state = self.state.lock();
        state.stage = Stage::Upgraded;
        let output = state.take_output();
        drop(state);
        self.wake();
        output
    }

    /// Ends the session after all output, for a reason that its client is told. If a WebSocket has
    /// continued it, the output has gone there.
    pub(crate) fn end(&self, reason: String) {
        let mut state = self.state.lock();
        state.reason = Some(reason);
        state.stage = match state.stage {
            Stage::Polled | Stage::Probed | Stage::Ended => Stage::Ended,
            Stage::Upgraded | Stage::Gone => Stage::Gone,
        };
        drop(state);
        self.wake();
    }

    /// Ends the session, without last output: its client is gone, or has broken the rules.
    pub(crate) fn lose(&self) {
        let mut state = self.state.lock();
        state.stage = Stage::Gone;
        state.clear_output();
        state.input = None;
        drop(state);
        self.wake();
    }

    /// Wakes everything that waits for a change.
    fn wake(&self) {
        let mut state = self.state.lock();
        let wakers = [state.reader.take(), state.writer.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
        self.changed.notify_waiters();
    }
}

impl State {
    /// Returns what a poll fetches, if it need not wait.
    fn fetch(&mut self) -> Option<Result<Polled, PollingRefusal>> {
        let end = match self.stage {
            Stage::Gone => return Some(Err(PollingRefusal::UnknownSession)),
            Stage::Upgraded => PollEnd::Upgrading,
            _ if !self.output.is_empty() => PollEnd::Ready,
            Stage::Polled | Stage::Probed => return None,
            // In a response of its own, because clients handle the end of a session before the
            // messages that arrive with it.
            Stage::Ended => {
                self.stage = Stage::Gone;
                PollEnd::Closed
            }
        };
        let reason = match end {
            PollEnd::Closed => self.reason.take(),
            PollEnd::Idle | PollEnd::Ready | PollEnd::Upgrading => None,
        };
        let frames = self.take_output();
        Some(Ok(Polled {
            frames,
            end,
            reason,
        }))
    }

    fn take_output(&mut self) -> Vec<Bytes> {
        let output = mem::take(&mut self.output).into();
        self.clear_output();
        output
    }

    fn clear_output(&mut self) {
        self.output = VecDeque::new();
        self.output_bytes = 0;
        self.share.set(0);
    }

    /// Returns whether the session has ended.
    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Ended | Stage::Gone)
    }
}

/// Returns the memory of a piece that is charged to the session.
fn charged_bytes(piece: &Bytes) -> u64 {
    let own = if piece.len() <= CHARGED_BYTES_MAX {
        piece.len()
    } else {
        0
    };
    (own + PIECE_BYTES) as u64
}
