//! Clients that publish as much as is allowed, and join and leave channels of which each has
//! another name, while a webhook is to be told of it.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::websocket::frame;

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The size of the data, in bytes: `client.message_bytes_max` allows hardly more. Parsers of JSON
/// refuse it, because it is nested too deeply.
const DATA_BYTES: usize = 60_000;

/// The tally's name for rounds of commands.
pub(crate) const VISITS: &str = "visits";

/// Clients that cause events.
pub(super) struct Events {
    pub(super) peers: Peers,
    /// The number of rounds so far.
    pub(super) number: u64,
}

impl Events {
    fn connect(&self) -> Result<Peer> {
        let mut peer = Peer::ask(self.peers.server, "/connection/websocket", "")?;
        peer.wait_for_open()?;
        peer.unsent = frame(0x1, br#"{"id":1,"connect":{}}"#).to_bytes();
        Ok(peer.unblock()?)
    }
}

impl Attack for Events {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        while self.peers.connected.len() < self.peers.count {
            let peer = self.connect()?;
            self.peers.connected.push(peer);
        }
        for peer in &mut self.peers.connected {
            peer.ignore_input();
            if peer.unsent.is_empty() {
                self.number += 1;
                for command in round(self.number) {
                    let frame = frame(0x1, command.as_bytes()).to_bytes();
                    peer.unsent.extend(frame);
                }
                count(tally, VISITS, 1);
            }
            peer.send();
            ensure!(!peer.is_lost, "the server disconnected an attacker");
        }
        Ok(STROKE)
    }
}

fn round(number: u64) -> [String; 3] {
    let channel = format!("{number:0>200}");
    let half = DATA_BYTES / 2;
    let data = "[".repeat(half) + &"]".repeat(half);
    [
        format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#),
        format!(r#"{{"id":3,"publish":{{"channel":"{channel}","data":{data}}}}}"#),
        format!(r#"{{"id":4,"unsubscribe":{{"channel":"{channel}"}}}}"#),
    ]
}
