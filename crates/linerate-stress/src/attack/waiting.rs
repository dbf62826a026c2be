//! Clients that connect while the server has no free file descriptors.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{Attack, Tally, count, peer::Peer};

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(50);

/// How long clients wait to be disconnected.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// The tally's name for clients that were disconnected.
pub(crate) const CLOSED: &str = "closed";

/// The tally's name for the longest time until a client was disconnected, in milliseconds.
pub(crate) const LONGEST: &str = "ms to the last";

pub(super) struct Waiting {
    pub(super) server: SocketAddr,
    pub(super) count: usize,
}

impl Attack for Waiting {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        let since = Instant::now();
        let peers = (0..self.count).map(|_| Ok(Peer::connect(self.server)?.unblock()?));
        let mut peers: Vec<Peer> = peers.collect::<Result<_>>()?;
        count(tally, "connections", peers.len() as u64);
        let longest = tally.entry(LONGEST.to_owned()).or_default();
        let mut closed = 0;
        while !peers.is_empty() && since.elapsed() < WAIT_MAX {
            let before = peers.len();
            peers.iter_mut().for_each(Peer::ignore_input);
            peers.retain(|peer| !peer.is_lost);
            if peers.len() < before {
                closed += before - peers.len();
                *longest = (*longest).max(since.elapsed().as_millis() as u64);
            }
            thread::sleep(Duration::from_millis(1));
        }
        count(tally, CLOSED, closed as u64);
        Ok(STROKE)
    }
}
