//! Clients that send commands which are refused, as large as is allowed, and join and leave
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

/// The size of the data of events, in bytes: the maximum of Pusher's protocol.
const EVENT_BYTES: usize = 10_240;

/// The maximum length of a topic and of other texts in Phoenix's protocol.
const TEXT_BYTES: usize = 255;

/// Clients that send commands.
pub(super) struct Commands {
    pub(super) peers: Peers,
    /// The path and the query of a client's URL.
    path: &'static str,
    /// Returns the commands of a round.
    round: fn(u64) -> Vec<String>,
    /// The number of rounds so far.
    number: u64,
}

impl Commands {
    /// Creates clients of Phoenix's protocol.
    pub(super) fn phoenix(peers: Peers) -> Self {
        Self {
            peers,
            path: "/socket/websocket?vsn=2.0.0",
            round: phoenix,
            number: 0,
        }
    }

    /// Creates clients of Pusher's protocol.
    pub(super) fn pusher(peers: Peers) -> Self {
        Self {
            peers,
            path: "/app/app-key?protocol=7",
            round: pusher,
            number: 0,
        }
    }
}

impl Attack for Commands {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        while self.peers.connected.len() < self.peers.count {
            let mut peer = Peer::ask(self.peers.server, self.path, "")?;
            peer.wait_for_open()?;
            self.peers.connected.push(peer.unblock()?);
        }
        for peer in &mut self.peers.connected {
            peer.ignore_input();
            if peer.unsent.is_empty() {
                self.number += 1;
                for command in (self.round)(self.number) {
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

/// Joins a topic, of which all clients are told, joins it again, and sends what is refused.
fn phoenix(number: u64) -> Vec<String> {
    let topic = format!("{number:0>TEXT_BYTES$}");
    let reference = "1".repeat(TEXT_BYTES);
    let payload = "x".repeat(EVENT_BYTES);
    let message = |topic: &str, event: &str, payload: &str| {
        format!(r#"["{reference}","{reference}","{topic}","{event}",{{"a":"{payload}"}}]"#)
    };
    vec![
        message("lobby", "phx_join", ""),
        message("lobby", "phx_join", ""),
        message(&topic, "phx_join", ""),
        message(&topic, "said", &payload),
        message("other", "said", &payload),
        message(&topic, "phx_leave", ""),
    ]
}

fn pusher(number: u64) -> Vec<String> {
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
