//! Bodies and messages whose last byte never arrives.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;

use super::{Attack, Tally, count, peer::Peer};
use crate::websocket::frame;

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(20);

/// The number of connections that are opened in a round.
const OPENED: usize = 20;

/// The size of a body in bytes, which is what `server.request_bytes_max` allows.
pub(crate) const BODY_BYTES: usize = 1 << 20;

/// The size of a message in bytes, which is what `client.message_bytes_max` allows.
pub(crate) const MESSAGE_BYTES: usize = 64 << 10;

/// One peer in this many sends a body, the others a message.
pub(crate) const BODY_EVERY: usize = 2;

/// The tally's name for peers that the server has refused or disconnected.
pub(crate) const SENT_AWAY: &str = "sent away";

pub(super) struct Hoard {
    server: SocketAddr,
    count: usize,
    peers: Vec<Peer>,
    opened: usize,
    /// True if requests and messages are short and whole, and each peer leaves after one.
    is_well_behaved: bool,
}

impl Hoard {
    pub(super) const fn new(server: SocketAddr, count: usize, is_twin: bool) -> Self {
        Self {
            server,
            count,
            peers: Vec::new(),
            opened: 0,
            is_well_behaved: is_twin,
        }
    }

    fn open(&mut self) -> Result<Peer> {
        self.opened += 1;
        let mut peer = match self.opened % BODY_EVERY {
            0 => {
                let mut peer = Peer::connect(self.server)?;
                let (claimed, sent) = match self.is_well_behaved {
                    true => (2, 2),
                    false => (BODY_BYTES, BODY_BYTES - 1),
                };
                let head = format!(
                    "POST /api/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                     Content-Length: {claimed}\r\n\r\n"
                );
                peer.unsent = head.into_bytes();
                peer.unsent.resize(peer.unsent.len() + sent, b' ');
                peer
            }
            _ => {
                let mut peer = Peer::ask(self.server, "/connection/websocket", "")?;
                peer.unsent = frame(0x1, br#"{"id":1,"connect":{}}"#).to_bytes();
                if !self.is_well_behaved {
                    let message = frame(0x1, &[b' '; MESSAGE_BYTES]).to_bytes();
                    peer.unsent.extend(&message[..message.len() - 1]);
                }
                peer
            }
        };
        peer = peer.unblock()?;
        peer.send();
        Ok(peer)
    }
}

impl Attack for Hoard {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        if self.is_well_behaved {
            self.peers.clear();
        }
        let before = self.peers.len();
        self.peers.retain(|peer| !peer.is_lost);
        count(tally, SENT_AWAY, (before - self.peers.len()) as u64);
        for _ in 0..OPENED.min(self.count - self.peers.len()) {
            let peer = self.open()?;
            self.peers.push(peer);
            count(tally, "connections", 1);
        }
        for peer in &mut self.peers {
            peer.ignore_input();
            if !peer.unsent.is_empty() {
                peer.send();
            }
        }
        Ok(STROKE)
    }
}
