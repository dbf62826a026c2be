//! A node's link to the simulated broker. It dials, watches and catches up as the links to real
//! brokers do, and stores the positions of plain channels with the same sequencer.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use linerate_broker::{
    Beat, BoxFuture, Broker, BrokerError, Event, Gap, GapReason, History, HistoryRequest, Ingest,
    LinkState, Publish, Published, StreamOptions,
    awake::timeout_awake,
    sequencer::{Sequencer, SequencerLimits},
};
use linerate_hub::{ChannelName, Epoch, Publication, StreamPosition};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep},
};

use super::{
    network::{SharedNetwork, shard_of},
    packet::{Answer, Connection, Message, Packet, Request},
    server::is_durable,
};
use crate::node::Dispatcher;

/// How long the broker may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// How long a server may be silent before its connection is closed.
const DEAD_AFTER: Duration = Duration::from_secs(10);

const PING_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two attempts to connect.
const RETRY: Duration = Duration::from_millis(250);

/// The number of epochs of a channel that a link remembers.
const EPOCHS_MAX: usize = 8;

/// The links of a node to the shards of the broker.
#[derive(Debug)]
pub(super) struct Link {
    /// The number of the node in the network.
    number: usize,
    id: String,
    /// The number of shards.
    shards: usize,
    network: SharedNetwork,
    dispatcher: Arc<Dispatcher>,
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug)]
struct State {
    shards: Vec<Shard>,
    channels: BTreeMap<ChannelName, Channel>,
    sequencer: Sequencer,
    calls: BTreeMap<u64, Call>,
    calls_made: u64,
    /// What has arrived and was not read yet.
    inbox: VecDeque<(Connection, Message)>,
    events: Vec<Event>,
}

#[derive(Debug, Default)]
struct Shard {
    connection: Option<Connection>,
    /// What has arrived since the connection was made, until the channels have caught up.
    held: Option<Vec<(ChannelName, Publication)>>,
    lost: Arc<Notify>,
}

/// A subscribed channel.
#[derive(Debug)]
struct Channel {
    options: StreamOptions,
    /// False until the broker has answered the first time.
    is_subscribed: bool,
    /// The newest position that was delivered, in a durable channel.
    delivered: Option<StreamPosition>,
    /// The epochs that were seen, in order.
    epochs: VecDeque<Epoch>,
}

#[derive(Debug)]
struct Call {
    connection: Connection,
    /// The channel whose first subscription this is.
    subscribes: Option<ChannelName>,
    answer: oneshot::Sender<Answer>,
}

impl Link {
    pub(super) fn new(
        number: usize,
        id: String,
        network: SharedNetwork,
        dispatcher: Arc<Dispatcher>,
    ) -> Arc<Self> {
        let shards = network.lock().primaries.len();
        let state = State {
            shards: (0..shards).map(|_| Shard::default()).collect(),
            channels: BTreeMap::new(),
            sequencer: Sequencer::new(SequencerLimits::default(), &id),
            calls: BTreeMap::new(),
            calls_made: 0,
            inbox: VecDeque::new(),
            events: Vec::new(),
        };
        Arc::new(Self {
            number,
            id,
            shards,
            network,
            dispatcher,
            state: Mutex::new(state),
            arrived: Notify::new(),
        })
    }

    /// Starts the tasks of the link on the current runtime.
    pub(super) fn start(self: &Arc<Self>) {
        tokio::spawn(self.clone().read());
        for shard in 0..self.shards {
            tokio::spawn(self.clone().run(shard));
        }
    }

    /// Takes a message from the network. The node reads it when it runs.
    pub(super) fn receive(&self, connection: Connection, message: Message) {
        self.state().inbox.push_back((connection, message));
        self.arrived.notify_one();
    }

    /// Reads what arrives, and passes it to the node. Never returns.
    async fn read(self: Arc<Self>) {
        loop {
            self.arrived.notified().await;
            let events = {
                let mut state = self.state();
                for (connection, message) in mem::take(&mut state.inbox) {
                    state.handle(connection, message);
                }
                mem::take(&mut state.events)
            };
            if !events.is_empty() {
                self.dispatcher.ingest(events).await;
            }
        }
    }

    /// Keeps the connection to a shard. Never returns.
    async fn run(self: Arc<Self>, shard: usize) {
        let lost = self.state().shards[shard].lost.clone();
        loop {
            let dialled = self.network.lock().dial(self.number, shard);
            if let Some(connection) = dialled {
                self.state().shards[shard].begin(connection);
                tokio::select! {
                    biased;
                    () = lost.notified() => {}
                    _ = self.serve(shard) => {}
                }
                self.send(connection, 0, Request::Close);
                self.state().lose(connection);
                self.report(Event::Link(LinkState::Deaf));
            }
            sleep(RETRY).await;
        }
    }

    /// Catches up, and watches the connection until it has to be closed.
    async fn serve(&self, shard: usize) -> Result<(), BrokerError> {
        let node = self.id.clone();
        self.call(shard, Request::Listen { node }).await?;
        self.catch_up(shard).await?;
        self.report(Event::Link(LinkState::Up {
            round_trip: Duration::ZERO,
        }));
        loop {
            sleep(PING_INTERVAL).await;
            self.call_within(DEAD_AFTER, shard, Request::Ping, None)
                .await?;
        }
    }

    /// Subscribes to all channels of a shard again, and delivers what their streams still hold of
    /// what was missed. Then delivers what has arrived in the meantime.
    async fn catch_up(&self, shard: usize) -> Result<(), BrokerError> {
        let known: Vec<_> = {
            let state = self.state();
            let channels = state.channels.iter();
            let is_of = |(name, channel): &(&ChannelName, &Channel)| {
                self.shard_of(name) == shard && channel.is_subscribed
            };
            let known = channels.filter(is_of);
            known
                .map(|(name, channel)| (name.clone(), channel.delivered.clone()))
                .collect()
        };
        let subscribe =
            |(name, _): &(ChannelName, _)| self.call(shard, Request::Subscribe(name.clone()));
        for answer in join_all(known.iter().map(subscribe)).await {
            answer?;
        }
        let reads = known.into_iter().map(async |(name, delivered)| {
            let history = match delivered {
                Some(delivered) => Some(self.history_after(&name, delivered).await?),
                None => None,
            };
            Ok::<_, BrokerError>((name, history))
        });
        let mut caught_up = Vec::new();
        for read in join_all(reads).await {
            caught_up.push(read?);
        }
        self.state().continue_after(shard, caught_up);
        self.arrived.notify_one();
        Ok(())
    }

    /// Returns what a stream holds after a position, and all of the stream if its epoch is known to
    /// have followed that of the position.
    async fn history_after(
        &self,
        channel: &ChannelName,
        since: StreamPosition,
    ) -> Result<History, BrokerError> {
        let epoch = since.epoch.clone();
        let request = HistoryRequest {
            since: Some(since),
            ..HistoryRequest::default()
        };
        self.read_history(channel, request, &epoch).await
    }

    async fn read_history(
        &self,
        channel: &ChannelName,
        request: HistoryRequest,
        since: &Epoch,
    ) -> Result<History, BrokerError> {
        let shard = self.shard_of(channel);
        let ask = async |request| match self
            .call(shard, Request::History(channel.clone(), request))
            .await?
        {
            Answer::History(history) => Ok(history),
            other => panic!("{other:?}"),
        };
        let whole = HistoryRequest {
            since: None,
            ..request.clone()
        };
        let history: History = ask(request).await?;
        let has_followed = {
            let mut state = self.state();
            state.record(channel, &history.newest.epoch);
            state.has_followed(channel, since, &history.newest.epoch)
        };
        if !has_followed {
            return Ok(history);
        }
        let after: History = ask(whole).await?;
        Ok(match after.newest.epoch == history.newest.epoch {
            true => History {
                is_contiguous: false,
                ..after
            },
            false => history,
        })
    }

    fn report(&self, event: Event) {
        self.state().events.push(event);
        self.arrived.notify_one();
    }

    fn send(&self, connection: Connection, call: u64, request: Request) {
        let packet = Packet::ToServer { call, request };
        self.network.lock().send(connection, packet);
    }

    async fn call(&self, shard: usize, request: Request) -> Result<Answer, BrokerError> {
        self.call_within(ANSWER_MAX, shard, request, None).await
    }

    async fn call_within(
        &self,
        deadline: Duration,
        shard: usize,
        request: Request,
        subscribes: Option<ChannelName>,
    ) -> Result<Answer, BrokerError> {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut state = self.state();
            let Some(connection) = state.shards[shard].connection else {
                return Err(away());
            };
            state.calls_made += 1;
            let number = state.calls_made;
            let call = Call {
                connection,
                subscribes,
                answer,
            };
            state.calls.insert(number, call);
            self.send(connection, number, request);
            number
        };
        match timeout_awake(deadline, answered).await {
            Some(answer) => answer.map_err(|_| away()),
            None => {
                self.state().calls.remove(&number);
                Err(BrokerError::Timeout { deadline })
            }
        }
    }

    fn shard_of(&self, channel: &ChannelName) -> usize {
        shard_of(channel, self.shards)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Shard {
    fn begin(&mut self, connection: Connection) {
        self.connection = Some(connection);
        self.held = Some(Vec::new());
    }
}

impl State {
    fn handle(&mut self, connection: Connection, message: Message) {
        let mut shards = self.shards.iter();
        let Some(shard) = shards.position(|shard| shard.connection == Some(connection)) else {
            return;
        };
        match message {
            Message::Answer(number, answer) => {
                let Some(call) = self.calls.remove(&number) else {
                    return;
                };
                if let (Some(name), Answer::Position(position)) = (&call.subscribes, &answer) {
                    self.subscribed(name, position);
                }
                // An error means that the caller no longer waits.
                _ = call.answer.send(answer);
            }
            Message::Closed => {
                self.shards[shard].lost.notify_one();
                self.lose(connection);
            }
            Message::Control(message) => self.events.push(Event::Control(message)),
            Message::Publication(channel, publication) => match &mut self.shards[shard].held {
                Some(held) => held.push((channel, publication)),
                None => self.deliver(&channel, publication),
            },
        }
    }

    fn subscribed(&mut self, name: &ChannelName, newest: &StreamPosition) {
        if let Some(channel) = self.channels.get_mut(name) {
            channel.is_subscribed = true;
            channel.delivered = is_durable(name).then(|| newest.clone());
            self.record(name, &newest.epoch);
        }
    }

    /// Passes a publication to the node, unless it was delivered before.
    fn deliver(&mut self, name: &ChannelName, publication: Publication) {
        let Some(channel) = self.channels.get_mut(name) else {
            return;
        };
        if !channel.is_subscribed {
            return;
        }
        let publication = match publication.position().cloned() {
            Some(position) => {
                let is_covered = channel.delivered.as_ref().is_some_and(|delivered| {
                    delivered.epoch == position.epoch && position.offset <= delivered.offset
                });
                if is_covered {
                    return;
                }
                channel.delivered = Some(position.clone());
                self.record(name, &position.epoch);
                publication
            }
            None => {
                let built = Publication::build(publication.payload().clone());
                let options = channel.options;
                self.sequencer.publish(Instant::now(), name, options, built)
            }
        };
        self.events.push(Event::Publication {
            channel: name.clone(),
            publication,
        });
    }

    /// Ends a connection. Everything that waits for an answer fails.
    fn lose(&mut self, connection: Connection) {
        for shard in &mut self.shards {
            if shard.connection == Some(connection) {
                (shard.connection, shard.held) = (None, None);
            }
        }
        self.calls.retain(|_, call| call.connection != connection);
    }

    /// Reports what channels may have missed, and continues to deliver.
    fn continue_after(&mut self, shard: usize, caught_up: Vec<(ChannelName, Option<History>)>) {
        let mut missed = Vec::new();
        for (name, history) in &caught_up {
            if !history
                .as_ref()
                .is_some_and(|history| history.is_contiguous)
            {
                self.sequencer.reset_channel(name.as_str());
                missed.push(name.clone());
            }
        }
        if !missed.is_empty() {
            self.events.push(Event::Gap(Gap {
                channels: Some(missed),
                lasted: Duration::from_secs(1),
                reason: GapReason::LinkLost,
            }));
        }
        for (name, history) in caught_up {
            let Some(history) = history else { continue };
            for publication in history.publications {
                self.deliver(&name, publication);
            }
            if let Some(channel) = self.channels.get_mut(&name) {
                channel.delivered = Some(history.newest);
            }
        }
        for (name, publication) in self.shards[shard].held.take().unwrap_or_default() {
            self.deliver(&name, publication);
        }
    }

    fn record(&mut self, name: &ChannelName, epoch: &Epoch) {
        let Some(channel) = self.channels.get_mut(name) else {
            return;
        };
        if !channel.epochs.contains(epoch) {
            channel.epochs.push_back(epoch.clone());
            if channel.epochs.len() > EPOCHS_MAX {
                channel.epochs.pop_front();
            }
        }
    }

    fn has_followed(&self, name: &ChannelName, earlier: &Epoch, later: &Epoch) -> bool {
        let Some(channel) = self.channels.get(name) else {
            return false;
        };
        let place = |epoch| channel.epochs.iter().position(|one| one == epoch);
        matches!((place(earlier), place(later)), (Some(earlier), Some(later)) if earlier < later)
    }
}

fn away() -> BrokerError {
    let reason = "the connection was lost".to_owned();
    BrokerError::Away { reason }
}

impl Broker for Link {
    fn publish<'a>(
        &'a self,
        channel: &'a ChannelName,
        _: Publish,
    ) -> BoxFuture<'a, Result<Published, BrokerError>> {
        Box::pin(async move {
            let request = Request::Publish(channel.clone());
            self.call(self.shard_of(channel), request).await?;
            Ok(Published::default())
        })
    }

    fn subscribe<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            let shard = self.shard_of(channel);
            let entry = Channel {
                options,
                is_subscribed: false,
                delivered: None,
                epochs: VecDeque::new(),
            };
            self.state().channels.insert(channel.clone(), entry);
            let request = Request::Subscribe(channel.clone());
            let name = Some(channel.clone());
            let answer = self.call_within(ANSWER_MAX, shard, request, name).await;
            if answer.is_err() {
                self.unsubscribe(channel).await;
            } else if !options.is_durable {
                let now = Instant::now();
                self.state().sequencer.hold(now, channel);
            }
            answer.map(drop)
        })
    }

    fn unsubscribe<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut state = self.state();
            state.channels.remove(channel);
            state.sequencer.close(channel.as_str());
            let connection = state.shards[self.shard_of(channel)].connection;
            drop(state);
            if let Some(connection) = connection {
                self.send(connection, 0, Request::Unsubscribe(channel.clone()));
            }
        })
    }

    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> BoxFuture<'a, Result<History, BrokerError>> {
        Box::pin(async move {
            if options.size_max == 0 {
                return Err(BrokerError::NoHistory);
            }
            if !options.is_durable {
                let now = Instant::now();
                let mut state = self.state();
                return Ok(state.sequencer.history(now, channel.as_str(), &request));
            }
            let since = request.since.as_ref().map(|since| since.epoch.clone());
            let since = since.unwrap_or_else(|| Epoch::new(""));
            self.read_history(channel, request, &since).await
        })
    }

    fn remove_history<'a>(
        &'a self,
        _: &'a ChannelName,
        _: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async { Err(BrokerError::NoHistory) })
    }

    fn send_control<'a>(
        &'a self,
        to: Option<&'a str>,
        message: Bytes,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        let to = to.map(str::to_owned);
        Box::pin(async move {
            self.call(0, Request::Control { to, message })
                .await
                .map(drop)
        })
    }

    fn node(&self) -> &str {
        &self.id
    }

    fn beat(&self, details: Bytes) -> BoxFuture<'_, Result<Beat, BrokerError>> {
        Box::pin(async move {
            let node = self.id.clone();
            match self.call(0, Request::Beat { node, details }).await? {
                Answer::Beat(beat) => Ok(beat),
                other => panic!("{other:?}"),
            }
        })
    }

    fn deregister(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async move {
            let node = self.id.clone();
            self.call(0, Request::Deregister { node }).await.map(drop)
        })
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, BrokerError>> {
        Box::pin(async move {
            match self.call(0, Request::Nodes).await? {
                Answer::Nodes(nodes) => Ok(nodes),
                other => panic!("{other:?}"),
            }
        })
    }

    fn node_details(&self) -> BoxFuture<'_, Result<Vec<Bytes>, BrokerError>> {
        Box::pin(async move {
            match self.call(0, Request::Details).await? {
                Answer::Details(details) => Ok(details),
                other => panic!("{other:?}"),
            }
        })
    }

    fn is_pattern(&self, _: &ChannelName) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "simulation"
    }

    fn probe_write(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async move { self.call(0, Request::Ping).await.map(drop) })
    }

    fn link(&self) -> LinkState {
        let state = self.state();
        let mut shards = state.shards.iter();
        match shards.all(|shard| shard.connection.is_some() && shard.held.is_none()) {
            false => LinkState::Deaf,
            true => LinkState::Up {
                round_trip: Duration::ZERO,
            },
        }
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for shard in 0..self.shards {
                let connection = self.state().shards[shard].connection;
                if let Some(connection) = connection {
                    self.send(connection, 0, Request::Close);
                    self.state().lose(connection);
                }
            }
        })
    }
}
