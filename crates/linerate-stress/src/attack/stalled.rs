//! Subscribers that never read.

use std::{io::Write, time::Duration};

use anyhow::{Context, Result};

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::{audience::PATH, websocket::request};

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(50);

/// The number of connections that are opened in a round.
const OPENED: usize = 100;

pub(super) struct Stalled(pub(super) Peers);

impl Stalled {
    fn open(&self) -> Result<Peer> {
        let mut peer = Peer::connect_narrow(self.0.server)?;
        peer.stream.write_all(request(PATH, "").as_bytes())?;
        Ok(peer)
    }
}

impl Attack for Stalled {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        let opened = OPENED.min(self.0.count - self.0.connected.len());
        let first = self.0.connected.len();
        for _ in 0..opened {
            self.0.connected.push(self.open()?);
        }
        for peer in &mut self.0.connected[first..] {
            peer.wait_for_open().context("attacker cannot connect")?;
        }
        count(tally, "connections", opened as u64);
        Ok(STROKE)
    }
}
