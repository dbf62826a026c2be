//! The channels that the node is subscribed to at the broker.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use foldhash::fast::RandomState;
use futures_util::{StreamExt, stream};
use hashbrown::HashMap;
use linerate_broker::{Broker, BrokerError, StreamOptions};
use linerate_hub::ChannelName;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
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
    /// The broker's answer, once it has arrived.
    Subscribed(watch::Receiver<Option<Answer>>),
    /// The channel can be subscribed again when the sender is dropped.
    Unsubscribing(watch::Receiver<()>),
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
                InterestState::Leaving(mut left) => {
                    // An error means that the channel has been unsubscribed.
                    while left.changed().await.is_ok() {}
                }
                InterestState::Subscribed(guard, mut answer) => {
                    let answer = answer.wait_for(Option::is_some).await;
                    let answer = answer.ok().and_then(|answer| answer.clone());
                    return match answer {
                        Some(Ok(())) => Ok(guard),
                        Some(Err(error)) => Err(error),
                        None => Err(BrokerError::Away {
                            reason: "the node is shutting down".to_owned(),
                        }),
                    };
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
                .for_each_concurrent(UNSUBSCRIBES_AT_ONCE, |(channel, left)| {
                    self.unsubscribe(channel, left)
                })
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
            return match &interest.phase {
                Phase::Unsubscribing(left) => InterestState::Leaving(left.clone()),
                Phase::Subscribed(answer) => {
                    interest.wanted_by += 1;
                    interest.idle_since = None;
                    let guard = self.new_guard(channel, interest.number);
                    InterestState::Subscribed(guard, answer.clone())
                }
            };
        }
        let (answers, answer) = watch::channel(None);
        table.numbers += 1;
        let number = table.numbers;
        let interest = Interest {
            number,
            wanted_by: 1,
            idle_since: None,
            is_queued: false,
            phase: Phase::Subscribed(answer.clone()),
        };
        table.channels.insert(channel.clone(), interest);
        drop(table);
        self.runtime
            .spawn(self.clone().subscribe(channel.clone(), options, answers));
        InterestState::Subscribed(self.new_guard(channel, number), answer)
    }

    fn new_guard(self: &Arc<Self>, channel: &ChannelName, number: u64) -> InterestGuard {
        InterestGuard {
            interests: self.clone(),
            channel: channel.clone(),
            number,
        }
    }

    async fn subscribe(
        self: Arc<Self>,
        channel: ChannelName,
        options: StreamOptions,
        answers: watch::Sender<Option<Answer>>,
    ) {
        let answer = self.broker.subscribe(&channel, options).await;
        if answer.is_err() {
            // Later callers make a new attempt.
            self.table.lock().channels.remove(&channel);
        }
        answers.send_replace(Some(answer));
    }

    /// Selects the channels that have been unused for long enough and marks them as unsubscribing.
    fn leave(&self, now: Instant) -> Vec<(ChannelName, watch::Sender<()>)> {
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
                    let (sender, left) = watch::channel(());
                    interest.phase = Phase::Unsubscribing(left);
                    leaving.push((channel, sender));
                }
            }
        }
        leaving
    }

    async fn unsubscribe(&self, channel: ChannelName, left: watch::Sender<()>) {
        self.broker.unsubscribe(&channel).await;
        self.table.lock().channels.remove(&channel);
        drop(left);
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
        matches!(self, Self::Subscribed(answer) if answer.borrow().is_some())
    }
}

/// What is known of a channel that a caller wants to hold.
enum InterestState {
    Leaving(watch::Receiver<()>),
    Subscribed(InterestGuard, watch::Receiver<Option<Answer>>),
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
