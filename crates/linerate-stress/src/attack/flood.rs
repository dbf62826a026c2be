//! Many frames on few connections.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;

use super::{Abuse, Attack, Tally, count, peer::Peer};
use crate::websocket::frame;

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The number of frames per round and connection: a million per second over four connections.
const FRAMES: usize = 2_500;

/// The number of fragments in a message; our servers allow 131,072.
const FRAGMENTS: usize = 40 * FRAMES;

/// The size of a slow reader's message, in bytes.
pub(crate) const MESSAGE_BYTES: usize = 16 << 10;

/// The number of messages that a slow reader sends in a round.
const MESSAGES: usize = 1;

pub(super) struct Flood {
    abuse: Abuse,
    server: SocketAddr,
    count: usize,
    peers: Vec<(Peer, usize)>,
    reads: bool,
}

impl Flood {
    pub(super) const fn new(abuse: Abuse, server: SocketAddr, count: usize, is_twin: bool) -> Self {
        Self {
            abuse,
            server,
            count,
            peers: Vec::new(),
            reads: is_twin || !matches!(abuse, Abuse::SlowReaders),
        }
    }

    /// Returns the bytes that a client sends in a round, and the number of frames in them.
    fn frames(&self, fragments: &mut usize) -> (Vec<u8>, usize) {
        let payload: &[u8] = match self.abuse {
            Abuse::Pings => return (frame(0x9, b"ping").to_bytes().repeat(FRAMES), FRAMES),
            Abuse::SlowReaders => {
                let message = frame(0x2, &[b'x'; MESSAGE_BYTES]).to_bytes();
                return (message.repeat(MESSAGES), MESSAGES);
            }
            Abuse::EmptyFragments => b"",
            _ => b"x",
        };
        let mut bytes = Vec::new();
        for _ in 0..FRAMES {
            let opcode = if *fragments == 0 { 0x2 } else { 0x0 };
            *fragments = (*fragments + 1) % FRAGMENTS;
            bytes.extend(frame(opcode, payload).with_fin(*fragments == 0).to_bytes());
        }
        (bytes, FRAMES)
    }
}

impl Attack for Flood {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        // The server disconnects slow readers, which then reconnect.
        self.peers.retain(|(peer, _)| !peer.is_lost);
        while self.peers.len() < self.count {
            let peer = Peer::ask(self.server, "/echo", "")?.unblock()?;
            self.peers.push((peer, 0));
            count(tally, "connections", 1);
        }
        let mut peers = std::mem::take(&mut self.peers);
        for (peer, fragments) in &mut peers {
            if peer.unsent.is_empty() {
                let (bytes, frames) = self.frames(fragments);
                peer.unsent = bytes;
                count(tally, "frames", frames as u64);
            }
            if self.reads {
                peer.ignore_input();
            }
            peer.send();
        }
        self.peers = peers;
        Ok(STROKE)
    }
}
