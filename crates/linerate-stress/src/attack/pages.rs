//! Plain HTTP requests to a server of WebSockets, by clients that do not read.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::websocket::{frame, read_head};

/// The path of a page.
pub(crate) const PATH: &str = "/page";

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The number of connections that are opened in a round: one of each kind.
const OPENED: usize = 4;

/// The number of these that the server answers with a page. Clients that behave well request as
/// many.
const PAGES: usize = 2;

/// The number of requests in a pipeline, of which a server answers one.
const PIPELINED: usize = 1_000;

/// The number of bytes that a connection sends in a round: after a request, or as a message.
const JUNK_BYTES: usize = 4 << 10;

/// The tally's names for requests of clients that behave well, and for the answers to them.
pub(crate) const ASKED: &str = "requests that are read";
pub(crate) const ANSWERED: &str = "answered with 200";

/// The tally's names for what abusive clients send after their requests, and for what well-behaved
/// ones send in messages.
const JUNK: &str = "bytes after requests";
const IN_MESSAGES: &str = "bytes in messages";

pub(super) struct Pages {
    peers: Peers,
    /// True if clients read their pages, and send messages on WebSockets.
    is_well_behaved: bool,
    /// Pages that well-behaved clients are reading.
    pages: Vec<Peer>,
}

impl Pages {
    pub(super) const fn new(server: SocketAddr, count: usize, is_twin: bool) -> Self {
        Self {
            peers: Peers::new(server, count),
            is_well_behaved: is_twin,
            pages: Vec::new(),
        }
    }

    /// Opens a WebSocket, or a connection with one of four requests, of which only the first is
    /// whole and alone.
    fn open(&self, number: usize) -> Result<Peer> {
        if self.is_well_behaved {
            return Ok(Peer::ask(self.peers.server, "/echo", "")?.unblock()?);
        }
        let mut peer = Peer::connect_narrow(self.peers.server)?.unblock()?;
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

    /// Continues to read pages, and requests more.
    fn read_pages(&mut self) -> Result<()> {
        self.pages.iter_mut().for_each(Peer::ignore_input);
        self.pages.retain(|page| !page.is_lost);
        for _ in 0..PAGES {
            let mut page = Peer::connect(self.peers.server)?.unblock()?;
            page.unsent = get().into_bytes();
            page.send();
            self.pages.push(page);
        }
        Ok(())
    }
}

impl Attack for Pages {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        let junk = [b'x'; JUNK_BYTES];
        let mut sent = 0;
        for peer in &mut self.peers.connected {
            if peer.unsent.is_empty() {
                peer.unsent = match self.is_well_behaved {
                    true => frame(0x2, &junk).to_bytes(),
                    false => junk.to_vec(),
                };
            }
            if self.is_well_behaved {
                peer.ignore_input();
            }
            // Sending is also the only way to notice the end without reading.
            sent += peer.send();
        }
        self.peers.connected.retain(|peer| !peer.is_lost);
        let opened = OPENED.min(self.peers.count - self.peers.connected.len());
        for number in 0..opened {
            let peer = self.open(number)?;
            self.peers.connected.push(peer);
        }
        if self.is_well_behaved {
            self.read_pages()?;
        }
        let name = match self.is_well_behaved {
            true => IN_MESSAGES,
            false => JUNK,
        };
        count(tally, name, sent as u64);
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
