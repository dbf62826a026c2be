//! Wrong API keys, one after another.

use std::{io::Read, time::Duration};

use anyhow::Result;

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The number of keys per round and connection: ten thousand per second over ten connections.
const KEYS: usize = 10;

/// The tally's name for keys that the server has checked.
pub(crate) const LOOKED_AT: &str = "keys looked at";

pub(super) struct Keys(pub(super) Peers);

impl Attack for Keys {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        // The server closes a connection after a minute of requests.
        self.0.connected.retain(|peer| !peer.is_lost);
        while self.0.connected.len() < self.0.count {
            self.0
                .connected
                .push(Peer::connect(self.0.server)?.unblock()?);
        }
        for peer in &mut self.0.connected {
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

/// Reads the responses that have arrived. Returns how many say that the key is wrong. A response
/// that is split between two reads is not counted.
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
