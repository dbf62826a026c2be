//! All clients of a server: receives, checks and times their messages.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::StoryError;
use super::cell::Cell;
use super::dialect::Dialect;
use super::message::{Stamp, stamps};
use super::subscriber::{Subscriber, Wanted};
use crate::load::{Latencies, Watch};
use crate::record::Latency;

/// Number of bytes to read at a time.
const READ_BYTES: usize = 256 << 10;

/// Subscribers of one server, each of which asks for one source.
#[derive(Debug)]
pub struct Audience {
    seats: Vec<Seat>,
    /// Connections that are open but never read.
    _stalled: Vec<Subscriber>,
    watch: Watch,
    start: Instant,
    buffer: Vec<u8>,
    trial: u32,
    heard: Heard,
}

#[derive(Debug)]
struct Seat {
    subscriber: Subscriber,
    source: u32,
    /// The number that the next message must have.
    next: u64,
    is_open: bool,
}

/// What the subscribers received in a trial.
#[derive(Debug)]
pub struct Heard {
    /// Number of messages that arrived in order.
    pub delivered: u64,
    /// Payload bytes of all data frames, including whatever surrounds the messages in them.
    pub bytes: u64,
    /// Number of messages that were skipped or never arrived.
    pub lost: u64,
    /// Number of messages that arrived again, or late.
    pub repeated: u64,
    /// Number of messages that differ from what was published, or are not for this subscriber.
    pub wrong: u64,
    /// Number of connections that ended.
    pub ended: u64,
    /// How the last of these connections ended.
    pub end: Option<String>,
    latencies: Latencies,
}

impl Heard {
    fn new() -> Self {
        Self {
            delivered: 0,
            bytes: 0,
            lost: 0,
            repeated: 0,
            wrong: 0,
            ended: 0,
            end: None,
            latencies: Latencies::new(),
        }
    }

    /// Returns how long deliveries took, counted from when the messages were due.
    pub fn latency(&self) -> Option<Latency> {
        self.latencies.percentiles()
    }
}

impl Audience {
    /// Connects and subscribes the clients of a cell. Stamps count from `start`.
    ///
    /// # Errors
    ///
    /// Returns an error if a client was not subscribed.
    pub fn open(
        address: SocketAddr,
        dialect: Dialect,
        cell: Cell,
        start: Instant,
    ) -> Result<Self, StoryError> {
        let wanted = |number: u32| Wanted {
            address,
            dialect,
            source: number % cell.sources,
            batch_ms: cell.batch_ms,
        };
        let seats = (0..cell.subscribers).map(|number| {
            let wanted = wanted(number);
            Ok(Seat {
                subscriber: Subscriber::open(wanted)?,
                source: wanted.source,
                next: 0,
                is_open: true,
            })
        });
        let seats = seats.collect::<Result<Vec<_>, StoryError>>()?;
        let stalled = 0..cell.stalled.unwrap_or_default();
        let stalled = stalled.map(|number| Subscriber::open_slow(wanted(number)));
        let stalled = stalled.collect::<Result<Vec<_>, StoryError>>()?;
        let watch = Watch::new(seats.iter().map(|seat| &seat.subscriber));
        Ok(Self {
            watch: watch.map_err(|error| StoryError::System {
                what: "cannot watch the sockets",
                source: io::Error::other(error),
            })?,
            seats,
            _stalled: stalled,
            start,
            buffer: vec![0; READ_BYTES],
            trial: 0,
            heard: Heard::new(),
        })
    }

    /// Begins a trial. Messages of earlier trials that still arrive do not count.
    pub fn begin(&mut self, trial: u32) {
        self.trial = trial;
        self.heard = Heard::new();
        for seat in &mut self.seats {
            seat.next = 0;
        }
    }

    /// Receives messages for at most `time`. Returns whether anything arrived.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot wait.
    pub fn listen(&mut self, time: Duration) -> Result<bool, StoryError> {
        let mut any = false;
        let ready = self.watch.wait(time).map_err(|error| StoryError::System {
            what: "cannot wait for the sockets",
            source: io::Error::other(error),
        })?;
        for place in ready {
            any = true;
            let seat = &mut self.seats[place];
            if seat.is_open {
                seat.take(&mut self.buffer, self.start, self.trial, &mut self.heard);
            }
        }
        Ok(any)
    }

    /// Returns the number of subscribers that have not yet received everything that was published
    /// by their source.
    pub fn waiting(&self, published: &[u64]) -> usize {
        let waits = |seat: &&Seat| seat.is_open && seat.next < published[seat.source as usize];
        self.seats.iter().filter(waits).count()
    }

    /// Returns the number of messages that should have been delivered.
    pub fn expected(&self, published: &[u64]) -> u64 {
        self.seats
            .iter()
            .map(|seat| published[seat.source as usize])
            .sum()
    }

    /// Returns the number of subscribers.
    pub fn len(&self) -> usize {
        self.seats.len()
    }

    /// Returns whether there are no subscribers.
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Returns what was received since the trial began. Messages that were published and never
    /// arrived count as lost.
    pub fn heard(&mut self, published: &[u64]) -> &Heard {
        for seat in &mut self.seats {
            let published = published[seat.source as usize];
            self.heard.lost += published.saturating_sub(seat.next);
            seat.next = seat.next.max(published);
        }
        &self.heard
    }
}

impl Seat {
    fn take(&mut self, buffer: &mut [u8], start: Instant, trial: u32, heard: &mut Heard) {
        let (source, next) = (self.source, &mut self.next);
        let received = self.subscriber.receive(buffer, |payload| {
            let now = start.elapsed();
            heard.bytes += payload.len() as u64;
            for stamp in stamps(payload) {
                match stamp {
                    Some(stamp) if stamp.trial < trial => {}
                    Some(stamp) if stamp.trial == trial && stamp.source == source => {
                        heard.judge(stamp, now, next);
                    }
                    _ => heard.wrong += 1,
                }
            }
        });
        if let Err(error) = received {
            self.is_open = false;
            heard.ended += 1;
            heard.end = Some(error.to_string());
        }
    }
}

impl Heard {
    fn judge(&mut self, stamp: Stamp, now: Duration, next: &mut u64) {
        if stamp.number < *next {
            self.repeated += 1;
            return;
        }
        self.lost += stamp.number - *next;
        *next = stamp.number + 1;
        self.delivered += 1;
        self.latencies.record(now.saturating_sub(stamp.due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(number: u64) -> Stamp {
        Stamp {
            trial: 1,
            source: 0,
            number,
            due: Duration::ZERO,
        }
    }

    #[test]
    fn what_is_passed_over_is_lost_and_what_comes_again_is_repeated() {
        let (mut heard, mut next) = (Heard::new(), 0);
        for number in [0, 1, 4, 4, 3, 5] {
            heard.judge(stamp(number), Duration::from_micros(1), &mut next);
        }
        assert_eq!((heard.delivered, heard.lost, heard.repeated), (4, 2, 2));
        assert_eq!(next, 6);
    }
}
