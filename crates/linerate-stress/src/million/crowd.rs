//! A process of subscribers, all of them on one thread of the reactor.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, SystemTime},
};

use anyhow::{Result, anyhow};
use hdrhistogram::Histogram;
use linerate_reactor::{
    Closed, ConnectError, Connector, Context, Destination, Handler, Message, Opened, Options,
    Remote, WorkerContext,
};
use rand::RngExt;

use super::{
    plan::{Plan, channel_name},
    report::CrowdReport,
    seat::{Received, Seat, Verdict},
};
use crate::child::orders;

/// The first argument of such a process.
pub(crate) const CROWD: &str = "crowd";

/// How many connections of a process are being opened at a time.
const AT_ONCE: u32 = 16;

/// The maximum delay before a subscriber reconnects. Each chooses its own.
const BACK_AFTER_MAX: Duration = Duration::from_secs(4);

/// How long an attempt to connect may take. The whole machine is busy meanwhile.
const CONNECT_MAX: Duration = Duration::from_secs(60);

/// Connects when it is told to, and answers each further line of standard input with what was seen
/// since the last one, until the input ends. `final N` asks which subscribers have not received the
/// last of N publications.
pub(crate) fn run(plan: Plan, number: u32) -> Result<()> {
    let crowd = Crowd(Arc::new(Shared::new(plan, number)?));
    let connector = Connector::new()
        .with_workers(1)
        .with_options(options(plan))
        .prepare(crowd.clone())?;
    let remote = connector.remote();
    let thread = thread::spawn(move || connector.run());
    for order in orders() {
        match order.split_once(' ') {
            Some(("final", total)) => crowd.0.lock().judge(plan, total.parse()?),
            _ if order == "connect" => crowd.0.begin(&remote)?,
            _ if order == "hold" => crowd.0.lock().hold(),
            _ => {}
        }
        println!("{}", serde_json::to_string(&crowd.0.lock().take())?);
    }
    crowd.0.lock().is_ending = true;
    remote.shut_down();
    let ended = thread.join();
    Ok(ended.map_err(|_| anyhow!("a callback panicked"))??)
}

fn options(plan: Plan) -> Options {
    let mut options = Options::default();
    options.connections_max = plan.connections_max() as usize;
    options.attempts_max = AT_ONCE as usize;
    // The nodes send pings.
    options.config.ping_interval = None;
    options
}

/// The callbacks of all connections of the process.
#[derive(Clone)]
struct Crowd(Arc<Shared>);

struct Shared {
    plan: Plan,
    source: IpAddr,
    state: Mutex<State>,
}

struct State {
    first: u32,
    seats: Vec<Seat>,
    /// The next seat that has not been connected.
    next: u32,
    /// The number of seats that are to be connected.
    wanted: u32,
    is_ending: bool,
    seen: CrowdReport,
    delays: Histogram<u64>,
}

impl Shared {
    fn new(plan: Plan, number: u32) -> Result<Self> {
        let subscribers = plan.crowd(number);
        let seats = vec![Seat::default(); subscribers.len()];
        Ok(Self {
            plan,
            source: plan.source(number).into(),
            state: Mutex::new(State {
                first: subscribers.start,
                next: 0,
                wanted: u32::try_from(seats.len())?,
                seats,
                is_ending: false,
                seen: CrowdReport::default(),
                delays: Histogram::new(2)?,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to connect the first seats; each that is open lets the next begin.
    fn begin(&self, remote: &Remote) -> Result<()> {
        for _ in 0..AT_ONCE {
            let Some(seat) = self.lock().next_seat() else {
                break;
            };
            let node = self.plan.node(self.lock().first + seat);
            remote.connect(self.destination(seat, node)?)?;
        }
        Ok(())
    }

    fn destination(&self, seat: u32, node: u32) -> Result<Destination> {
        let channel = channel_name(self.plan.channel(self.lock().first + seat));
        let address = self.plan.address(node);
        let url = format!("ws://{address}/raw?channel={channel}&gaps=true");
        Ok(Destination::parse(&url)?
            .with_sources(&[self.source])
            .with_timeout(CONNECT_MAX)
            .with_tag(seat.into()))
    }

    /// Returns where a subscriber connects that has been disconnected: any node, as a load balancer
    /// would choose.
    fn another(&self, seat: u32) -> Result<Destination> {
        let mut random = rand::rng();
        let node = random.random_range(0..self.plan.nodes);
        let delay = random.random_range(Duration::ZERO..BACK_AFTER_MAX);
        Ok(self.destination(seat, node)?.with_delay(delay))
    }
}

impl State {
    fn next_seat(&mut self) -> Option<u32> {
        let next = self.next;
        (next < self.wanted).then(|| {
            self.next += 1;
            next
        })
    }

    /// Connects no further seats.
    fn hold(&mut self) {
        self.wanted = self.next;
    }

    fn opened(&mut self, seat: u32) {
        self.seen.open += 1;
        self.seats[seat as usize].was_open = true;
    }

    fn receive(&mut self, seat: u32, channel: u32, message: &str) {
        let Ok(received) = serde_json::from_str::<Received>(message) else {
            self.seen.misrouted += 1;
            return;
        };
        let seat = &mut self.seats[seat as usize];
        if received.gap.is_some() {
            self.seen.gaps += 1;
            return seat.tell();
        }
        if received.c != channel {
            self.seen.misrouted += 1;
            return;
        }
        self.seen.received += 1;
        match seat.receive(received.n) {
            Verdict::Next => {}
            Verdict::Repeated => self.seen.repeated += 1,
            Verdict::MissedTold(missed) => self.seen.missed_told += u64::from(missed),
            Verdict::LostUntold(lost) => self.seen.lost_untold += u64::from(lost),
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let delay = now.saturating_sub(received.at.into()) / 1_000;
        // The histogram grows as needed, so this does not fail.
        _ = self.delays.record(u64::try_from(delay).unwrap_or_default());
    }

    /// Counts the subscribers that have not received the last publication of their channel.
    fn judge(&mut self, plan: Plan, total: u64) {
        let seats = (self.first..).zip(&self.seats);
        let behind = seats.filter(|(subscriber, seat)| {
            let last = plan.publications(plan.channel(*subscriber), total);
            seat.was_open && u64::from(seat.last) < last
        });
        self.seen.behind = behind.count() as u64;
    }

    fn take(&mut self) -> CrowdReport {
        let counts = self.delays.iter_recorded();
        let delays = counts.map(|it| (it.value_iterated_to(), it.count_at_value()));
        let seen = CrowdReport {
            wanted: self.wanted.into(),
            delays_us: delays.collect(),
            ..self.seen.clone()
        };
        self.delays.reset();
        self.seen = CrowdReport {
            open: self.seen.open,
            ..CrowdReport::default()
        };
        seen
    }
}

impl Handler for Crowd {
    /// The number of the seat.
    type Data = u32;

    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) -> u32 {
        let tag = opened.destination().map_or(0, Destination::tag);
        let seat = u32::try_from(tag).unwrap_or_default();
        let mut state = self.0.lock();
        let is_first = !state.seats[seat as usize].was_open;
        state.opened(seat);
        let next = if is_first { state.next_seat() } else { None };
        let first = state.first;
        drop(state);
        if let Some(next) = next {
            let node = self.0.plan.node(first + next);
            let connected = self.0.destination(next, node).map(|it| cx.connect(&it));
            self.0.lock().note(connected);
        }
        seat
    }

    fn message(&mut self, seat: &mut u32, _cx: &mut Context<'_>, message: Message<'_>) {
        let mut state = self.0.lock();
        let channel = self.0.plan.channel(state.first + *seat);
        match message {
            Message::Text(text) => state.receive(*seat, channel, text),
            Message::Binary(_) => state.seen.misrouted += 1,
        }
    }

    fn failed(
        &mut self,
        worker: &mut WorkerContext<'_>,
        destination: &Destination,
        error: ConnectError,
    ) {
        let mut state = self.0.lock();
        if state.is_ending {
            return;
        }
        state.seen.failed += 1;
        state.seen.last_failure = Some(format!("{:#}", anyhow::Error::new(error)));
        drop(state);
        let seat = u32::try_from(destination.tag()).unwrap_or_default();
        let connected = self.0.another(seat).map(|it| worker.connect(&it));
        self.0.lock().note(connected);
    }

    fn close(&mut self, seat: u32, cx: &mut Context<'_>, closed: Closed) {
        let mut state = self.0.lock();
        if state.is_ending {
            return;
        }
        state.seen.open -= 1;
        state.seats[seat as usize].tell();
        *state.seen.closed.entry(closed.code).or_default() += 1;
        drop(state);
        let connected = self.0.another(seat).map(|it| cx.connect(&it));
        self.0.lock().note(connected);
    }
}

impl State {
    /// Records that a connection could not be requested, which leaves its seat empty.
    fn note(&mut self, connected: Result<Result<(), ConnectError>>) {
        let error = match connected {
            Ok(Ok(())) => return,
            Ok(Err(error)) => anyhow::Error::new(error),
            Err(error) => error,
        };
        self.seen.failed += 1;
        self.seen.last_failure = Some(format!("{error:#}"));
    }
}
