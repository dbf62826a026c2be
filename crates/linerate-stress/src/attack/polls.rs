//! Sessions with large bodies, which are never polled again.

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

/// What the clients of a protocol send.
#[derive(Clone, Copy)]
pub(super) struct Dialect {
    /// The URL of a request that opens a session.
    url: &'static str,
    /// The field with the name of the session, and the parameter that repeats it.
    session: &'static str,
    /// The first body.
    first: &'static str,
    /// An event that is answered with its topic or its name, in place of `NAME`.
    event: &'static str,
    /// What separates events.
    separator: &'static str,
}

pub(super) const PHOENIX: Dialect = Dialect {
    url: "/socket/longpoll?vsn=2.0.0",
    session: "token",
    first: r#"["1","1","all","phx_join",{}]"#,
    event: r#"["1","2","NAME","a",{}]"#,
    separator: "\n",
};

pub(super) const SOCKET_IO: Dialect = Dialect {
    url: "/socket.io/?EIO=4&transport=polling",
    session: "sid",
    first: "40",
    event: "42[\"NAME\"]",
    separator: "\u{1e}",
};

/// Clients that open such sessions.
pub(super) struct Polls {
    dialect: Dialect,
    /// The connections on which bodies are sent.
    peers: Peers,
    body: String,
    /// When the sessions were opened that the server may still have.
    sessions: VecDeque<Instant>,
}

impl Polls {
    pub(super) fn new(dialect: Dialect, server: SocketAddr, sessions: usize) -> Self {
        let event = dialect.event.replace("NAME", &"a".repeat(2_000));
        let events = vec![&*event; BODY_BYTES / (event.len() + 1)];
        Self {
            dialect,
            peers: Peers::new(server, sessions),
            body: events.join(dialect.separator),
            sessions: VecDeque::new(),
        }
    }

    /// Opens a session, and begins to send its bodies on the same connection.
    fn open(&self) -> Result<Peer> {
        let mut peer = Peer::connect(self.peers.server)?;
        let Dialect {
            url,
            session,
            first,
            ..
        } = self.dialect;
        let opened = ask(&mut peer, &request("GET", url, ""))?;
        let name = opened.split(&format!("\"{session}\":\"")).nth(1);
        let name = name.and_then(|rest| rest.split('"').next());
        let name = name.context("no session")?;
        let url = format!("{url}&{session}={name}");
        ask(&mut peer, &request("POST", &url, first))?;
        let body = request("POST", &url, &self.body);
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
fn request(method: &str, url: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {url} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}")
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
