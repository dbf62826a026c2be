//! Filters: as many to parse as the limit of commands allows, and some that are expensive to
//! evaluate.

use std::{fmt::Write as _, io::Read, io::Write as _, net::SocketAddr, time::Duration};

use anyhow::{Result, ensure};

use super::{Abuse, Attack, Tally, count, peer::Peer};
use crate::websocket::{frame, read_frame};

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(10);

/// How many subscriptions each peer makes in a round. With as many unsubscriptions, these are 800
/// commands per second of the 1,000 that `client.commands_per_second_max` allows.
const SUBSCRIPTIONS: usize = 4;

/// The number of rounds between two publications to expensive filters.
const PUBLISHES_EVERY: usize = 10;

/// The size of such a publication, in bytes: `client.message_bytes_max` allows hardly more.
const PUBLICATION_BYTES: usize = 60_000;

/// The number of parts of a filter, with at most five nodes each: `filter.nodes_max` allows 64.
const PARTS: usize = 12;

/// The tally's name for filters that the server has accepted.
pub(crate) const TAKEN: &str = "filters taken";

/// The tally's name for commands that the server has refused.
pub(crate) const REFUSED: &str = "refused";

/// The tally's name for publications to expensive filters.
pub(crate) const PUBLISHED: &str = "publications";

/// Clients that subscribe with filters.
pub(super) struct Filters {
    server: SocketAddr,
    count: usize,
    kind: Kind,
    peers: Vec<Peer>,
    number: usize,
    strokes: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// One filter for each peer: an expensive one, or a cheap one for the well-behaved twin.
    Evaluated { is_dear: bool },
    /// One filter after another.
    Parsed,
}

impl Filters {
    pub(super) const fn new(abuse: Abuse, server: SocketAddr, count: usize, is_twin: bool) -> Self {
        Self {
            server,
            count,
            kind: match abuse {
                Abuse::DearFilters => Kind::Evaluated { is_dear: !is_twin },
                _ => Kind::Parsed,
            },
            peers: Vec::new(),
            number: 0,
            strokes: 0,
        }
    }

    fn connect(&mut self) -> Result<Peer> {
        let mut peer = Peer::ask(self.server, "/connection/websocket", "")?;
        peer.wait_for_open()?;
        peer.stream.write_all(&text(r#"{"id":1,"connect":{}}"#))?;
        ensure!(
            reply(&mut peer)?.contains(r#""connect":{"#),
            "connect command was refused"
        );
        if let Kind::Evaluated { is_dear } = self.kind {
            let filter = match is_dear {
                true => dear(self.number),
                false => format!("payload == {}", self.number),
            };
            self.number += 1;
            peer.stream.write_all(&text(&subscribe(&filter)))?;
            let reply = reply(&mut peer)?;
            ensure!(reply.contains(r#""subscribe":{"#), "{reply}");
        }
        Ok(peer.unblock()?)
    }

    /// Returns the commands of a round.
    fn commands(&mut self) -> Vec<u8> {
        let mut commands = String::new();
        for _ in 0..SUBSCRIPTIONS {
            self.number += 1;
            let subscribe = subscribe(&long(self.number));
            let unsubscribe = r#"{"id":3,"unsubscribe":{"channel":"demo:filters"}}"#;
            // Writing to a string cannot fail.
            _ = writeln!(commands, "{subscribe}\n{unsubscribe}");
        }
        text(&commands)
    }
}

impl Attack for Filters {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        while self.peers.len() < self.count {
            let peer = self.connect()?;
            self.peers.push(peer);
            if matches!(self.kind, Kind::Evaluated { .. }) {
                count(tally, TAKEN, 1);
            }
        }
        self.strokes += 1;
        let mut peers = std::mem::take(&mut self.peers);
        for (place, peer) in peers.iter_mut().enumerate() {
            let is_turn = place == 0 && self.strokes.is_multiple_of(PUBLISHES_EVERY);
            match self.kind {
                Kind::Parsed if peer.unsent.is_empty() => peer.unsent = self.commands(),
                Kind::Evaluated { .. } if is_turn && peer.unsent.is_empty() => {
                    peer.unsent = text(&publish());
                    count(tally, PUBLISHED, 1);
                }
                _ => {}
            }
            peer.send();
            let (taken, refused) = answers(peer);
            count(tally, TAKEN, taken);
            count(tally, REFUSED, refused);
            ensure!(!peer.is_lost, "the server disconnected an attacker");
        }
        self.peers = peers;
        Ok(STROKE)
    }
}

/// Returns a filter that takes as long to parse as the limits allow.
fn long(number: usize) -> String {
    let part = |place| {
        format!(r#"field_{place}_{number}.name == "a text of some more length, {place} {number}""#)
    };
    let parts: Vec<String> = (0..PARTS).map(part).collect();
    parts.join(" && ")
}

/// Returns a filter that searches the whole payload many times, for texts that almost match at
/// every position, which makes the search very slow. 64 consecutive numbers give distinct filters.
fn dear(number: usize) -> String {
    let part = |place| {
        let (before, after) = (
            "ab".repeat(6 + number % 8),
            "ab".repeat(4 + number / 8 % 8 + place % 3),
        );
        format!(r#"payload.contains("{before}b{after}")"#)
    };
    let parts: Vec<String> = (0..PARTS).map(part).collect();
    parts.join(" || ")
}

fn subscribe(filter: &str) -> String {
    let filter = serde_json::Value::from(filter);
    format!(r#"{{"id":2,"subscribe":{{"channel":"demo:filters","filter":{filter}}}}}"#)
}

fn publish() -> String {
    let payload = "ab".repeat(PUBLICATION_BYTES / 2);
    format!(r#"{{"id":4,"publish":{{"channel":"demo:filters","data":{{"payload":"{payload}"}}}}}}"#)
}

fn text(text: &str) -> Vec<u8> {
    frame(0x1, text.as_bytes()).to_bytes()
}

/// Waits for a message.
fn reply(peer: &mut Peer) -> Result<String> {
    let (_, payload) = read_frame(&mut peer.stream)?;
    Ok(String::from_utf8_lossy(&payload).into_owned())
}

/// Reads the answers that have arrived. Returns how many filters were accepted and how many
/// commands were refused. An answer that is split between two reads is not counted.
fn answers(peer: &mut Peer) -> (u64, u64) {
    let mut bytes = vec![0; 256 << 10];
    match peer.stream.read(&mut bytes) {
        Ok(0) => peer.is_lost = true,
        Ok(count) => {
            let of = |what: &[u8]| {
                let windows = bytes[..count].windows(what.len());
                windows.filter(|bytes| *bytes == what).count() as u64
            };
            return (of(br#""subscribe":{"#), of(br#""error":{"#));
        }
        Err(error) => peer.is_lost = error.kind() != std::io::ErrorKind::WouldBlock,
    }
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::{PUBLICATION_BYTES, dear, long, publish, subscribe};

    #[test]
    fn filters_and_publications_are_as_long_as_they_may_be() {
        for filter in [long(9_999_999), dear(999)] {
            assert!((600..=1_024).contains(&filter.len()), "{}", filter.len());
            assert!(serde_json::from_str::<serde_json::Value>(&subscribe(&filter)).is_ok());
        }
        assert!((PUBLICATION_BYTES..64 << 10).contains(&publish().len()));
    }
}
