//! A subscribing link that lasts as long as the node: it dials, watches the connection, and dials
//! again when it is lost.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep, sleep_until},
};

use super::{
    address::Host,
    delivery::{Delivery, MessageOutcome, Phase},
    dial::DialError,
    health::Probe,
    held::HeldEvents,
    input::{Input, Item},
    resp::{Reply, RespError},
    state::RedisState,
    stream::Stream,
    subscriptions::{Name, ReplyOutcome, Subscription, Subscriptions, Target},
};
use crate::{
    backoff::Backoff,
    event::{Event, GapReason, LinkState},
    lock::lock,
};

mod catch_up;

/// The number of orders that may wait for a link.
pub(super) const ORDERS_MAX: usize = 1_024;

/// If the node takes this long to process a burst and the connection ends soon after, Redis has
/// closed it for being too slow.
const SLOW: Duration = Duration::from_secs(1);

/// If a tick is later than this, the process was asleep or busy, and has not read what arrived
/// meanwhile.
const LATE: Duration = Duration::from_millis(250);

/// After a read of at least this many bytes, the next read follows immediately.
const BUSY_BYTES: usize = 32 << 10;

/// An order to a link.
#[derive(Debug)]
pub(super) enum Order {
    Subscribe(Name, Subscription),
    Unsubscribe(Name),
}

/// A name whose slot is now served by another master of the cluster.
#[derive(Debug)]
pub(super) struct Redirection {
    /// The link that served it.
    pub(super) link: u64,
    pub(super) name: Name,
    pub(super) subscription: Subscription,
}

/// A link to one server.
#[derive(Debug)]
pub(super) struct Link {
    shared: Arc<RedisState>,
    number: u64,
    /// The server, or `None` for the one that the URL currently leads to.
    host: Option<Host>,
    orders: mpsc::Receiver<Order>,
    /// The channel for names whose slot has moved, in a cluster.
    moved: Option<mpsc::UnboundedSender<Redirection>>,
    subscriptions: Subscriptions,
    probe: Probe,
    probe_channel: String,
    /// The number of the newest loopback publication that Redis has accepted.
    accepted: Arc<AtomicU64>,
    backoff: Backoff,
    /// The time since when publications may have been missed, and the reason.
    lost: Option<(Instant, GapReason)>,
    slow_at: Option<Instant>,
}

/// The reason why a connection ended.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("server closed the connection")]
    Eof,
    #[error("connection failed: {0}")]
    Io(#[from] std::io::Error),
    #[error("server sent an invalid reply: {0}")]
    Resp(#[from] RespError),
    #[error("server sent nothing for {0:?}")]
    Silent(Duration),
    #[error("no loopback publication came back for {0:?}")]
    Deaf(Duration),
    #[error("server refused authentication: {0}")]
    Unauthenticated(String),
    #[error("link is no longer needed")]
    Unneeded,
}

/// A connection and its state.
struct Session {
    stream: Stream,
    input: Input,
    out: Vec<u8>,
    written: usize,
    heard: Instant,
    /// When the link was last checked.
    watched: Instant,
    /// No read happens before this time, so that publications gather.
    paused_until: Option<Instant>,
    /// Messages wait in `held` until the command with this number is answered and missed
    /// publications are recovered.
    resubscribed: Option<u64>,
    held: HeldEvents,
}

impl Link {
    /// Creates a link that follows `orders`.
    pub(super) fn new(
        shared: Arc<RedisState>,
        number: u64,
        host: Option<Host>,
        probe_channel: String,
        orders: mpsc::Receiver<Order>,
        moved: Option<mpsc::UnboundedSender<Redirection>>,
    ) -> Self {
        let backoff = Backoff::new(&shared.options);
        let mut link = Self {
            shared,
            number,
            host,
            orders,
            moved,
            subscriptions: Subscriptions::default(),
            probe: Probe::default(),
            probe_channel: probe_channel.clone(),
            accepted: Arc::default(),
            backoff,
            lost: None,
            slow_at: None,
        };
        link.listen(probe_channel, Target::Probe);
        link
    }

    /// Subscribes to one of our own channels, for as long as the link exists.
    pub(super) fn listen(&mut self, name: String, target: Target) {
        let subscription = Subscription {
            kind: self.shared.kind(),
            target,
            waiters: Vec::new(),
        };
        let name = name.into_bytes().into();
        self.subscriptions.subscribe(name, subscription);
    }

    /// Maintains the link until the sender of its orders is dropped.
    pub(super) async fn run(mut self) {
        self.report(LinkState::Deaf).await;
        loop {
            let cut = match self.dial().await {
                Some(Ok((stream, input))) => self.serve(stream, input).await.to_string(),
                Some(Err(error)) => error,
                None => break,
            };
            if self.orders.is_closed() && self.orders.is_empty() {
                break;
            }
            tracing::warn!(link = self.number, reason = cut, "not connected to Redis");
            lock(&self.shared.trouble).clone_from(&cut);
            self.report(LinkState::Deaf).await;
            let wait = self.backoff.next();
            if self.handle_orders_until(sleep(wait)).await.is_none() {
                break;
            }
        }
        if let Some(state) = self.shared.health.remove(self.number) {
            self.shared.ingest.ingest(vec![Event::Link(state)]).await;
        }
    }

    /// Connects, following orders in the meantime. Returns `None` if the sender of orders is
    /// dropped.
    async fn dial(&mut self) -> Option<Result<(Stream, Input), String>> {
        let (shared, host) = (Arc::clone(&self.shared), self.host.clone());
        let dial = async move {
            let host = match host {
                Some(host) => host,
                None => shared.commands.server().await?,
            };
            let dialled = shared.dialer.dial(&host).await;
            dialled.map_err(|error: DialError| error.to_string())
        };
        self.handle_orders_until(dial).await
    }

    /// Follows orders until `future` is ready. Returns `None` if the sender of orders is dropped.
    async fn handle_orders_until<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(future);
        loop {
            tokio::select! {
                done = &mut future => return Some(done),
                order = self.orders.recv() => self.handle_order(order?),
            }
        }
    }

    fn handle_order(&mut self, order: Order) {
        match order {
            Order::Subscribe(name, subscription) => {
                self.subscriptions.subscribe(name, subscription);
            }
            Order::Unsubscribe(name) => self.subscriptions.unsubscribe(&name),
        }
    }

    /// Subscribes to everything and delivers what arrives, until the connection ends.
    async fn serve(&mut self, stream: Stream, input: Input) -> LinkError {
        let mut session = Session {
            stream,
            input,
            out: Vec::new(),
            written: 0,
            heard: Instant::now(),
            watched: Instant::now(),
            paused_until: None,
            resubscribed: None,
            held: HeldEvents::default(),
        };
        self.subscriptions.restart();
        self.probe.clear();
        session.resubscribed = Some(self.subscriptions.flush(&mut session.out));
        let cut = match self.drive(&mut session).await {
            Ok(()) => LinkError::Unneeded,
            Err(cut) => cut,
        };
        self.record_loss(session.heard);
        cut
    }

    async fn drive(&mut self, session: &mut Session) -> Result<(), LinkError> {
        let mut ticks = interval(self.shared.options.probe_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let paused_until = session.paused_until;
            tokio::select! {
                read = session.exchange() => {
                    let count = read?;
                    if count == 0 {
                        return Err(LinkError::Eof);
                    }
                    session.input.filled(count);
                    session.heard = Instant::now();
                    if self.take(session).await? && count < BUSY_BYTES {
                        self.pause(session)?;
                    }
                }
                () = pause_end(paused_until), if paused_until.is_some() => session.resume()?,
                order = self.orders.recv() => match order {
                    Some(order) => self.handle_orders(order),
                    None => return Ok(()),
                },
                _ = ticks.tick() => self.check(session).await?,
            }
            self.subscriptions.flush(&mut session.out);
            if !session.out.is_empty() || !self.subscriptions.is_settled() {
                session.resume()?;
            }
        }
    }

    /// Pauses reading so that publications gather, if the node has patience.
    fn pause(&self, session: &mut Session) -> io::Result<()> {
        let patience = self.shared.ingest.patience();
        if patience.is_zero() {
            return Ok(());
        }
        session.paused_until = Some(session.heard + patience);
        session.stream.detach()
    }

    fn handle_orders(&mut self, first: Order) {
        self.handle_order(first);
        while let Ok(order) = self.orders.try_recv() {
            self.handle_order(order);
        }
    }

    /// Handles everything that one read returned. Returns whether any of it was delivered.
    async fn take(&mut self, session: &mut Session) -> Result<bool, LinkError> {
        let mut events = Vec::new();
        let outcome = self.convert(session, &mut events);
        let is_any = !events.is_empty() && session.resubscribed.is_none();
        match session.resubscribed {
            Some(_) => session.held.extend(events),
            None => self.ingest(session, events).await,
        }
        outcome?;
        if let Some(serial) = session.resubscribed
            && self.subscriptions.is_answered(serial)
        {
            self.catch_up(session).await;
        }
        Ok(is_any)
    }

    fn convert(&mut self, session: &mut Session, events: &mut Vec<Event>) -> Result<(), LinkError> {
        let shared = Arc::clone(&self.shared);
        let mut delivery = Delivery {
            names: &shared.names,
            sequencer: &mut lock(&shared.sequencer),
            phase: match session.resubscribed {
                Some(_) => Phase::CatchingUp,
                None => Phase::Live,
            },
            now: session.heard,
        };
        while let Some(item) = session.input.next()? {
            match item {
                Item::Reply(Reply::Message(message)) => {
                    match delivery.message(&message, &mut self.subscriptions) {
                        MessageOutcome::Nothing => {}
                        MessageOutcome::One(event) => events.push(event),
                        MessageOutcome::Events(several) => events.extend(several),
                        MessageOutcome::Probe(number) => events.extend(self.handle_probe(number)),
                    }
                }
                Item::Reply(reply) => match self.subscriptions.handle_reply(reply)? {
                    ReplyOutcome::Moved(names) => self.redirect(&names),
                    ReplyOutcome::Nothing => {}
                    ReplyOutcome::Unauthenticated(reason) => {
                        return Err(LinkError::Unauthenticated(reason));
                    }
                },
                Item::Oversized { .. } => {
                    events.extend(delivery.oversized(&item, &mut self.subscriptions));
                }
            }
        }
        Ok(())
    }

    /// Handles a loopback publication that came back.
    fn handle_probe(&mut self, number: u64) -> Option<Event> {
        let round_trip = self.probe.receive(Instant::now(), number)?;
        self.backoff.reset();
        let state = LinkState::Up { round_trip };
        let changed = self.shared.health.report(self.number, state)?;
        Some(Event::Link(changed))
    }

    /// Passes names on to the link of another master.
    fn redirect(&mut self, names: &[Name]) {
        for name in names {
            let subscription = self.subscriptions.take(name);
            if let (Some(moved), Some(subscription)) = (&self.moved, subscription) {
                let _ = moved.send(Redirection {
                    link: self.number,
                    name: Arc::clone(name),
                    subscription,
                });
            }
        }
    }

    async fn ingest(&mut self, session: &mut Session, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let before = Instant::now();
        self.shared.ingest.ingest(events).await;
        if self.shared.options.reader.is_some() {
            self.shared.ingest.caught_up().await;
        }
        // No one read while the node was busy, so silence during that time proves nothing.
        session.heard = Instant::now();
        if session.heard - before > SLOW {
            self.slow_at = Some(session.heard);
        }
    }

    /// Sends a loopback publication and a `PING`, and checks the earlier ones.
    async fn check(&mut self, session: &mut Session) -> Result<(), LinkError> {
        let now = Instant::now();
        let interval = self.shared.options.probe_interval;
        let slept = session.excuse_sleep(now, interval);
        self.probe.postpone(now, slept);
        let options = &self.shared.options;
        let dead_after = options.dead_after;
        if now - session.heard > dead_after {
            return Err(LinkError::Silent(dead_after));
        }
        let oldest = self.probe.oldest();
        let age = oldest.map_or(Duration::ZERO, |(_, sent)| now - sent);
        let is_accepted =
            oldest.is_some_and(|(number, _)| number <= self.accepted.load(Ordering::Relaxed));
        if is_accepted && age > dead_after {
            return Err(LinkError::Deaf(dead_after));
        }
        if age > options.probe_timeout {
            self.report(LinkState::Deaf).await;
        }
        self.subscriptions.ping(&mut session.out);
        self.send_probe(now);
        Ok(())
    }

    fn send_probe(&mut self, now: Instant) {
        let number = self.probe.send(now);
        let (shared, accepted) = (Arc::clone(&self.shared), Arc::clone(&self.accepted));
        let mut command = ::redis::cmd(shared.scripts.word);
        command.arg(&self.probe_channel).arg(number);
        tokio::spawn(async move {
            let deadline = shared.options.probe_timeout;
            let published = shared.commands.query_within::<()>(deadline, &command);
            if published.await.is_ok() {
                accepted.fetch_max(number, Ordering::Relaxed);
            }
        });
    }

    async fn report(&self, state: LinkState) {
        if let Some(changed) = self.shared.health.report(self.number, state) {
            self.shared.ingest.ingest(vec![Event::Link(changed)]).await;
        }
    }

    /// Records that publications may be missed from now on.
    fn record_loss(&mut self, heard: Instant) {
        let is_slow = self.slow_at.is_some_and(|at| at.elapsed() < 5 * SLOW);
        let reason = match is_slow {
            true => GapReason::Overflow,
            false => GapReason::LinkLost,
        };
        self.lost.get_or_insert((heard, reason));
        self.reset_plain();
    }

    /// Begins new epochs in the channels that this node numbers.
    fn reset_plain(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut sequencer = lock(&shared.sequencer);
        for target in self.subscriptions.targets() {
            if let Target::Channel { channel, .. } = target {
                sequencer.reset_channel(channel.as_str());
            }
        }
    }
}

async fn pause_end(until: Option<Instant>) {
    if let Some(until) = until {
        sleep_until(until).await;
    }
}

impl Session {
    /// Writes pending output until something was read. Returns the number of bytes read.
    ///
    /// Cancel-safe. While the link is paused, nothing is read.
    async fn exchange(&mut self) -> io::Result<usize> {
        poll_fn(|context| {
            while self.written < self.out.len() {
                let bytes = &self.out[self.written..];
                match Pin::new(&mut self.stream).poll_write(context, bytes)? {
                    Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(count) => self.wrote(count),
                    Poll::Pending => break,
                }
            }
            // TLS may still hold some of it back.
            let _ = Pin::new(&mut self.stream).poll_flush(context)?;
            if self.paused_until.is_some() {
                return Poll::Pending;
            }
            let mut space = ReadBuf::new(self.input.space());
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut space))?;
            Poll::Ready(Ok(space.filled().len()))
        })
        .await
    }

    fn wrote(&mut self, count: usize) {
        self.written += count;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
    }

    /// Returns how long this process could not read although a check was due. Silence of the server
    /// during that time proves nothing.
    fn excuse_sleep(&mut self, now: Instant, interval: Duration) -> Duration {
        let late = (now - self.watched).saturating_sub(interval);
        self.watched = now;
        if late < LATE {
            return Duration::ZERO;
        }
        self.heard = (self.heard + late).min(now);
        late
    }

    /// Resumes reading.
    fn resume(&mut self) -> io::Result<()> {
        self.paused_until = None;
        self.stream.attach()
    }
}
