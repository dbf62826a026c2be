//! Messages that this node sends to itself through the server. A message comes back once the server
//! has processed everything sent before it.

use std::{collections::VecDeque, mem, sync::Mutex};

use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use tokio::sync::{Notify, oneshot};

use crate::lock::lock;

/// Sends numbered messages to its own inbox.
///
/// A server processes the commands of a connection in order. When a message comes back, all earlier
/// subscriptions are therefore in effect, and all earlier publications have been accepted.
#[derive(Debug)]
pub(super) struct Loopback {
    inbox: String,
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The callers that wait for a message that is not sent yet.
    waiting: Vec<oneshot::Sender<()>>,
    /// The callers that wait for messages that were sent, by the numbers of the messages.
    under_way: VecDeque<(u64, Vec<oneshot::Sender<()>>)>,
    sent: u64,
    is_over: bool,
}

/// The link has ended in the meantime.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkEnded;

impl Loopback {
    /// Creates a loopback through `inbox`.
    pub(super) fn new(inbox: String) -> Self {
        Self {
            inbox,
            state: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// Returns the subject to subscribe to.
    pub(super) fn inbox(&self) -> &str {
        &self.inbox
    }

    /// Waits until the server has processed everything that was sent before. There is no deadline.
    pub(super) async fn round_trip(&self) -> Result<(), LinkEnded> {
        let (done, back) = oneshot::channel();
        {
            let mut state = lock(&self.state);
            if state.is_over {
                return Err(LinkEnded);
            }
            state.waiting.push(done);
        }
        self.wake.notify_one();
        back.await.map_err(|_| LinkEnded)
    }

    /// Sends one message for all callers that are waiting, in a loop.
    pub(super) async fn send(&self, client: &Client) {
        loop {
            self.wake.notified().await;
            let Some(number) = self.next() else { continue };
            let payload = number.to_be_bytes().to_vec().into();
            if client.publish(self.inbox.clone(), payload).await.is_err() {
                return;
            }
        }
    }

    /// Receives the messages that come back.
    pub(super) async fn receive(&self, mut subscriber: Subscriber) {
        while let Some(message) = subscriber.next().await {
            if let Ok(number) = message.payload[..].try_into() {
                self.handle_return(u64::from_be_bytes(number));
            }
        }
    }

    /// Notifies all waiting callers that the link has ended.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        state.waiting.clear();
        state.under_way.clear();
    }

    fn next(&self) -> Option<u64> {
        let mut state = lock(&self.state);
        let waiting = mem::take(&mut state.waiting);
        if waiting.is_empty() {
            return None;
        }
        state.sent += 1;
        let number = state.sent;
        state.under_way.push_back((number, waiting));
        Some(number)
    }

    fn handle_return(&self, number: u64) {
        let mut state = lock(&self.state);
        while let Some((first, _)) = state.under_way.front()
            && *first <= number
        {
            for done in state
                .under_way
                .pop_front()
                .into_iter()
                .flat_map(|(_, all)| all)
            {
                // A caller that no longer waits has dropped its receiver.
                let _ = done.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::Loopback;

    #[test]
    fn one_message_wakes_all_current_and_earlier_waiters() {
        let loopback = Loopback::new("inbox".to_owned());
        let mut a = Box::pin(loopback.round_trip());
        let mut b = Box::pin(loopback.round_trip());
        assert!((&mut a).now_or_never().is_none());
        assert!((&mut b).now_or_never().is_none());
        assert_eq!(loopback.next(), Some(1));
        assert_eq!(loopback.next(), None);
        let mut c = Box::pin(loopback.round_trip());
        assert!((&mut c).now_or_never().is_none());
        assert_eq!(loopback.next(), Some(2));
        loopback.handle_return(1);
        assert!((&mut a).now_or_never().unwrap().is_ok());
        assert!((&mut b).now_or_never().unwrap().is_ok());
        assert!((&mut c).now_or_never().is_none());
        loopback.handle_return(2);
        assert!((&mut c).now_or_never().unwrap().is_ok());
    }

    #[test]
    fn no_task_waits_for_an_ended_link() {
        let loopback = Loopback::new("inbox".to_owned());
        let mut before = Box::pin(loopback.round_trip());
        assert!((&mut before).now_or_never().is_none());
        loopback.end();
        assert!(before.now_or_never().unwrap().is_err());
        assert!(loopback.round_trip().now_or_never().unwrap().is_err());
    }
}
