//! The state of a connection: its phase, its received messages, and the tasks that wait for it.

use std::{
    collections::VecDeque,
    task::{Context, Poll, Waker},
};

use linerate_proto::engine::Closed;

use crate::{Error, Message, Result};

/// The bytes added for each waiting message, so that empty messages are bounded as well.
const MESSAGE_OVERHEAD_BYTES: usize = 64;

/// The phase of a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Phase {
    Connecting,
    Open,
    /// The connection is over. `None` after a clean close.
    Over(Option<Error>),
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct State {
    phase: Phase,
    queue: VecDeque<Message>,
    queued_bytes: usize,
    queue_bytes_max: usize,
    closed: Option<(Closed, String)>,
    wakers: Vec<Waker>,
}

impl State {
    /// Creates the state of a connection with at most `queue_bytes_max` bytes of waiting messages.
    pub(crate) fn new(queue_bytes_max: usize) -> Self {
        Self {
            phase: Phase::Connecting,
            queue: VecDeque::new(),
            queued_bytes: 0,
            queue_bytes_max,
            closed: None,
            wakers: Vec::new(),
        }
    }

    pub(crate) fn handle_open(&mut self) {
        if self.phase == Phase::Connecting {
            self.phase = Phase::Open;
        }
    }

    /// Adds a received message to the queue.
    ///
    /// # Errors
    /// Returns an error if the queue is full. The caller must then close the connection.
    pub(crate) fn handle_message(&mut self, message: Message) -> Result<()> {
        if self.phase != Phase::Open {
            return Ok(());
        }
        let bytes = self.queued_bytes + message.len() + MESSAGE_OVERHEAD_BYTES;
        if bytes > self.queue_bytes_max {
            let error = Error::RecvQueueFull {
                bytes,
                bytes_max: self.queue_bytes_max,
            };
            self.fail(error.clone());
            return Err(error);
        }
        self.queued_bytes = bytes;
        self.queue.push_back(message);
        Ok(())
    }

    /// Handles the end of the connection.
    pub(crate) fn handle_close(&mut self, closed: Closed, reason: String) {
        let error = match self.phase {
            Phase::Connecting => Some(Error::ConnectFailed),
            Phase::Open if !closed.clean => Some(Error::Abnormal),
            _ => None,
        };
        if !matches!(self.phase, Phase::Over(Some(_))) {
            self.phase = Phase::Over(error);
        }
        self.closed = Some((closed, reason));
    }

    /// Fails the connection. Messages that have already arrived can still be received.
    fn fail(&mut self, error: Error) {
        if !matches!(self.phase, Phase::Over(_)) {
            self.phase = Phase::Over(Some(error));
        }
    }

    pub(crate) const fn closed(&self) -> Option<&(Closed, String)> {
        self.closed.as_ref()
    }

    pub(crate) fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match &self.phase {
            Phase::Connecting => self.wait(cx),
            Phase::Over(Some(error)) => Poll::Ready(Err(error.clone())),
            Phase::Open | Phase::Over(None) => Poll::Ready(Ok(())),
        }
    }

    /// Returns the next message, or `None` after a clean close. An error is returned again on every
    /// call.
    pub(crate) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>>> {
        if let Some(message) = self.queue.pop_front() {
            self.queued_bytes -= message.len() + MESSAGE_OVERHEAD_BYTES;
            return Poll::Ready(Ok(Some(message)));
        }
        match &self.phase {
            Phase::Over(None) => Poll::Ready(Ok(None)),
            Phase::Over(Some(error)) => Poll::Ready(Err(error.clone())),
            Phase::Connecting | Phase::Open => self.wait(cx),
        }
    }

    pub(crate) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Closed> {
        match &self.closed {
            Some((closed, _)) => Poll::Ready(*closed),
            None => self.wait(cx),
        }
    }

    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        if !self.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Removes and returns the wakers. Wake them only while the state is not borrowed.
    pub(crate) fn take_wakers(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Closed = Closed {
        code: 1000,
        clean: true,
    };

    fn open(queue_bytes_max: usize) -> State {
        let mut state = State::new(queue_bytes_max);
        state.handle_open();
        state
    }

    fn recv(state: &mut State) -> Poll<Result<Option<Message>>> {
        state.poll_recv(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn messages_come_in_order_and_before_the_end() {
        let mut state = open(1_000);
        state.handle_message("a".into()).unwrap();
        state.handle_message(vec![1].into()).unwrap();
        state.handle_close(CLEAN, "bye".into());
        assert_eq!(recv(&mut state), Poll::Ready(Ok(Some("a".into()))));
        assert_eq!(recv(&mut state), Poll::Ready(Ok(Some(vec![1].into()))));
        assert_eq!(recv(&mut state), Poll::Ready(Ok(None)));
        assert_eq!(state.closed(), Some(&(CLEAN, "bye".into())));
    }

    #[test]
    fn what_does_not_fit_ends_the_connection_and_what_came_before_stays() {
        let mut state = open(2 * (64 + 10));
        state.handle_message(vec![1; 10].into()).unwrap();
        state.handle_message(vec![2; 10].into()).unwrap();
        let full = Error::RecvQueueFull {
            bytes: 2 * 74 + 64,
            bytes_max: 148,
        };
        assert_eq!(state.handle_message("".into()), Err(full.clone()));
        assert_eq!(state.handle_message("late".into()), Ok(()));
        state.handle_close(CLEAN, String::new());
        for byte in [1, 2] {
            assert_eq!(
                recv(&mut state),
                Poll::Ready(Ok(Some(vec![byte; 10].into())))
            );
        }
        assert_eq!(recv(&mut state), Poll::Ready(Err(full.clone())));
        assert_eq!(
            recv(&mut state),
            Poll::Ready(Err(full)),
            "the error is returned again"
        );
    }

    #[test]
    fn what_is_received_makes_room() {
        let mut state = open(74);
        for _ in 0..10 {
            state.handle_message(vec![1; 10].into()).unwrap();
            assert!(recv(&mut state).is_ready());
        }
        assert!(recv(&mut state).is_pending());
    }

    #[test]
    fn ends_before_and_after_opening_are_told_apart() {
        let lost = Closed {
            code: 1006,
            clean: false,
        };
        let mut connecting = State::new(100);
        connecting.handle_close(lost, String::new());
        let opened = connecting.poll_open(&mut Context::from_waker(Waker::noop()));
        assert_eq!(opened, Poll::Ready(Err(Error::ConnectFailed)));
        let mut state = open(100);
        state.handle_close(lost, String::new());
        assert_eq!(recv(&mut state), Poll::Ready(Err(Error::Abnormal)));
    }
}
