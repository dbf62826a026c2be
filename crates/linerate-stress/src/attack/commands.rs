//! Clients that send rounds of commands, as large as is allowed.

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

/// The size of a large argument, in bytes: `client.message_bytes_max` allows hardly more.
const LARGE_BYTES: usize = 60_000;

/// How deep data is nested: a command with 64 levels closes the connection.
const DEPTH: usize = 60;

/// The maximum length of a channel's name in Pusher's protocol.
const CHANNEL_LEN: usize = 164;

/// The size of the data of events, in bytes: the maximum of Pusher's protocol.
const EVENT_BYTES: usize = 10_240;

/// The maximum length of a topic and of other texts in Phoenix's protocol.
const TEXT_BYTES: usize = 255;

/// What clients send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script {
    /// The path and the query of a client's URL.
    path: &'static str,
    /// The command that connects a client, if its request does not.
    connect: Option<&'static str>,
    /// Returns the commands of a round.
    round: fn(u64) -> Vec<String>,
}

/// Calls a method that the application never answers.
pub(super) const CALLS: Script = Script {
    path: "/connection/websocket",
    connect: Some(CONNECT),
    round: call,
};

/// Publishes, and joins and leaves channels of which each has another name, while a webhook or
/// Kafka is to be told of it.
pub(super) const EVENTS: Script = Script {
    path: "/connection/websocket",
    connect: Some(CONNECT),
    round: visit,
};

/// Joins a topic, of which all clients are told, joins it again, and sends what is refused.
pub(super) const PHOENIX: Script = Script {
    path: "/socket/websocket?vsn=2.0.0",
    connect: None,
    round: phoenix,
};

/// Joins and leaves a channel, and sends what is refused.
pub(super) const PUSHER: Script = Script {
    path: "/app/app-key?protocol=7",
    connect: None,
    round: pusher,
};

const CONNECT: &str = r#"{"id":1,"connect":{}}"#;

/// Clients that send commands.
pub(super) struct Commands {
    peers: Peers,
    script: Script,
    /// The number of rounds so far.
    number: u64,
}

impl Commands {
    pub(super) const fn new(script: Script, peers: Peers) -> Self {
        Self {
            peers,
            script,
            number: 0,
        }
    }

    fn connect(&self) -> Result<Peer> {
        let mut peer = Peer::ask(self.peers.server, self.script.path, "")?;
        peer.wait_for_open()?;
        if let Some(connect) = self.script.connect {
            peer.unsent = frame(0x1, connect.as_bytes()).to_bytes();
        }
        Ok(peer.unblock()?)
    }
}

impl Attack for Commands {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        while self.peers.connected.len() < self.peers.count {
            let peer = self.connect()?;
            self.peers.connected.push(peer);
        }
        for peer in &mut self.peers.connected {
            peer.ignore_input();
            if peer.unsent.is_empty() {
                self.number += 1;
                for command in (self.script.round)(self.number) {
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

fn call(_: u64) -> Vec<String> {
    let argument = "x".repeat(LARGE_BYTES);
    vec![format!(
        r#"{{"id":2,"rpc":{{"method":"deaf","data":"{argument}"}}}}"#
    )]
}

/// The data is nested as deeply as commands may be.
fn visit(number: u64) -> Vec<String> {
    let channel = format!("{number:0>200}");
    let text = "x".repeat(LARGE_BYTES);
    let data = format!("{}\"{text}\"{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    vec![
        format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#),
        format!(r#"{{"id":3,"publish":{{"channel":"{channel}","data":{data}}}}}"#),
        format!(r#"{{"id":4,"unsubscribe":{{"channel":"{channel}"}}}}"#),
    ]
}

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
