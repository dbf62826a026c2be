//! The channels that the node is subscribed to at the broker.

use std::{collections::VecDeque, fmt, mem, sync::Arc, time::Duration};

use foldhash::fast::RandomState;
use futures_util::{StreamExt, stream};
use hashbrown::HashMap;
use linerate_broker::{Broker, BrokerError, StreamOptions};
use linerate_hub::ChannelName;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
    time::Instant,
};

/// The maximum number of subscriptions that are ended concurrently at the broker.
const UNSUBSCRIBES_AT_ONCE: usize = 64;

/// The subscriptions of a node at its broker: one per channel, shared by all its users.
///
/// A channel that is no longer used stays subscribed for a while, because clients that lost their
/// connection usually return soon.
pub(crate) struct Interests {
    broker: Arc<dyn Broker>,
    runtime: Handle,
    linger: Duration,
    table: Mutex<Table>,
    idle: Notify,
}

#[derive(Default)]
struct Table {
    /// The number of interests created so far.
    numbers: u64,
    channels: HashMap<ChannelName, Interest, RandomState>,
    /// Channels that became unused, and when they can be unsubscribed; ordered by time.
    idle: VecDeque<(Instant, ChannelName)>,
}

struct Interest {
    /// Distinguishes the guards of this interest from those of an earlier one that failed.
    number: u64,
    wanted_by: usize,
    /// Since when the channel is unused.
    idle_since: Option<Instant>,
    /// True if the channel is in [`Table::idle`], which lists it at most once.
    is_queued: bool,
    phase: Phase,
}

enum Phase {
    Subscribed,
    /// The callers who wait for the broker's answer, in order.
    Subscribing(Vec<oneshot::Sender<Answer>>),
    /// The callers who wait until the channel can be subscribed again, in order. Dropping the
    /// senders wakes them.
    Unsubscribing(Vec<oneshot::Sender<()>>),
}

type Answer = Result<(), BrokerError>;

/// Keeps a channel subscribed until it is dropped.
pub(crate) struct InterestGuard {
    interests: Arc<Interests>,
    channel: ChannelName,
    number: u64,
}

impl Interests {
    /// Creates an empty table. Subscriptions are made on `runtime`, so that they outlive their
    /// caller.
    pub(crate) fn new(broker: Arc<dyn Broker>, runtime: Handle, linger: Duration) -> Arc<Self> {
        Arc::new(Self {
            broker,
            runtime,
            linger,
            table: Mutex::default(),
            idle: Notify::new(),
        })
    }

    /// Subscribes to `channel` unless it is already subscribed. Completes when no later publication
    /// can be missed.
    ///
    /// Concurrent callers share one request and its answer.
    pub(crate) async fn hold(
        self: &Arc<Self>,
        channel: &ChannelName,
        options: StreamOptions,
    ) -> Result<InterestGuard, BrokerError> {
        loop {
            match self.want(channel, options) {
                // An error means that the channel has been unsubscribed.
                InterestState::Leaving(left) => _ = left.await,
                InterestState::Subscribed(guard) => return Ok(guard),
                InterestState::Subscribing(guard, answer) => {
                    let shut_down = |_| BrokerError::Away {
                        reason: "the node is shutting down".to_owned(),
                    };
                    return answer.await.map_err(shut_down)?.map(|()| guard);
                }
            }
        }
    }

    /// Ends subscriptions that have been unused for long enough. Never returns.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let next = self.table.lock().idle.front().map(|(due, _)| *due);
            match next {
                Some(due) => tokio::time::sleep_until(due).await,
                None => self.idle.notified().await,
            }
            let leaving = self.leave(Instant::now());
            stream::iter(leaving)
                .for_each_concurrent(UNSUBSCRIBES_AT_ONCE, |channel| self.unsubscribe(channel))
                .await;
        }
    }

    /// Returns the number of subscribed channels.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().channels.len()
    }

    fn want(self: &Arc<Self>, channel: &ChannelName, options: StreamOptions) -> InterestState {
        let mut table = self.table.lock();
        if let Some(interest) = table.channels.get_mut(channel) {
            if let Phase::Unsubscribing(callers) = &mut interest.phase {
                let (caller, left) = oneshot::channel();
                callers.push(caller);
                return InterestState::Leaving(left);
            }
            interest.wanted_by += 1;
            interest.idle_since = None;
            let guard = self.new_guard(channel, interest.number);
            let Phase::Subscribing(callers) = &mut interest.phase else {
                return InterestState::Subscribed(guard);
            };
            let (caller, answer) = oneshot::channel();
            callers.push(caller);
            return InterestState::Subscribing(guard, answer);
        }
        let (caller, answer) = oneshot::channel();
        table.numbers += 1;
        let number = table.numbers;
        let interest = Interest {
            number,
            wanted_by: 1,
            idle_since: None,
            is_queued: false,
            phase: Phase::Subscribing(vec![caller]),
        };
        table.channels.insert(channel.clone(), interest);
        drop(table);
        let request = SubscribeRequest {
            interests: self.clone(),
            channel: channel.clone(),
            answer: None,
        };
        self.runtime.spawn(request.run(options));
        InterestState::Subscribing(self.new_guard(channel, number), answer)
    }

    fn new_guard(self: &Arc<Self>, channel: &ChannelName, number: u64) -> InterestGuard {
        InterestGuard {
            interests: self.clone(),
            channel: channel.clone(),
            number,
        }
    }

    /// Passes the broker's answer on to all callers; without one, they are told that there is none.
    fn answer(&self, channel: &ChannelName, answer: Option<Answer>) {
        let mut table = self.table.lock();
        let callers = match &answer {
            Some(Ok(())) => {
                let interest = table.channels.get_mut(channel);
                interest.map(|interest| mem::replace(&mut interest.phase, Phase::Subscribed))
            }
            // Later callers make a new attempt.
            _ => table
                .channels
                .remove(channel)
                .map(|interest| interest.phase),
        };
        drop(table);
        if let (Some(Phase::Subscribing(callers)), Some(answer)) = (callers, answer) {
            for caller in callers {
                // An error means that the caller no longer waits.
                _ = caller.send(answer.clone());
            }
        }
    }

    /// Selects the channels that have been unused for long enough and marks them as unsubscribing.
    fn leave(&self, now: Instant) -> Vec<ChannelName> {
        let (mut table, mut leaving) = (self.table.lock(), Vec::new());
        let Table { channels, idle, .. } = &mut *table;
        while idle.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, channel)) = idle.pop_front() else {
                break;
            };
            let Some(interest) = channels.get_mut(&channel) else {
                continue;
            };
            interest.is_queued = false;
            match interest.idle_since {
                None => {}
                Some(since) if since + self.linger > now || !interest.phase.is_settled() => {
                    interest.is_queued = true;
                    // This may delay the channel by up to one `linger`, but keeps the queue in
                    // order.
                    idle.push_back((now + self.linger, channel));
                }
                Some(_) => {
                    interest.phase = Phase::Unsubscribing(Vec::new());
                    leaving.push(channel);
                }
            }
        }
        leaving
    }

    async fn unsubscribe(&self, channel: ChannelName) {
        self.broker.unsubscribe(&channel).await;
        self.table.lock().channels.remove(&channel);
    }

    fn release(&self, guard: &InterestGuard) {
        let mut table = self.table.lock();
        let Table { channels, idle, .. } = &mut *table;
        let Some(interest) = channels.get_mut(&guard.channel) else {
            return;
        };
        if interest.number != guard.number {
            return;
        }
        interest.wanted_by -= 1;
        if interest.wanted_by > 0 {
            return;
        }
        let now = Instant::now();
        interest.idle_since = Some(now);
        if !interest.is_queued {
            interest.is_queued = true;
            idle.push_back((now + self.linger, guard.channel.clone()));
            self.idle.notify_one();
        }
    }
}

impl Phase {
    fn is_settled(&self) -> bool {
        matches!(self, Self::Subscribed)
    }
}

/// What is known of a channel that a caller wants to hold.
enum InterestState {
    Leaving(oneshot::Receiver<()>),
    Subscribed(InterestGuard),
    Subscribing(InterestGuard, oneshot::Receiver<Answer>),
}

/// A request to subscribe to a channel. Its callers are answered when it is dropped, so that none
/// of them waits for a runtime that is shutting down.
struct SubscribeRequest {
    interests: Arc<Interests>,
    channel: ChannelName,
    answer: Option<Answer>,
}

impl SubscribeRequest {
    async fn run(mut self, options: StreamOptions) {
        let broker = &self.interests.broker;
        self.answer = Some(broker.subscribe(&self.channel, options).await);
    }
}

impl Drop for SubscribeRequest {
    fn drop(&mut self) {
        self.interests.answer(&self.channel, self.answer.take());
    }
}

impl Drop for InterestGuard {
    fn drop(&mut self) {
        self.interests.release(self);
    }
}

impl fmt::Debug for InterestGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InterestGuard").field(&self.channel).finish()
    }
}

impl fmt::Debug for Interests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interests")
            .field("broker", &self.broker)
            .field("channels", &self.count())
            .finish_non_exhaustive()
    }
}
