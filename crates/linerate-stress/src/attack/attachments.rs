//! Events of Socket.IO whose last attachment never arrives.

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

/// The size of the attachments that arrive, in bytes: together, `client.message_bytes_max` allows
/// hardly more.
const ATTACHMENT_BYTES: usize = 7_000;

/// The number of attachments that arrive, of which `socketio.attachments_max` allows one more.
const ATTACHMENTS: usize = 9;

/// The tally's name for events that have arrived in part.
pub(crate) const EVENTS: &str = "events";

/// Clients that send such events.
pub(super) struct Attachments(pub(super) Peers);

impl Attachments {
    fn connect(&self) -> Result<Peer> {
        let path = "/socket.io/?EIO=4&transport=websocket";
        let mut peer = Peer::ask(self.0.server, path, "")?;
        peer.wait_for_open()?;
        peer.unsent = frame(0x1, b"40").to_bytes();
        let announced = format!("45{}-[\"a\"]", ATTACHMENTS + 1);
        peer.unsent
            .extend(frame(0x1, announced.as_bytes()).to_bytes());
        let attachment = frame(0x2, &[7; ATTACHMENT_BYTES]).to_bytes();
        peer.unsent.extend(attachment.repeat(ATTACHMENTS));
        Ok(peer.unblock()?)
    }
}

impl Attack for Attachments {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        // The server closes those that answer no ping.
        self.0.connected.retain(|peer| !peer.is_lost);
        let missing = self.0.count.saturating_sub(self.0.connected.len());
        for _ in 0..missing.min(CONNECTS) {
            let peer = self.connect()?;
            self.0.connected.push(peer);
        }
        for peer in &mut self.0.connected {
            peer.ignore_input();
            if !peer.unsent.is_empty() {
                peer.send();
                count(tally, EVENTS, u64::from(peer.unsent.is_empty()));
            }
        }
        Ok(STROKE)
    }
}
