//! Clients that send messages before the server has decided whether to accept them.

use std::time::Duration;

use anyhow::Result;

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::websocket::frame;

/// The path of an endpoint that never decides.
pub(crate) const PATH: &str = "/undecided";

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The number of connections that are opened in a round.
const OPENED: usize = 10;

/// The number of clients that leave in a round, without a decision.
const LEAVING: usize = 2;

/// The size of a message in bytes.
const MESSAGE_BYTES: usize = 60_000;

pub(super) struct Undecided(pub(super) Peers);

impl Attack for Undecided {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        let Peers {
            server,
            count: peers_max,
            connected: peers,
        } = &mut self.0;
        peers.retain(|peer| !peer.is_lost);
        if peers.len() == *peers_max {
            peers.drain(..LEAVING);
        }
        let opened = OPENED.min(*peers_max - peers.len());
        for _ in 0..opened {
            peers.push(Peer::ask(*server, PATH, "")?.unblock()?);
        }
        count(tally, "connections", opened as u64);
        for peer in peers {
            if peer.unsent.is_empty() {
                peer.unsent = frame(0x2, &[b'x'; MESSAGE_BYTES]).to_bytes();
            }
            let bytes = peer.send();
            count(tally, "bytes", bytes as u64);
        }
        Ok(STROKE)
    }
}
