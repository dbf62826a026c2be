//! Wrong keys, one after the other.

use std::{io::Read, net::SocketAddr, time::Duration};

use anyhow::Result;

use super::{Attack, Tally, count, peer::Peer};

/// The time between two strokes.
const STROKE: Duration = Duration::from_millis(10);

/// Keys of each connection in a stroke: over ten connections ten thousand in a second.
const KEYS: usize = 10;

/// Keys that the server has looked at, in the tally.
pub(crate) const LOOKED_AT: &str = "keys looked at";

pub(super) struct Keys {
    server: SocketAddr,
    count: usize,
    peers: Vec<Peer>,
}

impl Keys {
    pub(super) const fn new(server: SocketAddr, count: usize) -> Self {
        Self {
            server,
            count,
            peers: Vec::new(),
        }
    }
}

impl Attack for Keys {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        // A connection serves requests for a minute.
        self.peers.retain(|peer| !peer.is_lost);
        while self.peers.len() < self.count {
            self.peers.push(Peer::connect(self.server)?.unblock()?);
        }
        for peer in &mut self.peers {
            if peer.unsent.is_empty() {
                peer.unsent = b"POST /api/info HTTP/1.1\r\nHost: localhost\r\nX-API-Key: guess\r\n\
                    Content-Length: 0\r\n\r\n"
                    .repeat(KEYS);
                count(tally, "keys", KEYS as u64);
            }
            peer.send();
            count(tally, LOOKED_AT, looked_at(peer));
        }
        Ok(STROKE)
    }
}

/// Takes the answers that have come; returns how many say that the key is wrong. One that is cut by the end of what
/// has come is not counted.
fn looked_at(peer: &mut Peer) -> u64 {
    let mut answers = vec![0; 256 << 10];
    match peer.stream.read(&mut answers) {
        Ok(0) => peer.is_lost = true,
        Ok(bytes) => {
            let answers = answers[..bytes].windows(13);
            return answers.filter(|bytes| bytes == b"HTTP/1.1 401 ").count() as u64;
        }
        Err(error) => peer.is_lost = error.kind() != std::io::ErrorKind::WouldBlock,
    }
    0
}
