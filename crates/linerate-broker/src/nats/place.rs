//! Where a durable channel is: its newest position, and the stream that has it.
//!
//! The last message that is stored for a channel says where it is. If nothing is stored, because it
//! has expired or was removed, the stored position says it. Publishers store the position together
//! with each message, so it is never behind publications that have expired.
//!
//! If the options of a channel change, it moves to another stream. The last message in the old
//! stream then names the new one, so that nodes with the old options cannot publish without
//! noticing.

use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use futures_util::future::try_join;
use linerate_hub::{Epoch, StreamPosition};
use rand::RngExt;
use tokio::time::sleep;

use super::{
    home::{DurableChannel, Home},
    streams::{Last, Sent, Streams},
    wire::Head,
};
use crate::{broker::BrokerError, incarnation};

/// How often an operation is repeated when other nodes publish in the channel at the same time.
/// Each time, one of the nodes succeeds.
pub(super) const ATTEMPTS_MAX: u32 = 64;

/// The longest delay before an operation is repeated.
const DELAY_MAX: Duration = Duration::from_millis(20);

/// The maximum number of streams to which a channel is followed.
const MOVES_MAX: usize = 4;

/// What became of a position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Recorded {
    /// No position is stored any more, so it is unknown whether another node has published.
    Lost,
    Stored {
        /// The number of the stored position, which is this one or a newer one.
        sequence: u64,
        /// True if this one has replaced the one that was probably stored.
        was_before: bool,
    },
}

/// Where a channel is.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) position: StreamPosition,
    /// The options of the stream that has the newest publications.
    pub(super) home: Home,
    /// The last message of the channel in that stream.
    pub(super) last: Last,
    /// The number of the stored position, or 0 if none is stored.
    pub(super) position_sequence: u64,
}

impl Streams {
    /// Returns where a channel is. A channel without a position gets one.
    pub(super) async fn place(&self, channel: &DurableChannel) -> Result<Place, BrokerError> {
        for attempt in 0..ATTEMPTS_MAX {
            back_off(attempt).await;
            self.prepare(channel).await?;
            if let Some(place) = self.find_place(channel).await? {
                return Ok(place);
            }
        }
        Err(contended())
    }

    /// Begins a new epoch in a channel, unless another node has published there. Returns whether it
    /// has begun.
    pub(super) async fn renew(
        &self,
        channel: &DurableChannel,
        place: &Place,
    ) -> Result<bool, BrokerError> {
        let head = Head::of(beginning(), place.home);
        let message = PublishMessage::build().headers(head.headers());
        let sent = self.send(channel, place.home, message, place.last.sequence);
        let Sent::Stored(_) = sent.await? else {
            return Ok(false);
        };
        self.record_again(channel, &head, place.position_sequence)
            .await?;
        Ok(true)
    }

    /// Stores the position of a channel, unless a newer one is stored. `expected` is the number of
    /// the stored one, and `before` what it probably is.
    pub(super) async fn record(
        &self,
        channel: &DurableChannel,
        head: &Head,
        mut expected: u64,
        before: &StreamPosition,
    ) -> Result<Recorded, BrokerError> {
        let mut was_before = true;
        for attempt in 0..ATTEMPTS_MAX {
            back_off(attempt).await;
            match self.send_position(channel, head, expected).await? {
                Sent::Stored(acknowledgement) => {
                    return Ok(Recorded::Stored {
                        sequence: acknowledgement.sequence,
                        was_before,
                    });
                }
                Sent::NoStream => return Ok(Recorded::Lost),
                Sent::Conflict => (),
            }
            let stored = self.last_position(channel).await?;
            if stored.sequence == 0 && expected > 0 {
                return Ok(Recorded::Lost);
            }
            expected = stored.sequence;
            let position = stored.head.as_ref().map(|head| &head.position);
            was_before = position == Some(before);
            if position.is_some_and(|position| is_at_least(position, &head.position)) {
                return Ok(Recorded::Stored {
                    sequence: expected,
                    was_before,
                });
            }
        }
        Err(contended())
    }

    /// Stores the position of a channel as [`record`](Self::record) does, even if the position
    /// before was lost. The channel must be known to have this position.
    pub(super) async fn record_again(
        &self,
        channel: &DurableChannel,
        head: &Head,
        expected: u64,
    ) -> Result<(), BrokerError> {
        let before = &head.position;
        if let Recorded::Lost = self.record(channel, head, expected, before).await? {
            self.prepare(channel).await?;
            self.record(channel, head, 0, before).await?;
        }
        Ok(())
    }

    /// Returns where a channel is, or `None` if another node has given it a position in the
    /// meantime.
    async fn find_place(&self, channel: &DurableChannel) -> Result<Option<Place>, BrokerError> {
        let own = channel.home();
        let stored = self.last_stored(channel, own);
        let (mut last, recorded) = try_join(stored, self.last_position(channel)).await?;
        let position_sequence = recorded.sequence;
        let mut known = recorded.head;
        let home_of = |head: &Option<Head>| head.as_ref().map_or(own, |head| head.home);
        let recorded_home = home_of(&known);
        let (mut visited, mut is_at) = (Vec::new(), own);
        let mut home = last.head.as_ref().map_or(recorded_home, |head| head.home);
        while home != is_at && visited.len() < MOVES_MAX {
            visited.push(is_at);
            if visited.contains(&home) {
                // The channel has moved back, and nothing was published there.
                home = recorded_home;
            }
            last = self.last_stored(channel, home).await?;
            is_at = home;
            if let Some(head) = last.head.as_ref().filter(|head| head.home != home) {
                known = Some(head.clone());
                if !visited.contains(&head.home) {
                    home = head.home;
                }
            }
        }
        let stored = last.head.as_ref().filter(|head| head.home == is_at);
        let position = match stored.or(known.as_ref()) {
            Some(head) => head.position.clone(),
            None => {
                let position = beginning();
                let head = Head::of(position.clone(), own);
                return match self
                    .send_position(channel, &head, position_sequence)
                    .await?
                {
                    Sent::Stored(acknowledgement) => Ok(Some(Place {
                        position,
                        home: own,
                        last,
                        position_sequence: acknowledgement.sequence,
                    })),
                    Sent::Conflict | Sent::NoStream => Ok(None),
                };
            }
        };
        Ok(Some(Place {
            position,
            home: is_at,
            last,
            position_sequence,
        }))
    }
}

/// Returns the position of a channel without publications in a new epoch.
fn beginning() -> StreamPosition {
    StreamPosition {
        epoch: Epoch::new(&incarnation::random()),
        offset: 0,
    }
}

fn is_at_least(position: &StreamPosition, other: &StreamPosition) -> bool {
    position.epoch == other.epoch && position.offset >= other.offset
}

/// Waits before an operation is repeated, for a random time that grows with the attempts.
pub(super) async fn back_off(attempt: u32) {
    if attempt > 1 {
        let delay_max = (Duration::from_micros(100) * (1 << attempt.min(8))).min(DELAY_MAX);
        let delay = delay_max.mul_f64(rand::rng().random_range(0.0..1.0));
        sleep(delay).await;
    }
}

pub(super) fn contended() -> BrokerError {
    BrokerError::refused("too many nodes publish in the channel at the same time")
}
