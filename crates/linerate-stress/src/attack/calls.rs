//! Calls of methods that the application never answers, as large and as many as the server takes.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::websocket::frame;

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The size of an argument, in bytes: `client.message_bytes_max` allows hardly more.
const ARGUMENT_BYTES: usize = 60_000;

/// The tally's name for calls.
pub(crate) const CALLS: &str = "calls";

/// Clients that call methods.
pub(super) struct Calls {
    pub(super) peers: Peers,
}

impl Calls {
    fn connect(&self) -> Result<Peer> {
        let mut peer = Peer::ask(self.peers.server, "/connection/websocket", "")?;
        peer.wait_for_open()?;
        peer.unsent = frame(0x1, br#"{"id":1,"connect":{}}"#).to_bytes();
        Ok(peer.unblock()?)
    }
}

impl Attack for Calls {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        while self.peers.connected.len() < self.peers.count {
            let peer = self.connect()?;
            self.peers.connected.push(peer);
        }
        for peer in &mut self.peers.connected {
            peer.ignore_input();
            if peer.unsent.is_empty() {
                peer.unsent = call();
                count(tally, CALLS, 1);
            }
            peer.send();
            ensure!(!peer.is_lost, "the server disconnected an attacker");
        }
        Ok(STROKE)
    }
}

fn call() -> Vec<u8> {
    let argument = "x".repeat(ARGUMENT_BYTES);
    let command = format!(r#"{{"id":2,"rpc":{{"method":"deaf","data":"{argument}"}}}}"#);
    frame(0x1, command.as_bytes()).to_bytes()
}
