//! Many connections that do nothing, or disconnect at once.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use anyhow::Result;

use super::{Abuse, Attack, Tally, count, peer::Peer};

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// How many connections are opened per second.
pub(crate) const CONNECTS: usize = 500;

pub(super) struct Connects {
    abuse: Abuse,
    server: SocketAddr,
    /// The maximum number of connections that are kept open.
    count: usize,
    peers: VecDeque<Peer>,
}

impl Connects {
    pub(super) const fn new(abuse: Abuse, server: SocketAddr, count: usize) -> Self {
        Self {
            abuse,
            server,
            count,
            peers: VecDeque::new(),
        }
    }
}

impl Attack for Connects {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        const EACH: usize = CONNECTS * STROKE.as_millis() as usize / 1_000;
        for _ in 0..EACH {
            let peer = match self.abuse {
                Abuse::HalfOpen => Peer::ask(self.server, "/echo", "")?,
                _ => Peer::connect(self.server)?,
            };
            if self.abuse != Abuse::Churn {
                self.peers.push_back(peer);
            }
        }
        count(tally, "connections", EACH as u64);
        let excess = self.peers.len().saturating_sub(self.count);
        self.peers.drain(..excess);
        Ok(STROKE)
    }
}
