//! Moves messages that arrive on a link to the node.

use std::{future::poll_fn, mem, pin::Pin, sync::Arc, task::Poll, time::Duration};

use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use foldhash::{HashMap, HashMapExt};
use futures_util::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::{FuturesUnordered, SelectAll},
};
use linerate_hub::{ChannelName, Publication};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};

use super::{
    catch_up::{Action, CatchUp, ChannelEvent, Progress, StreamContents},
    home::DurableChannel,
    link::{Command, Link},
    state::{Interest, NatsState, SubscriptionKind},
    subject, wire,
};
use crate::{
    broker::BrokerError,
    event::{Event, GapReason},
};

/// The maximum number of messages that go to the node at once.
const BURST_MAX: usize = 1_024;

/// The delay before a stream that could not be read is read again.
const READ_RETRY: Duration = Duration::from_millis(500);

/// Moves messages that arrive on a link to the node, in bursts.
pub(super) struct Pump {
    shared: Arc<NatsState>,
    link: Arc<Link>,
    client: Client,
    arriving: SelectAll<Pin<Box<Abortable<TaggedSubscriber>>>>,
    subscriptions: HashMap<ChannelName, Subscription>,
    work: FuturesUnordered<BoxFuture<'static, Completion>>,
    out: Vec<Event>,
    delivering: Option<BoxFuture<'static, ()>>,
    /// The id of the next subscription. Ids identify results for subscriptions that have ended in
    /// the meantime.
    next_id: u64,
}

struct Subscription {
    id: u64,
    kind: SubscriptionKind,
    stop: Vec<AbortHandle>,
    catch_up: CatchUp,
    waiting: Vec<oneshot::Sender<Result<(), BrokerError>>>,
}

/// A message and the channel of its subscription. `None` is the control subject.
type Arrival = (Option<ChannelName>, Message);

struct TaggedSubscriber {
    channel: Option<ChannelName>,
    subscriber: Subscriber,
}

enum Completion {
    /// A subscription is in effect, or was refused.
    Subscribed {
        channel: ChannelName,
        id: u64,
        result: Result<(), BrokerError>,
    },
    /// The stream of a durable channel was read.
    StreamRead {
        channel: ChannelName,
        id: u64,
        result: Result<StreamContents, BrokerError>,
    },
}

impl Pump {
    pub(super) fn new(shared: Arc<NatsState>, link: Arc<Link>) -> Self {
        Self {
            shared,
            client: link.client.clone(),
            link,
            arriving: SelectAll::new(),
            subscriptions: HashMap::new(),
            work: FuturesUnordered::new(),
            out: Vec::new(),
            delivering: None,
            next_id: 0,
        }
    }

    /// Subscribes to everything that the node wants. In effect after the next round trip.
    pub(super) async fn subscribe_all(&mut self) -> Result<(), BrokerError> {
        let subjects = &self.shared.subjects;
        let control = [subjects.control(), subjects.node_control(&self.shared.node)];
        for subject in control {
            self.receive(None, subject).await?;
        }
        for (channel, wanted) in self.shared.interests() {
            self.open(channel, wanted).await?;
        }
        Ok(())
    }

    /// Queues events that are reported to the node before anything that arrives from now on.
    pub(super) fn queue_events(&mut self, events: Vec<Event>) {
        self.out = events;
    }

    /// Runs until the sender of commands is dropped.
    pub(super) async fn run(&mut self, mut commands: mpsc::Receiver<Command>) {
        let durable = self.subscriptions.iter();
        let durable = durable.filter(|(_, subscription)| subscription.kind.durable().is_some());
        for channel in durable
            .map(|(channel, _)| channel.clone())
            .collect::<Vec<_>>()
        {
            self.read_stream(&channel, Duration::ZERO);
        }
        loop {
            if self.delivering.is_none() && !self.out.is_empty() {
                self.deliver();
            }
            let is_free = self.delivering.is_none();
            tokio::select! {
                () = delivered(&mut self.delivering), if !is_free => self.delivering = None,
                command = commands.recv() => match command {
                    Some(command) => self.handle_command(command).await,
                    None => return,
                },
                Some(done) = self.work.next() => self.handle_done(done),
                burst = next_burst(&self.link, &mut self.arriving), if is_free => self.handle_burst(burst),
            }
        }
    }

    /// Delivers what the link received before it ended, and stores how far each channel was
    /// delivered.
    pub(super) async fn finish(&mut self) {
        let mut left = self.link.backlog_messages();
        loop {
            if let Some(delivering) = self.delivering.take() {
                delivering.await;
            }
            let burst = match left {
                0 => None,
                _ => next_burst(&self.link, &mut self.arriving).now_or_never(),
            };
            let burst = burst.unwrap_or_default();
            left = left.saturating_sub(burst.len() as u64);
            self.handle_burst(burst);
            if self.out.is_empty() {
                break;
            }
            self.deliver();
        }
        for (channel, subscription) in &self.subscriptions {
            if let Some(delivered) = subscription.catch_up.delivered() {
                self.shared.set_delivered(channel, delivered);
            }
        }
    }

    /// Delivers the queued events to the node. Nothing is taken from the link until the node is
    /// ready for more.
    fn deliver(&mut self) {
        let events = mem::take(&mut self.out);
        let ingest = Arc::clone(&self.shared.ingest);
        self.delivering = Some(Box::pin(async move { ingest.ingest(events).await }));
    }

    async fn handle_command(&mut self, command: Command) {
        match command {
            Command::Subscribe { channel, done } => self.subscribe(channel, done).await,
            Command::Report(event) => self.out.push(event),
            Command::Unsubscribe(channel) => {
                if let Some(subscription) = self.subscriptions.remove(&channel) {
                    subscription.end();
                }
            }
        }
    }

    async fn subscribe(
        &mut self,
        channel: ChannelName,
        done: oneshot::Sender<Result<(), BrokerError>>,
    ) {
        let Some(wanted) = self.shared.interest(&channel) else {
            // The subscriber no longer waits.
            return;
        };
        let made = self.subscriptions.get(&channel);
        let is_new = made.is_none_or(|made| made.kind != wanted.kind);
        if is_new && let Err(error) = self.open(channel.clone(), wanted).await {
            let _ = done.send(Err(error));
            return;
        }
        let Some(subscription) = self.subscriptions.get_mut(&channel) else {
            return;
        };
        subscription.waiting.push(done);
        let is_durable = subscription.kind.durable().is_some();
        if is_durable && is_new {
            self.read_stream(&channel, Duration::ZERO);
        } else if !is_durable || !subscription.catch_up.is_reading() {
            self.await_effect(&channel);
        }
    }

    async fn open(&mut self, channel: ChannelName, wanted: Interest) -> Result<(), BrokerError> {
        let Interest { kind, delivered } = wanted;
        let mut stop = Vec::new();
        for subject in kind.subjects() {
            stop.push(self.receive(Some(channel.clone()), subject).await?);
        }
        self.next_id += 1;
        let subscription = Subscription {
            id: self.next_id,
            kind,
            stop,
            catch_up: CatchUp::new(delivered),
            waiting: Vec::new(),
        };
        if let Some(before) = self.subscriptions.insert(channel, subscription) {
            before.end();
        }
        Ok(())
    }

    async fn receive(
        &mut self,
        channel: Option<ChannelName>,
        subject: String,
    ) -> Result<AbortHandle, BrokerError> {
        self.link.expect(&subject);
        let subscriber = self.client.subscribe(subject).await;
        let subscriber = subscriber.map_err(BrokerError::refused)?;
        let (stop, registration) = AbortHandle::new_pair();
        let tagged = TaggedSubscriber {
            channel,
            subscriber,
        };
        self.arriving
            .push(Box::pin(Abortable::new(tagged, registration)));
        Ok(stop)
    }

    fn await_effect(&mut self, channel: &ChannelName) {
        let Some(subscription) = self.subscriptions.get(channel) else {
            return;
        };
        let (link, channel, id) = (Arc::clone(&self.link), channel.clone(), subscription.id);
        let subjects = subscription.kind.subjects();
        self.work.push(Box::pin(async move {
            let result = link.in_effect(&subjects).await;
            Completion::Subscribed {
                channel,
                id,
                result,
            }
        }));
    }

    fn read_stream(&mut self, channel: &ChannelName, after: Duration) {
        let Some(subscription) = self.subscriptions.get(channel) else {
            return;
        };
        let Some(durable) = subscription.kind.durable().cloned() else {
            return;
        };
        let (link, channel, id) = (Arc::clone(&self.link), channel.clone(), subscription.id);
        let delivered = subscription.catch_up.delivered().cloned();
        self.work.push(Box::pin(async move {
            sleep(after).await;
            let result = read(&link, &durable, delivered).await;
            Completion::StreamRead {
                channel,
                id,
                result,
            }
        }));
    }

    fn handle_done(&mut self, done: Completion) {
        match done {
            Completion::Subscribed {
                channel,
                id,
                result,
            } => {
                let subscription = self.subscriptions.get_mut(&channel);
                if let Some(subscription) = subscription.filter(|found| found.id == id) {
                    for done in subscription.waiting.drain(..) {
                        let _ = done.send(result.clone());
                    }
                }
            }
            Completion::StreamRead {
                channel,
                id,
                result,
            } => self.handle_read(channel, id, result),
        }
    }

    fn handle_read(
        &mut self,
        channel: ChannelName,
        id: u64,
        result: Result<StreamContents, BrokerError>,
    ) {
        let subscription = self.subscriptions.get_mut(&channel);
        let Some(subscription) = subscription.filter(|found| found.id == id) else {
            return;
        };
        let mut items = Vec::new();
        let (next, delay) = match result {
            Ok(read) => {
                for done in subscription.waiting.drain(..) {
                    let _ = done.send(Ok(()));
                }
                (
                    subscription.catch_up.handle_read(read, &mut items),
                    Duration::ZERO,
                )
            }
            Err(error) if subscription.waiting.is_empty() => {
                tracing::warn!(%channel, %error, "cannot read the stream, trying again");
                (Action::ReadStream, READ_RETRY)
            }
            Err(error) => {
                for done in subscription.waiting.drain(..) {
                    let _ = done.send(Err(error.clone()));
                }
                (Action::ReadStream, READ_RETRY)
            }
        };
        self.report(&channel, items);
        if next == Action::ReadStream {
            self.read_stream(&channel, delay);
        }
    }

    fn handle_burst(&mut self, burst: Vec<Arrival>) {
        let now = Instant::now();
        for (channel, message) in burst {
            self.link.count_taken(&message);
            match channel {
                Some(channel) => self.handle_message(now, channel, message),
                None => self.out.push(Event::Control(message.payload)),
            }
        }
    }

    fn handle_message(&mut self, now: Instant, channel: ChannelName, message: Message) {
        let Some(subscription) = self.subscriptions.get_mut(&channel) else {
            return;
        };
        if subscription.kind.durable().is_some() {
            self.handle_live(channel, message);
            return;
        }
        let bytes_max = self.shared.options.payload_bytes_max;
        if let Some(subject) = subject::of_live(&message.subject) {
            let source = self.shared.subjects.channel(subject);
            self.handle_matching(channel, source, payloads(&message));
            return;
        }
        if message.payload.len() > bytes_max {
            self.shared.reset_channel(&channel);
            self.out.push(Event::gap_in(channel, GapReason::Overflow));
            return;
        }
        match &subscription.kind {
            SubscriptionKind::Durable(_) => (),
            SubscriptionKind::Pattern { .. } => {
                let source = self.shared.subjects.channel(&message.subject);
                self.handle_matching(channel, source, vec![message.payload]);
            }
            SubscriptionKind::Plain { options, .. } => {
                let options = *options;
                let publication = wire::plain(message.payload, message.headers.as_ref());
                let publication = self.shared.number(now, &channel, options, publication);
                self.out.push(Event::Publication {
                    channel,
                    publication,
                });
            }
        }
    }

    /// Reports publications that a pattern matches.
    fn handle_matching(
        &mut self,
        pattern: ChannelName,
        source: Option<ChannelName>,
        payloads: Vec<Bytes>,
    ) {
        let Some(source) = source else {
            return;
        };
        let bytes_max = self.shared.options.payload_bytes_max;
        let events = payloads.into_iter().map(|payload| {
            let channel = pattern.clone();
            if payload.len() > bytes_max {
                return Event::gap_in(channel, GapReason::Overflow);
            }
            let publication = Publication::build(payload);
            Event::Publication {
                channel,
                publication: publication.with_source(source.clone()).finish(),
            }
        });
        self.out.extend(events);
    }

    fn handle_live(&mut self, channel: ChannelName, message: Message) {
        let Some(subscription) = self.subscriptions.get_mut(&channel) else {
            return;
        };
        // Only streams publish under the prefix of live subjects. Other messages are ignored.
        let headers = message.headers.as_ref();
        let parsed = headers.and_then(|headers| wire::publications(&message.payload, headers));
        let Some((head, publications)) = parsed else {
            return;
        };
        let (catch_up, mut items) = (&mut subscription.catch_up, Vec::new());
        let mut next = Action::Nothing;
        if head.count == 0 {
            next = catch_up.handle_position(head.position, &mut items);
        }
        let bytes_max = self.shared.options.payload_bytes_max;
        for publication in publications {
            if publication.payload().len() > bytes_max {
                catch_up.skip(publication.offset());
                items.push(ChannelEvent::Gap(GapReason::Overflow));
            } else if catch_up.handle_live(publication, &mut items) == Action::ReadStream {
                next = Action::ReadStream;
            }
        }
        self.report(&channel, items);
        if next == Action::ReadStream {
            self.read_stream(&channel, Duration::ZERO);
        }
    }

    fn report(&mut self, channel: &ChannelName, items: Vec<ChannelEvent>) {
        let event = |item| match item {
            ChannelEvent::Gap(reason) => Event::gap_in(channel.clone(), reason),
            ChannelEvent::Publication(publication) => Event::Publication {
                channel: channel.clone(),
                publication,
            },
        };
        self.out.extend(items.into_iter().map(event));
    }
}

impl Subscription {
    fn end(self) {
        self.stop.iter().for_each(AbortHandle::abort);
    }
}

impl futures_util::Stream for TaggedSubscriber {
    type Item = Arrival;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        let message = self.subscriber.poll_next_unpin(context);
        message.map(|message| message.map(|message| (self.channel.clone(), message)))
    }
}

/// Returns the payloads of a message that was republished.
fn payloads(message: &Message) -> Vec<Bytes> {
    let headers = message.headers.as_ref();
    let parsed = headers.and_then(|headers| wire::publications(&message.payload, headers));
    let publications = parsed.map(|(_, publications)| publications);
    let publications = publications.iter().flatten();
    publications.map(|one| one.payload().clone()).collect()
}

async fn read(
    link: &Link,
    durable: &DurableChannel,
    delivered: Option<Progress>,
) -> Result<StreamContents, BrokerError> {
    link.in_effect(&[subject::live(&durable.subject)]).await?;
    link.streams.catch_up(durable, delivered).await
}

/// Waits until the node has accepted the events that were delivered to it.
async fn delivered(delivering: &mut Option<BoxFuture<'static, ()>>) {
    if let Some(delivering) = delivering {
        delivering.await;
    }
}

/// Waits for messages, and takes all that have arrived, up to a limit.
async fn next_burst(
    link: &Link,
    arriving: &mut SelectAll<Pin<Box<Abortable<TaggedSubscriber>>>>,
) -> Vec<Arrival> {
    let mut burst = Vec::new();
    poll_fn(|context| {
        while burst.len() < BURST_MAX {
            match arriving.poll_next_unpin(context) {
                Poll::Ready(Some(arrived)) => burst.push(arrived),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        match burst.is_empty() {
            true => {
                link.record_idle();
                Poll::Pending
            }
            false => Poll::Ready(()),
        }
    })
    .await;
    burst
}
