//! Clients that send messages before the server has decided whether to accept them.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::websocket::frame;

/// The path of an endpoint that never decides.
pub(crate) const PATH: &str = "/undecided";

/// The path of an endpoint that accepts every request and discards the messages.
pub(crate) const TWIN_PATH: &str = "/decided";

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The number of connections that are opened in a round.
const OPENED: usize = 10;

/// The number of clients that leave in a round, without a decision.
const LEAVING: usize = 2;

/// The size of a message in bytes.
const MESSAGE_BYTES: usize = 60_000;

/// The number of messages that a client sends: more than a server queues.
const MESSAGES: usize = 4;

pub(super) struct Undecided {
    peers: Peers,
    path: &'static str,
    messages: Vec<u8>,
}

impl Undecided {
    /// Creates clients of an endpoint that does not decide, or with `is_twin` of one that does.
    pub(super) fn new(server: SocketAddr, peers: usize, is_twin: bool) -> Self {
        Self {
            peers: Peers::new(server, peers),
            path: if is_twin { TWIN_PATH } else { PATH },
            messages: frame(0x2, &[b'x'; MESSAGE_BYTES])
                .to_bytes()
                .repeat(MESSAGES),
        }
    }
}

impl Attack for Undecided {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        let Peers {
            server,
            count: peers_max,
            connected: peers,
        } = &mut self.peers;
        peers.retain(|peer| !peer.is_lost);
        if peers.len() == *peers_max {
            peers.drain(..LEAVING);
        }
        let opened = OPENED.min(*peers_max - peers.len());
        for _ in 0..opened {
            let mut peer = Peer::ask(*server, self.path, "")?.unblock()?;
            peer.unsent.clone_from(&self.messages);
            peers.push(peer);
        }
        count(tally, "connections", opened as u64);
        for peer in peers {
            if !peer.unsent.is_empty() {
                let bytes = peer.send();
                count(tally, "bytes", bytes as u64);
            }
        }
        Ok(STROKE)
    }
}
