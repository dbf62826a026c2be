//! The attackers' process.

pub(crate) mod attachments;
pub(crate) mod bomb;
pub(crate) mod commands;
pub(crate) mod connect;
mod dying;
pub(crate) mod filters;
pub(crate) mod flood;
pub(crate) mod hoard;
pub(crate) mod keys;
pub(crate) mod pages;
mod peer;
pub(crate) mod polls;
pub(crate) mod returns;
mod slow;
mod stalled;
pub(crate) mod streams;
mod tls;
pub(crate) mod undecided;
pub(crate) mod upload;
mod viewers;
pub(crate) mod waiting;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::ValueEnum;

use self::{commands::Commands, peer::Peers};
use crate::{
    child::{Child, orders},
    cores,
};

/// The first argument of an attacker process.
pub(crate) const ATTACK: &str = "attack";

/// Counts of what attackers have done and what they have seen, by name.
pub(crate) type Tally = BTreeMap<String, u64>;

/// A kind of abuse.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Abuse {
    /// Announcing attachments of Socket.IO events that never arrive.
    Attachments,
    /// Sending small messages that inflate a thousandfold.
    Bombs,
    /// Calling methods that are never answered.
    Calls,
    /// Connecting and resetting the connection at once.
    Churn,
    /// Subscribing with filters that are expensive to evaluate, and publishing data for them to
    /// search.
    DearFilters,
    /// Connecting and disconnecting in sixteen different ways.
    Dying,
    /// Sending fragments without payload.
    EmptyFragments,
    /// Joining and leaving channels and publishing, while a webhook or Kafka is to be told of it.
    Events,
    /// Subscribing with one filter after another.
    Filters,
    /// Opening connections that never read and never answer a Ping, as if their hosts had crashed.
    HalfOpen,
    /// Sending bodies and messages whose last byte never arrives.
    Hoard,
    /// Requesting pages without reading them, in a pipeline, with a body, or half of a request.
    Pages,
    /// Sending Pings.
    Pings,
    /// Sending Phoenix messages that are refused, and joining and leaving topics.
    PhoenixCommands,
    /// Opening sessions of Phoenix with long polling, and never polling them.
    PhoenixPolls,
    /// Opening sessions of Socket.IO, and never polling them again.
    Polls,
    /// Sending Pusher commands that are refused, and joining and leaving channels.
    PusherCommands,
    /// Asking for sessions of Socket.IO that do not exist, and leaving soon.
    Returns,
    /// Connecting and sending no request.
    Silence,
    /// Sending a frame byte by byte.
    SlowFrames,
    /// Sending the head of a request byte by byte.
    SlowHeads,
    /// Sending a message in one-byte fragments, byte by byte.
    SlowMessages,
    /// Sending messages and never reading the echoes.
    SlowReaders,
    /// Opening TCP connections and sending nothing.
    SlowTcp,
    /// Sending a TLS handshake byte by byte.
    SlowTls,
    /// Subscribing and never reading.
    Stalled,
    /// Requesting as many HTTP/2 streams as are allowed.
    Streams,
    /// Sending fragments of one byte.
    TinyFragments,
    /// Connecting over TLS, which is not an abuse.
    Tls,
    /// Sending messages while the server decides about the request, or leaving meanwhile.
    Undecided,
    /// Connecting to a server that has no free file descriptors, and waiting to be disconnected.
    Waiting,
    /// Uploading small files that decompress to gigabytes, repeatedly.
    UploadBombs,
    /// Uploading logs whose lines are kept, from several addresses.
    UploadCrowd,
    /// Uploading such logs from one address.
    UploadRows,
    /// Viewing an upload without reading its answers, and guessing the names of other uploads.
    Viewers,
    /// Sending wrong API keys.
    WrongKeys,
}

impl Abuse {
    /// Returns the abuse's name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns whether the abuse has a twin: clients that do the same without the abuse. The
    /// latency next to these clients is then the baseline.
    pub(crate) const fn has_twin(self) -> bool {
        matches!(
            self,
            Self::DearFilters | Self::Hoard | Self::Pages | Self::SlowReaders | Self::Undecided
        )
    }

    /// Starts the attackers, or with `is_twin` the twin of an abuse that has one.
    fn begin(self, server: SocketAddr, peers: usize, is_twin: bool) -> Result<Box<dyn Attack>> {
        let commands = |script| Box::new(Commands::new(script, Peers::new(server, peers)));
        Ok(match self {
            Self::Attachments => Box::new(attachments::Attachments(Peers::new(server, peers))),
            Self::Bombs => Box::new(bomb::Bombs::new(server, peers)?),
            Self::Calls => commands(commands::CALLS),
            Self::Churn | Self::HalfOpen | Self::Silence => {
                Box::new(connect::Connects::new(self, server, peers))
            }
            Self::DearFilters | Self::Filters => {
                Box::new(filters::Filters::new(self, server, peers, is_twin))
            }
            Self::Dying => Box::new(dying::Dying::new(server, peers)),
            Self::EmptyFragments | Self::Pings | Self::SlowReaders | Self::TinyFragments => {
                Box::new(flood::Flood::new(self, server, peers, is_twin))
            }
            Self::Events => commands(commands::EVENTS),
            Self::Hoard => Box::new(hoard::Hoard::new(server, peers, is_twin)),
            Self::Pages => Box::new(pages::Pages::new(server, peers, is_twin)),
            Self::PhoenixPolls => Box::new(polls::Polls::new(polls::PHOENIX, server, peers)),
            Self::Polls => Box::new(polls::Polls::new(polls::SOCKET_IO, server, peers)),
            Self::PhoenixCommands => commands(commands::PHOENIX),
            Self::PusherCommands => commands(commands::PUSHER),
            Self::Returns => Box::new(returns::Returns {
                peers: Peers::new(server, peers),
                asked: 0,
            }),
            Self::SlowFrames
            | Self::SlowHeads
            | Self::SlowMessages
            | Self::SlowTcp
            | Self::SlowTls => Box::new(slow::Slow::new(self, server, peers)?),
            Self::Stalled => Box::new(stalled::Stalled(Peers::new(server, peers))),
            Self::Streams => Box::new(streams::Streams(Peers::new(server, peers))),
            Self::Tls => Box::new(tls::Connects::new(server)?),
            Self::Undecided => Box::new(undecided::Undecided::new(server, peers, is_twin)),
            Self::Waiting => Box::new(waiting::Waiting {
                server,
                count: peers,
            }),
            Self::UploadBombs | Self::UploadCrowd | Self::UploadRows => {
                Box::new(upload::Uploads::new(self, server, peers)?)
            }
            Self::Viewers => Box::new(viewers::Viewers::new(server, peers)?),
            Self::WrongKeys => Box::new(keys::Keys(Peers::new(server, peers))),
        })
    }
}

/// Running attackers. Dropping them closes their connections.
trait Attack {
    /// Does one round of work, and returns how long to wait before the next.
    ///
    /// # Errors
    /// If the server does not behave as expected.
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration>;
}

/// Adds to a count of the tally.
fn count(tally: &mut Tally, name: &str, number: u64) {
    match tally.get_mut(name) {
        Some(count) => *count += number,
        None => _ = tally.insert(name.to_owned(), number),
    }
}

/// Returns a count of the tally.
pub(crate) fn counted(tally: &Tally, name: &str) -> u64 {
    tally.get(name).copied().unwrap_or_default()
}

/// Starts a process with this number of attackers, which wait for commands.
pub(crate) fn start(abuse: Abuse, server: SocketAddr, peers: usize) -> Result<Child> {
    let (server, peers) = (server.to_string(), peers.to_string());
    Child::start(&[ATTACK, &abuse.name(), &server, &peers])
}

/// The commands to an attacker process.
pub(crate) const ON: &str = "on";
pub(crate) const OFF: &str = "off";
pub(crate) const HOW: &str = "how?";

/// The command to start the well-behaved twin of the abuse.
pub(crate) const WELL: &str = "well";

/// Executes the commands on standard input until it ends. Answers each with the tally so far: `on`,
/// `well` and `off` once they have taken effect, and any other line at once.
pub(crate) fn run_commands(abuse: Abuse, server: SocketAddr, peers: usize) -> Result<()> {
    cores::take_last()?;
    cores::go_last();
    let orders = orders();
    let mut tally = Tally::new();
    while let Ok(order) = orders.recv() {
        let attack = match &*order {
            ON => Some(abuse.begin(server, peers, false)?),
            WELL if abuse.has_twin() => Some(abuse.begin(server, peers, true)?),
            _ => None,
        };
        if let Some(attack) = attack {
            println!("{}", serde_json::to_string(&tally)?);
            attack_until_off(attack, &mut tally, &orders)?;
        }
        println!("{}", serde_json::to_string(&tally)?);
    }
    Ok(())
}

/// Attacks until told to stop, and then closes all connections.
fn attack_until_off(
    mut attack: Box<dyn Attack>,
    tally: &mut Tally,
    orders: &Receiver<String>,
) -> Result<()> {
    let mut next = Instant::now();
    loop {
        next += attack.stroke(tally)?;
        // Rounds that were missed for lack of CPU time are not made up for.
        next = next.max(Instant::now());
        loop {
            let pause = next.saturating_duration_since(Instant::now());
            match orders.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(order) if order == OFF => return Ok(()),
                Ok(_) => println!("{}", serde_json::to_string(&tally)?),
            }
        }
    }
}
