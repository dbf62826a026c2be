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
    delivery::{Delivered, Delivery, Phase},
    dial::DialError,
    health::Probe,
    held::Held,
    input::{Input, Item},
    resp::{Reply, RespError},
    shared::Shared,
    stream::Stream,
    subscriptions::{Name, Outcome, Subscription, Subscriptions, Target},
};
use crate::{
    backoff::Backoff,
    event::{Event, GapReason, LinkState},
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
pub(super) struct Moved {
    /// The link that served it.
    pub(super) link: u64,
    pub(super) name: Name,
    pub(super) subscription: Subscription,
}

/// A link to one server.
#[derive(Debug)]
pub(super) struct Link {
    shared: Arc<Shared>,
    number: u64,
    /// The server, or `None` for the one that the URL currently leads to.
    host: Option<Host>,
    orders: mpsc::Receiver<Order>,
    /// The channel for names whose slot has moved, in a cluster.
    moved: Option<mpsc::UnboundedSender<Moved>>,
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
enum Cut {
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
    rest_until: Option<Instant>,
    /// Messages wait in `held` until the command with this number is answered and missed
    /// publications are recovered.
    resubscribed: Option<u64>,
    held: Held,
}

impl Link {
    /// Creates a link that follows `orders`.
    pub(super) fn new(
        shared: Arc<Shared>,
        number: u64,
        host: Option<Host>,
        probe_channel: String,
        orders: mpsc::Receiver<Order>,
        moved: Option<mpsc::UnboundedSender<Moved>>,
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
            self.shared.set_trouble(&cut);
            self.report(LinkState::Deaf).await;
            let wait = self.backoff.next();
            if self.obey_for(sleep(wait)).await.is_none() {
                break;
            }
        }
        if let Some(state) = self.shared.health.remove(self.number) {
            self.shared.ingest(vec![Event::Link(state)]).await;
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
        self.obey_for(dial).await
    }

    /// Follows orders until `future` is ready. Returns `None` if the sender of orders is dropped.
    async fn obey_for<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(future);
        loop {
            tokio::select! {
                done = &mut future => return Some(done),
                order = self.orders.recv() => self.obey(order?),
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Subscribe(name, subscription) => {
                self.subscriptions.subscribe(name, subscription);
            }
            Order::Unsubscribe(name) => self.subscriptions.unsubscribe(&name),
        }
    }

    /// Subscribes to everything and delivers what arrives, until the connection ends.
    async fn serve(&mut self, stream: Stream, input: Input) -> Cut {
        let mut session = Session {
            stream,
            input,
            out: Vec::new(),
            written: 0,
            heard: Instant::now(),
            watched: Instant::now(),
            rest_until: None,
            resubscribed: None,
            held: Held::default(),
        };
        self.subscriptions.restart();
        self.probe.clear();
        session.resubscribed = Some(self.subscriptions.flush(&mut session.out));
        let cut = match self.drive(&mut session).await {
            Ok(()) => Cut::Unneeded,
            Err(cut) => cut,
        };
        self.lose(session.heard);
        cut
    }

    async fn drive(&mut self, session: &mut Session) -> Result<(), Cut> {
        let mut ticks = interval(self.shared.options.probe_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let rest_until = session.rest_until;
            tokio::select! {
                read = session.exchange() => {
                    let count = read?;
                    if count == 0 {
                        return Err(Cut::Eof);
                    }
                    session.input.filled(count);
                    session.heard = Instant::now();
                    if self.take(session).await? && count < BUSY_BYTES {
                        self.rest(session)?;
                    }
                }
                () = rested(rest_until), if rest_until.is_some() => session.wake()?,
                order = self.orders.recv() => match order {
                    Some(order) => self.obey_all(order),
                    None => return Ok(()),
                },
                _ = ticks.tick() => self.watch(session).await?,
            }
            self.subscriptions.flush(&mut session.out);
            if !session.out.is_empty() || !self.subscriptions.is_settled() {
                session.wake()?;
            }
        }
    }

    /// Pauses reading so that publications gather, if the node has patience.
    fn rest(&self, session: &mut Session) -> io::Result<()> {
        let patience = self.shared.patience();
        if patience.is_zero() {
            return Ok(());
        }
        session.rest_until = Some(session.heard + patience);
        session.stream.rest()
    }

    fn obey_all(&mut self, first: Order) {
        self.obey(first);
        while let Ok(order) = self.orders.try_recv() {
            self.obey(order);
        }
    }

    /// Handles everything that one read returned. Returns whether any of it was delivered.
    async fn take(&mut self, session: &mut Session) -> Result<bool, Cut> {
        let mut events = Vec::new();
        let outcome = self.sort(session, &mut events);
        let is_any = !events.is_empty() && session.resubscribed.is_none();
        match session.resubscribed {
            Some(_) => session.held.extend(events),
            None => self.hand_on(session, events).await,
        }
        outcome?;
        if let Some(serial) = session.resubscribed
            && self.subscriptions.is_answered(serial)
        {
            self.catch_up(session).await;
        }
        Ok(is_any)
    }

    fn sort(&mut self, session: &mut Session, events: &mut Vec<Event>) -> Result<(), Cut> {
        let shared = Arc::clone(&self.shared);
        let mut delivery = Delivery {
            names: &shared.names,
            sequencer: &mut shared.sequencer(),
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
                        Delivered::Nothing => {}
                        Delivered::One(event) => events.push(event),
                        Delivered::Events(several) => events.extend(several),
                        Delivered::Probe(number) => events.extend(self.probed(number)),
                    }
                }
                Item::Reply(reply) => match self.subscriptions.handle_reply(reply)? {
                    Outcome::Moved(names) => self.send_away(&names),
                    Outcome::Nothing => {}
                    Outcome::Unauthenticated(reason) => return Err(Cut::Unauthenticated(reason)),
                },
                Item::Oversized { .. } => {
                    events.extend(delivery.oversized(&item, &mut self.subscriptions));
                }
            }
        }
        Ok(())
    }

    /// Handles a loopback publication that came back.
    fn probed(&mut self, number: u64) -> Option<Event> {
        let round_trip = self.probe.receive(Instant::now(), number)?;
        self.backoff.reset();
        let state = LinkState::Up { round_trip };
        let changed = self.shared.health.report(self.number, state)?;
        Some(Event::Link(changed))
    }

    /// Passes names on to the link of another master.
    fn send_away(&mut self, names: &[Name]) {
        for name in names {
            let subscription = self.subscriptions.take(name);
            if let (Some(moved), Some(subscription)) = (&self.moved, subscription) {
                let _ = moved.send(Moved {
                    link: self.number,
                    name: Arc::clone(name),
                    subscription,
                });
            }
        }
    }

    async fn hand_on(&mut self, session: &mut Session, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let before = Instant::now();
        self.shared.ingest(events).await;
        // No one read while the node was busy, so silence during that time proves nothing.
        session.heard = Instant::now();
        if session.heard - before > SLOW {
            self.slow_at = Some(session.heard);
        }
    }

    /// Sends a loopback publication and a `PING`, and checks the earlier ones.
    async fn watch(&mut self, session: &mut Session) -> Result<(), Cut> {
        let now = Instant::now();
        let interval = self.shared.options.probe_interval;
        let slept = session.sleep_until_now(now, interval);
        self.probe.postpone(now, slept);
        let options = &self.shared.options;
        let dead_after = options.dead_after;
        if now - session.heard > dead_after {
            return Err(Cut::Silent(dead_after));
        }
        let oldest = self.probe.oldest();
        let age = oldest.map_or(Duration::ZERO, |(_, sent)| now - sent);
        let is_accepted =
            oldest.is_some_and(|(number, _)| number <= self.accepted.load(Ordering::Relaxed));
        if is_accepted && age > dead_after {
            return Err(Cut::Deaf(dead_after));
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
        let mut command = ::redis::cmd(shared.publish_word());
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
            self.shared.ingest(vec![Event::Link(changed)]).await;
        }
    }

    /// Records that publications may be missed from now on.
    fn lose(&mut self, heard: Instant) {
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
        let mut sequencer = shared.sequencer();
        for target in self.subscriptions.targets() {
            if let Target::Channel { channel, .. } = target {
                sequencer.reset_channel(channel.as_str());
            }
        }
    }
}

async fn rested(until: Option<Instant>) {
    if let Some(until) = until {
        sleep_until(until).await;
    }
}

impl Session {
    /// Writes pending output until something was read. Returns the number of bytes read.
    ///
    /// Cancel-safe. While the link rests, nothing is read.
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
            if self.rest_until.is_some() {
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
    fn sleep_until_now(&mut self, now: Instant, interval: Duration) -> Duration {
        let late = (now - self.watched).saturating_sub(interval);
        self.watched = now;
        if late < LATE {
            return Duration::ZERO;
        }
        self.heard = (self.heard + late).min(now);
        late
    }

    /// Resumes reading.
    fn wake(&mut self) -> io::Result<()> {
        self.rest_until = None;
        self.stream.watch()
    }
}
