//! A broadcast, for libraries without publish/subscribe.

use std::future;

use futures_util::{Stream, StreamExt, stream};
use tokio::sync::broadcast;

/// How many messages may wait for a connection; one that falls behind further is closed.
const MESSAGES_MAX: usize = 1_024;

/// Sends messages from any connection to all connections: tokio's broadcast channel.
#[derive(Clone, Debug)]
pub struct Hub<M>(broadcast::Sender<M>);

impl<M: Clone + Send + 'static> Hub<M> {
    /// Creates one without subscribers.
    pub fn new() -> Self {
        Self(broadcast::Sender::new(MESSAGES_MAX))
    }

    /// Sends `message` to all subscribers.
    pub fn publish(&self, message: M) {
        // An error means that there are no subscribers, which is fine.
        _ = self.0.send(message);
    }

    /// Subscribes. A receiver that falls behind gets an error.
    pub fn subscribe(&self) -> broadcast::Receiver<M> {
        self.0.subscribe()
    }

    /// Subscribes with a stream of messages, which ends for a receiver that falls behind.
    pub fn stream(&self) -> impl Stream<Item = M> + Send + use<M> {
        stream::unfold(self.subscribe(), |mut messages| async {
            Some((messages.recv().await, messages))
        })
        .map(std::result::Result::ok)
        .take_while(|message| future::ready(message.is_some()))
        .filter_map(future::ready)
    }
}

impl<M: Clone + Send + 'static> Default for Hub<M> {
    fn default() -> Self {
        Self::new()
    }
}
