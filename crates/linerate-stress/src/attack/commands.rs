//! Pusher clients that send commands which are refused, as large as is allowed, and join and leave
//! channels.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::websocket::frame;

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The tally's name for rounds of commands.
pub(crate) const ROUNDS: &str = "rounds";

/// The maximum length of a channel's name in Pusher's protocol.
const CHANNEL_LEN: usize = 164;

/// The size of the data of client events, in bytes: the maximum of the protocol.
const EVENT_BYTES: usize = 10_240;

/// The URL of a client.
const PATH: &str = "/app/app-key?protocol=7";

/// Clients that send commands.
pub(super) struct Commands {
    pub(super) peers: Peers,
    /// The number of rounds so far.
    pub(super) number: u64,
}

impl Attack for Commands {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        while self.peers.connected.len() < self.peers.count {
            let mut peer = Peer::ask(self.peers.server, PATH, "")?;
            peer.wait_for_open()?;
            self.peers.connected.push(peer.unblock()?);
        }
        for peer in &mut self.peers.connected {
            peer.ignore_input();
            if peer.unsent.is_empty() {
                self.number += 1;
                for command in round(self.number) {
                    let frame = frame(0x1, command.as_bytes()).to_bytes();
                    peer.unsent.extend(frame);
                }
                count(tally, ROUNDS, 1);
            }
            peer.send();
            ensure!(!peer.is_lost, "the server disconnected an attacker");
        }
        Ok(STROKE)
    }
}

fn round(number: u64) -> Vec<String> {
    let channel = format!("{number:0>CHANNEL_LEN$}");
    let data = "x".repeat(EVENT_BYTES - 2);
    let auth = "0".repeat(64);
    vec![
        format!(r#"{{"event":"pusher:subscribe","data":{{"channel":"{channel}"}}}}"#),
        format!(
            r#"{{"event":"pusher:subscribe","data":{{"channel":"private-{number}","auth":"app-key:{auth}"}}}}"#
        ),
        format!(r#"{{"event":"client-x","channel":"private-{number}","data":"{data}"}}"#),
        format!(r#"{{"event":"pusher:unsubscribe","data":{{"channel":"{channel}"}}}}"#),
    ]
}
