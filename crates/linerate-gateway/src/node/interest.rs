//! Which channels the node is subscribed to at the broker.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::fast::RandomState;
use futures_util::{StreamExt, stream};
use hashbrown::HashMap;
use linerate_broker::{Broker, BrokerError, StreamOptions};
use linerate_hub::ChannelName;
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    time::Instant,
};

/// Channels whose subscriptions are ended at the broker at a time.
const UNSUBSCRIBES_AT_ONCE: usize = 64;

/// The subscriptions of a node at its broker, one a channel, however many want it.
///
/// A channel that nobody wants any more stays subscribed for a while, because who lost a connection comes
/// back soon.
pub(crate) struct Interests {
    broker: Arc<dyn Broker>,
    runtime: Handle,
    linger: Duration,
    table: Mutex<Table>,
    idle: Notify,
}

#[derive(Default)]
struct Table {
    /// How many interests there have been.
    numbers: u64,
    channels: HashMap<ChannelName, Interest, RandomState>,
    /// Channels nobody wanted at some time, and when that is long enough ago; in order.
    idle: VecDeque<(Instant, ChannelName)>,
}

struct Interest {
    /// Tells holds of this interest from those of a failed one before.
    number: u64,
    wanted_by: usize,
    /// Since when nobody wants it.
    idle_since: Option<Instant>,
    /// Whether it stands in [`Table::idle`], once at most.
    is_queued: bool,
    phase: Phase,
}

enum Phase {
    /// What the broker answered, as soon as it has.
    Subscribed(watch::Receiver<Option<Answer>>),
    /// Ready to be subscribed again when the sender is gone.
    Unsubscribing(watch::Receiver<()>),
}

type Answer = Result<(), BrokerError>;

/// Keeps a channel subscribed as long as it lives.
pub(crate) struct Hold {
    interests: Arc<Interests>,
    channel: ChannelName,
    number: u64,
}

impl Interests {
    /// Starts with none. Subscriptions are made on `runtime`, so that they outlive who asks for them.
    pub(crate) fn new(broker: Arc<dyn Broker>, runtime: Handle, linger: Duration) -> Arc<Self> {
        Arc::new(Self {
            broker,
            runtime,
            linger,
            table: Mutex::default(),
            idle: Notify::new(),
        })
    }

    /// Subscribes `channel`, unless it is already; ready when nothing published from now on is missed.
    ///
    /// All who ask at the same time get the same answer.
    pub(crate) async fn hold(
        self: &Arc<Self>,
        channel: &ChannelName,
        options: StreamOptions,
    ) -> Result<Hold, BrokerError> {
        loop {
            match self.want(channel, options) {
                Wanted::Leaving(mut left) => {
                    // An error means that it has left.
                    while left.changed().await.is_ok() {}
                }
                Wanted::Subscribed(hold, mut answer) => {
                    let answer = answer.wait_for(Option::is_some).await;
                    let answer = answer.ok().and_then(|answer| answer.clone());
                    return match answer {
                        Some(Ok(())) => Ok(hold),
                        Some(Err(error)) => Err(error),
                        None => Err(BrokerError::Away {
                            reason: "the node stops".to_owned(),
                        }),
                    };
                }
            }
        }
    }

    /// Ends the subscriptions that nobody wants any more, for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let next = self.table().idle.front().map(|(due, _)| *due);
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

    /// Returns how many channels are subscribed.
    pub(crate) fn count(&self) -> usize {
        self.table().channels.len()
    }

    fn want(self: &Arc<Self>, channel: &ChannelName, options: StreamOptions) -> Wanted {
        let mut table = self.table();
        if let Some(interest) = table.channels.get_mut(channel) {
            return match &interest.phase {
                Phase::Unsubscribing(left) => Wanted::Leaving(left.clone()),
                Phase::Subscribed(answer) => {
                    interest.wanted_by += 1;
                    interest.idle_since = None;
                    let hold = self.new_hold(channel, interest.number);
                    Wanted::Subscribed(hold, answer.clone())
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
        Wanted::Subscribed(self.new_hold(channel, number), answer)
    }

    fn new_hold(self: &Arc<Self>, channel: &ChannelName, number: u64) -> Hold {
        Hold {
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
            // Whoever asks from now on makes another attempt.
            self.table().channels.remove(&channel);
        }
        answers.send_replace(Some(answer));
    }

    /// Takes those out that nobody has wanted for long enough.
    fn leave(&self, now: Instant) -> Vec<(ChannelName, watch::Sender<()>)> {
        let (mut table, mut leaving) = (self.table(), Vec::new());
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
                    // Up to one linger late, which keeps the queue in order.
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
        self.table().channels.remove(&channel);
        drop(left);
    }

    fn release(&self, hold: &Hold) {
        let mut table = self.table();
        let Table { channels, idle, .. } = &mut *table;
        let Some(interest) = channels.get_mut(&hold.channel) else {
            return;
        };
        if interest.number != hold.number {
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
            idle.push_back((now + self.linger, hold.channel.clone()));
            self.idle.notify_one();
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Phase {
    fn is_settled(&self) -> bool {
        matches!(self, Self::Subscribed(answer) if answer.borrow().is_some())
    }
}

enum Wanted {
    Leaving(watch::Receiver<()>),
    Subscribed(Hold, watch::Receiver<Option<Answer>>),
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.interests.release(self);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(&self.channel).finish()
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
