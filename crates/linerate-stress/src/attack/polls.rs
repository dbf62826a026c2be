//! Sessions of Socket.IO with large bodies, which are never polled again.

use std::{
    collections::VecDeque,
    io::{Read, Write},
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};
use crate::websocket::read_head;

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// The number of sessions that are opened in a round: the row is not about handshakes.
const OPENED: usize = 2;

/// After this time, the server has forgotten a session that was never polled again.
const LIFETIME: Duration = Duration::from_secs(10);

/// The size of a body, in bytes: `client.message_bytes_max` allows hardly more.
const BODY_BYTES: usize = 63 << 10;

/// The number of bodies that a session is sent. Each of their events has an answer, which waits for
/// a poll.
const BODIES: usize = 4;

/// The tally's name for the sessions that were opened.
pub(crate) const SESSIONS: &str = "sessions";

/// The tally's name for the bodies that were sent.
pub(crate) const SENT: &str = "bodies";

/// Clients that open such sessions.
pub(super) struct Polls {
    /// The connections on which bodies are sent.
    peers: Peers,
    body: String,
    /// When the sessions were opened that the server may still have.
    sessions: VecDeque<Instant>,
}

impl Polls {
    pub(super) fn new(server: SocketAddr, sessions: usize) -> Self {
        let event = format!("42[\"{}\"]", "a".repeat(2_000));
        let events = vec![&*event; BODY_BYTES / (event.len() + 1)];
        Self {
            peers: Peers::new(server, sessions),
            body: events.join("\u{1e}"),
            sessions: VecDeque::new(),
        }
    }

    /// Opens a session, and begins to send its bodies on the same connection.
    fn open(&self) -> Result<Peer> {
        let mut peer = Peer::connect(self.peers.server)?;
        let opened = ask(&mut peer, &request("GET", "", ""))?;
        let sid = opened.split('"').nth(3).context("no session ID")?;
        let session = format!("&sid={sid}");
        ask(&mut peer, &request("POST", &session, "40"))?;
        let body = request("POST", &session, &self.body);
        peer.unsent = body.repeat(BODIES).into_bytes();
        Ok(peer.unblock()?)
    }
}

impl Attack for Polls {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        let is_over = |opened: &Instant| opened.elapsed() > LIFETIME;
        while self.sessions.front().is_some_and(is_over) {
            self.sessions.pop_front();
        }
        let missing = self.peers.count.saturating_sub(self.sessions.len());
        for _ in 0..missing.min(OPENED) {
            let peer = self.open()?;
            self.peers.connected.push(peer);
            self.sessions.push_back(Instant::now());
            count(tally, SESSIONS, 1);
        }
        for peer in &mut self.peers.connected {
            peer.ignore_input();
            peer.send();
            if peer.unsent.is_empty() {
                count(tally, SENT, BODIES as u64);
            }
        }
        // A session outlives the connections of its client.
        let is_busy = |peer: &Peer| !peer.is_lost && !peer.unsent.is_empty();
        self.peers.connected.retain(is_busy);
        Ok(STROKE)
    }
}

/// Returns a request of a client that polls.
fn request(method: &str, session: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} /socket.io/?EIO=4&transport=polling{session} HTTP/1.1\r\n\
         Host: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Sends a request, and returns the body of the response.
fn ask(peer: &mut Peer, request: &str) -> Result<String> {
    peer.stream.write_all(request.as_bytes())?;
    let head = String::from_utf8(read_head(&mut peer.stream)?)?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "refused: {head}");
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split('\r').next());
    let length: usize = length.context("no length of the body")?.parse()?;
    let mut body = vec![0; length];
    peer.stream.read_exact(&mut body)?;
    Ok(String::from_utf8(body)?)
}
