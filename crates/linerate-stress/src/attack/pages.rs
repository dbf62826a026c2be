//! Plain HTTP requests to a server of WebSockets, by clients that do not read.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::websocket::read_head;

/// The path of a page.
pub(crate) const PATH: &str = "/page";

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The number of connections that are opened in a round: one of each kind.
const OPENED: usize = 4;

/// The number of requests in a pipeline, of which a server answers one.
const PIPELINED: usize = 1_000;

/// The number of bytes that are sent to a server that answered, in a round.
const JUNK_BYTES: usize = 4 << 10;

/// The tally's names for requests of clients that behave well, and for the answers to them.
pub(crate) const ASKED: &str = "requests that are read";
pub(crate) const ANSWERED: &str = "answered with 200";

pub(super) struct Pages {
    peers: Peers,
    /// True if requests are whole, and each peer reads its answer.
    is_well_behaved: bool,
}

impl Pages {
    pub(super) const fn new(server: SocketAddr, count: usize, is_twin: bool) -> Self {
        Self {
            peers: Peers::new(server, count),
            is_well_behaved: is_twin,
        }
    }

    /// Opens a connection with one of four requests, of which only the first is whole and alone.
    fn open(&self, number: usize) -> Result<Peer> {
        let mut peer = match self.is_well_behaved {
            true => Peer::connect(self.peers.server)?.unblock()?,
            false => Peer::connect_narrow(self.peers.server)?.unblock()?,
        };
        let whole = get();
        let length = format!("\r\nContent-Length: {}\r\n\r\n", 1 << 20);
        peer.unsent = match number % 4 {
            1 => whole.repeat(PIPELINED).into_bytes(),
            2 => whole.trim_end().as_bytes().to_vec(),
            3 => whole.replacen("\r\n\r\n", &length, 1).into_bytes(),
            _ => whole.into_bytes(),
        };
        peer.send();
        Ok(peer)
    }
}

impl Attack for Pages {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        let peers = &mut self.peers.connected;
        for peer in peers.iter_mut() {
            if self.is_well_behaved {
                peer.ignore_input();
                continue;
            }
            // Sending is also the only way to notice the end without reading.
            if peer.unsent.is_empty() {
                peer.unsent = vec![b'x'; JUNK_BYTES];
            }
            peer.send();
        }
        peers.retain(|peer| !peer.is_lost);
        let opened = OPENED.min(self.peers.count - self.peers.connected.len());
        for number in 0..opened {
            let peer = self.open(if self.is_well_behaved { 0 } else { number })?;
            self.peers.connected.push(peer);
        }
        count(tally, "connections", opened as u64);

        let mut neighbour = Peer::connect(self.peers.server)?;
        neighbour.unsent = get().into_bytes();
        neighbour.send();
        count(tally, ASKED, 1);
        let head = read_head(&mut neighbour.stream).context("a plain request got no answer")?;
        let is_answered = head.starts_with(b"HTTP/1.1 200 ");
        count(tally, ANSWERED, u64::from(is_answered));
        Ok(STROKE)
    }
}

/// Returns a request for the page.
fn get() -> String {
    format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}
