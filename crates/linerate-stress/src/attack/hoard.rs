//! Bodies and messages whose last byte never comes.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;

use super::{
    Attack, Tally, count,
    peer::{Peer, frame},
};

/// The time between two strokes.
const STROKE: Duration = Duration::from_millis(20);

/// Connections that are opened in a stroke.
const OPENED: usize = 20;

/// Bytes of a body: what `server.request_bytes_max` allows.
pub(crate) const BODY_BYTES: usize = 1 << 20;

/// Bytes of a message: what `client.message_bytes_max` allows.
pub(crate) const MESSAGE_BYTES: usize = 64 << 10;

/// One peer in this many sends a body, the others a message.
pub(crate) const BODY_EVERY: usize = 2;

/// Peers that the server has refused or sent away, in the tally.
pub(crate) const SENT_AWAY: &str = "sent away";

pub(super) struct Hoard {
    server: SocketAddr,
    count: usize,
    peers: Vec<Peer>,
    opened: usize,
}

impl Hoard {
    pub(super) const fn new(server: SocketAddr, count: usize) -> Self {
        Self {
            server,
            count,
            peers: Vec::new(),
            opened: 0,
        }
    }

    fn open(&mut self) -> Result<Peer> {
        self.opened += 1;
        let mut peer = match self.opened % BODY_EVERY {
            0 => {
                let mut peer = Peer::connect(self.server)?;
                let head = format!(
                    "POST /api/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                     Content-Length: {BODY_BYTES}\r\n\r\n"
                );
                peer.unsent = head.into_bytes();
                peer.unsent.resize(peer.unsent.len() + BODY_BYTES - 1, b' ');
                peer
            }
            _ => {
                let mut peer = Peer::ask(self.server, "/connection/websocket", "")?;
                peer.unsent = frame(0x1, br#"{"id":1,"connect":{}}"#).to_bytes();
                peer.unsent
                    .extend(frame(0x1, &[b' '; MESSAGE_BYTES]).to_bytes());
                peer.unsent.pop();
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
