//! A thread of the load: an epoll instance and its clients.

use std::mem::MaybeUninit;
use std::time::Instant;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use super::Plan;
use super::client::Client;
use super::schedule::Schedule;
use super::station::{Phase, Station};
use crate::load::LoadError;
use crate::load::error::system;
use crate::load::meter::Latencies;

/// Number of bytes to read at once.
const READ_BYTES: usize = 128 << 10;

/// Largest number of events to handle between two waits.
const EVENTS: usize = 256;

/// Event data of the conductor's signal and of the timer. The event data of a client is its index.
const SIGNAL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// The clients of one thread.
pub(super) struct Worker<'a> {
    plan: &'a Plan<'a>,
    station: &'a Station,
    epoll: OwnedFd,
    slots: Vec<Slot>,
    schedule: Option<Schedule>,
    buffer: Box<[u8]>,
    base: Instant,
    latencies: Latencies,
    phase: Phase,
    /// When the measurement ended.
    ended: Option<Instant>,
    /// Bytes of answers that have arrived, including those on connections that have ended.
    verified: u64,
    /// Number of connections that have ended.
    connections: u64,
    /// Bytes that have arrived, counted as they were received.
    received: u64,
}

/// A client, and how long it has been silent.
struct Slot {
    client: Client,
    /// The client's activity when it was last checked, and since when it has not changed.
    activity: u64,
    since: Instant,
    /// True if the client has done anything since the measurement began.
    moved: bool,
}

impl Slot {
    fn new(client: Client) -> Self {
        Self {
            client,
            activity: 0,
            since: Instant::now(),
            moved: false,
        }
    }
}

impl<'a> Worker<'a> {
    /// Opens the connections of the clients `numbers`. Connections that are replaced during the
    /// load are only started here and become open later.
    pub(super) fn new(
        plan: &'a Plan<'a>,
        station: &'a Station,
        numbers: impl Iterator<Item = usize>,
    ) -> Result<Self, LoadError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(system("cannot create an epoll instance"))?;
        let edges = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, station.signal(), EventData::new_u64(SIGNAL), edges)
            .map_err(system("cannot watch a descriptor"))?;
        let mut worker = Self {
            plan,
            station,
            epoll,
            slots: Vec::new(),
            schedule: None,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            base: Instant::now(),
            latencies: Latencies::new(),
            phase: Phase::Opening,
            ended: None,
            verified: 0,
            connections: 0,
            received: 0,
        };
        for number in numbers {
            let client = match plan.echo.messages {
                None => Client::open(plan, number)?,
                Some(_) => Client::start(plan, number)?,
            };
            worker.slots.push(Slot::new(client));
        }
        Ok(worker)
    }

    /// Runs until the conductor ends the load, and returns the latencies in nanoseconds.
    pub(super) fn run(mut self) -> Result<Latencies, LoadError> {
        let mut space = [MaybeUninit::uninit(); EVENTS];
        while !self.is_done()? {
            let ready = match epoll::wait(&self.epoll, &mut space, None) {
                Ok((ready, _)) => &*ready,
                Err(rustix::io::Errno::INTR) => &[],
                Err(errno) => return Err(system("epoll failed")(errno)),
            };
            for &Event { data, flags, .. } in ready {
                match data.u64() {
                    SIGNAL => self.handle_signal()?,
                    TIMER => self.send_due()?,
                    place => self.handle_ready(place as usize, flags)?,
                }
            }
            self.station
                .report(self.verified, self.connections, self.received);
        }
        self.finish()
    }

    fn handle_ready(&mut self, place: usize, flags: EventFlags) -> Result<(), LoadError> {
        let Self {
            plan,
            slots,
            schedule,
            buffer,
            base,
            latencies,
            phase,
            ..
        } = self;
        let clients = slots.len() as u64;
        let slot = &mut slots[place];
        let before = slot.client.check.verified(&plan.script);
        let received = slot.client.received;
        let mut first = slot.client.check.answered();
        let is_measured =
            *phase == Phase::Measured || (*phase == Phase::Ending && schedule.is_some());
        let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let outcome = slot.client.handle_ready(
            plan,
            ended,
            buffer,
            || base.elapsed().as_nanos() as u64,
            |now, since_window, messages| {
                if !is_measured {
                    return;
                }
                match schedule {
                    None => latencies.record_n(since_window, messages),
                    Some(schedule) => {
                        for message in first..first + messages {
                            let number = message * clients + place as u64;
                            if let Some(delay) = schedule.delay(number, now) {
                                latencies.record_n(delay, 1);
                            }
                        }
                        first += messages;
                    }
                }
            },
        )?;
        self.verified += slot.client.check.verified(&plan.script) - before;
        self.received += slot.client.received - received;
        if outcome.is_break() {
            self.replace(place)?;
        }
        Ok(())
    }

    /// Replaces a connection that has ended with a new one.
    fn replace(&mut self, place: usize) -> Result<(), LoadError> {
        self.connections += 1;
        let number = self.slots[place].client.number;
        self.slots[place] = Slot {
            moved: true,
            ..Slot::new(Client::start(self.plan, number)?)
        };
        self.watch(place)
    }

    /// Watches a client's socket. Edges of both directions are requested at once, so that a wait
    /// for room to write needs no system call.
    fn watch(&self, place: usize) -> Result<(), LoadError> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let socket = &self.slots[place].client.socket;
        epoll::add(&self.epoll, socket, EventData::new_u64(place as u64), flags)
            .map_err(system("cannot watch a socket"))
    }

    /// Follows the phase that the conductor announces, and checks whether any client has been
    /// silent for too long.
    fn handle_signal(&mut self) -> Result<(), LoadError> {
        let phase = self.station.phase();
        let is_new = phase != self.phase;
        let was_opening = self.phase == Phase::Opening;
        self.phase = phase;
        if phase == Phase::Abandoned {
            return Ok(());
        }
        if is_new && was_opening {
            self.begin()?;
        }
        if is_new && phase == Phase::Measured {
            if let Some(schedule) = &mut self.schedule {
                schedule.measure_from(self.base.elapsed().as_nanos() as u64);
            }
            for slot in &mut self.slots {
                slot.activity = slot.client.activity;
                slot.moved = false;
            }
        }
        if is_new && phase == Phase::Ending {
            self.ended = Some(Instant::now());
        }
        self.look_for_silence()
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        for place in 0..self.slots.len() {
            self.slots[place].since = Instant::now();
            self.watch(place)?;
            if self.plan.echo.messages.is_none() && self.plan.echo.rate.is_none() {
                let now = self.base.elapsed().as_nanos() as u64;
                self.slots[place].client.begin(self.plan, now)?;
            }
        }
        let share = self.slots.len() as f64 / f64::from(self.plan.echo.connections);
        if let Some(rate) = self.plan.echo.rate {
            let schedule = Schedule::new(rate * share, self.base.elapsed().as_nanos() as u64)?;
            let edges = EventFlags::IN | EventFlags::ET;
            epoll::add(
                &self.epoll,
                schedule.timer(),
                EventData::new_u64(TIMER),
                edges,
            )
            .map_err(system("cannot watch the timer"))?;
            self.schedule = Some(schedule);
        }
        Ok(())
    }

    /// Sends the messages of an open loop that are due.
    fn send_due(&mut self) -> Result<(), LoadError> {
        let Some(schedule) = &mut self.schedule else {
            return Ok(());
        };
        if self.phase == Phase::Ending {
            return Ok(());
        }
        let clients = self.slots.len() as u64;
        for number in schedule.take_due(self.base.elapsed().as_nanos() as u64) {
            let slot = &mut self.slots[(number % clients) as usize];
            slot.client.send(self.plan, 1)?;
        }
        Ok(())
    }

    fn look_for_silence(&mut self) -> Result<(), LoadError> {
        let silence_max = self.plan.budget.silence_max;
        for slot in &mut self.slots {
            let activity = slot.client.activity;
            if activity != slot.activity || !slot.client.waits() {
                slot.activity = activity;
                slot.since = Instant::now();
                slot.moved = true;
            } else if slot.since.elapsed() > silence_max {
                return Err(LoadError::Silent(silence_max));
            }
        }
        if self.phase == Phase::Measured && self.is_behind() {
            self.station.report_behind();
        }
        Ok(())
    }

    /// Returns whether a server is so far behind its schedule that it will not catch up. Latency
    /// would only continue to grow.
    fn is_behind(&self) -> bool {
        let Some(schedule) = &self.schedule else {
            return false;
        };
        let backlog_max = 2 * self.plan.budget.silence_max.as_nanos() as u64;
        let now = self.base.elapsed().as_nanos() as u64;
        let clients = self.slots.len() as u64;
        self.slots.iter().enumerate().any(|(place, slot)| {
            let oldest = slot.client.check.answered() * clients + place as u64;
            slot.client.waits() && schedule.intended(oldest) + backlog_max < now
        })
    }

    /// Returns whether the thread can end.
    ///
    /// A client that has been waiting for an answer since the measurement began keeps the thread
    /// running, so that a lost message is noticed even in a short measurement. In an open loop, any
    /// client that waits for an answer does, because there the slowest answers matter most.
    fn is_done(&mut self) -> Result<bool, LoadError> {
        let Some(ended) = self.ended else {
            return Ok(self.phase == Phase::Abandoned);
        };
        if self.phase == Phase::Abandoned {
            return Ok(true);
        }
        let is_open_loop = self.schedule.is_some();
        let owes = |slot: &Slot| {
            slot.client.waits()
                && (is_open_loop || !(slot.moved || slot.client.activity != slot.activity))
        };
        let is_late = is_open_loop && ended.elapsed() > self.plan.budget.silence_max;
        Ok(is_late || !self.slots.iter().any(owes))
    }

    fn finish(mut self) -> Result<Latencies, LoadError> {
        if let Some(schedule) = &self.schedule {
            // An answer that never arrived took at least as long as the client waited for it.
            let now = self.base.elapsed().as_nanos() as u64;
            let clients = self.slots.len() as u64;
            for (place, slot) in self.slots.iter().enumerate() {
                let mut number = slot.client.check.answered() * clients + place as u64;
                while number < schedule.sent() {
                    if let Some(delay) = schedule.delay(number, now) {
                        self.latencies.record_n(delay, 1);
                    }
                    number += clients;
                }
            }
        }
        for slot in self.slots {
            slot.client.abandon()?;
        }
        Ok(self.latencies)
    }
}
