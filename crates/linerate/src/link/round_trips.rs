//! Pings of the application whose Pongs it is waiting for.

use std::{
    hash::{DefaultHasher, Hasher},
    time::Duration,
};

use tokio::sync::oneshot;

use crate::clock;

/// What identifies the Pong to a Ping: a hash of its payload, so that Pongs take no memory. A peer
/// that finds another payload with the same hash gains nothing, because it knows the payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PongMark(u64);

impl PongMark {
    pub(super) fn of(payload: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(payload);
        Self(hasher.finish())
    }
}

/// Pings that have not been answered, in the order in which they were sent. Each has the channel
/// on which its future waits for the time of the Pong, by [`clock::now`].
#[derive(Default)]
pub(super) struct RoundTrips(Vec<(PongMark, oneshot::Sender<Duration>)>);

impl RoundTrips {
    /// Waits for the Pong of a Ping that has just been queued. Forgets the Pings whose futures were
    /// dropped, so that the memory is bounded by what the application is waiting for.
    pub(super) fn expect(&mut self, mark: PongMark) -> oneshot::Receiver<Duration> {
        self.0.retain(|(_, answer)| !answer.is_closed());
        let (answer, answered) = oneshot::channel();
        self.0.push((mark, answer));
        answered
    }

    /// Ends the wait for the Ping that this Pong answers, and for those before it, which the peer
    /// does not have to answer (RFC 6455 §5.5.3: "MAY elect to send a Pong frame for only the most
    /// recently processed Ping frame").
    pub(super) fn handle_pong(&mut self, mark: PongMark) {
        let answered = self.0.iter().position(|(sent, _)| *sent == mark);
        let Some(last) = answered else { return };
        let now = clock::now();
        for (_, answer) in self.0.drain(..=last) {
            // The future may have been dropped.
            _ = answer.send(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PongMark, RoundTrips};

    #[tokio::test]
    async fn pings_whose_futures_were_dropped_are_forgotten() {
        let mut round_trips = RoundTrips::default();
        let kept = round_trips.expect(PongMark::of(b"kept"));
        for _ in 0..100 {
            drop(round_trips.expect(PongMark::of(b"dropped")));
        }
        assert!(round_trips.0.len() <= 2);
        round_trips.handle_pong(PongMark::of(b"kept"));
        assert!(kept.await.is_ok());
    }
}
