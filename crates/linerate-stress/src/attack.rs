//! The process of the attackers.

mod bomb;
pub(crate) mod connect;
mod dying;
pub(crate) mod filters;
pub(crate) mod flood;
pub(crate) mod hoard;
pub(crate) mod keys;
mod peer;
mod slow;
mod stalled;
pub(crate) mod streams;
mod tls;
pub(crate) mod upload;
pub(crate) mod waiting;

use std::{
    collections::BTreeMap,
    io::{self, BufRead},
    net::SocketAddr,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::cores;

/// The first argument of a process that attacks.
pub(crate) const ATTACK: &str = "attack";

/// What attackers have done, and what became of it, by name.
pub(crate) type Tally = BTreeMap<String, u64>;

/// A way to behave badly.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Abuse {
    /// Small messages that inflate a thousandfold.
    Bombs,
    /// Connecting and resetting the connection at once.
    Churn,
    /// Subscribing with filters that are dear to evaluate, and publishing what they look through.
    DearFilters,
    /// Connecting and dying, in sixteen ways.
    Dying,
    /// Fragments without payload.
    EmptyFragments,
    /// Subscribing with one filter after the other.
    Filters,
    /// Opening connections that never read, and never answer a Ping: their hosts are gone.
    HalfOpen,
    /// Bodies and messages whose last byte never comes.
    Hoard,
    /// Pings.
    Pings,
    /// Connecting and sending no request.
    Silence,
    /// A frame, byte by byte.
    SlowFrames,
    /// The head of a request, byte by byte.
    SlowHeads,
    /// A message in fragments of a byte, one after the other.
    SlowMessages,
    /// Sending messages and reading no echo.
    SlowReaders,
    /// Nothing, over TCP.
    SlowTcp,
    /// The handshake of TLS, byte by byte.
    SlowTls,
    /// Subscribing and never reading.
    Stalled,
    /// Asking for as many streams of HTTP/2 as there may be.
    Streams,
    /// Fragments of a byte.
    TinyFragments,
    /// Connecting by TLS, which is no abuse.
    Tls,
    /// Connecting to a server without file descriptors, and waiting to be closed.
    Waiting,
    /// Uploading small files that decompress to gigabytes, again and again.
    UploadBombs,
    /// Uploading logs whose lines are kept, from several addresses.
    UploadCrowd,
    /// The same from one address.
    UploadRows,
    /// Showing wrong keys.
    WrongKeys,
}

impl Abuse {
    const ALL: [Self; 25] = [
        Self::Bombs,
        Self::Churn,
        Self::DearFilters,
        Self::Dying,
        Self::EmptyFragments,
        Self::Filters,
        Self::HalfOpen,
        Self::Hoard,
        Self::Pings,
        Self::Silence,
        Self::SlowFrames,
        Self::SlowHeads,
        Self::SlowMessages,
        Self::SlowReaders,
        Self::SlowTcp,
        Self::SlowTls,
        Self::Stalled,
        Self::Streams,
        Self::TinyFragments,
        Self::Tls,
        Self::UploadBombs,
        Self::UploadCrowd,
        Self::UploadRows,
        Self::Waiting,
        Self::WrongKeys,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Bombs => "bombs",
            Self::Churn => "churn",
            Self::DearFilters => "dear-filters",
            Self::Dying => "dying",
            Self::EmptyFragments => "empty-fragments",
            Self::Filters => "filters",
            Self::HalfOpen => "half-open",
            Self::Hoard => "hoard",
            Self::Pings => "pings",
            Self::Silence => "silence",
            Self::SlowFrames => "slow-frames",
            Self::SlowHeads => "slow-heads",
            Self::SlowMessages => "slow-messages",
            Self::SlowReaders => "slow-readers",
            Self::SlowTcp => "slow-tcp",
            Self::SlowTls => "slow-tls",
            Self::Stalled => "stalled",
            Self::Streams => "streams",
            Self::TinyFragments => "tiny-fragments",
            Self::Tls => "tls",
            Self::Waiting => "waiting",
            Self::UploadBombs => "upload-bombs",
            Self::UploadCrowd => "upload-crowd",
            Self::UploadRows => "upload-rows",
            Self::WrongKeys => "wrong-keys",
        }
    }

    fn parse(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|abuse| abuse.as_str() == name);
        found.with_context(|| format!("no such abuse: {name}"))
    }

    /// Returns whether it has a twin: clients that do the same but for the abuse, and what the others
    /// wait beside these is what they are compared with.
    pub(crate) const fn has_twin(self) -> bool {
        matches!(self, Self::DearFilters | Self::SlowReaders)
    }

    fn begin_twin(self, server: SocketAddr, peers: usize) -> Option<Box<dyn Attack>> {
        Some(match self {
            Self::DearFilters => {
                Box::new(filters::Filters::new(self, server, peers).behaving_well())
            }
            Self::SlowReaders => Box::new(flood::Flood::new(self, server, peers).behaving_well()),
            _ => return None,
        })
    }

    /// Returns what does it.
    fn begin(self, server: SocketAddr, peers: usize) -> Result<Box<dyn Attack>> {
        Ok(match self {
            Self::Bombs => Box::new(bomb::Bombs::new(server, peers)?),
            Self::Churn | Self::HalfOpen | Self::Silence => {
                Box::new(connect::Connects::new(self, server, peers))
            }
            Self::DearFilters | Self::Filters => {
                Box::new(filters::Filters::new(self, server, peers))
            }
            Self::Dying => Box::new(dying::Dying::new(server, peers)),
            Self::EmptyFragments | Self::Pings | Self::SlowReaders | Self::TinyFragments => {
                Box::new(flood::Flood::new(self, server, peers))
            }
            Self::Hoard => Box::new(hoard::Hoard::new(server, peers)),
            Self::SlowFrames
            | Self::SlowHeads
            | Self::SlowMessages
            | Self::SlowTcp
            | Self::SlowTls => Box::new(slow::Slow::new(self, server, peers)?),
            Self::Stalled => Box::new(stalled::Stalled::new(server, peers)),
            Self::Streams => Box::new(streams::Streams::new(server, peers)),
            Self::Tls => Box::new(tls::Connects::new(server)?),
            Self::Waiting => Box::new(waiting::Waiting::new(server, peers)),
            Self::UploadBombs | Self::UploadCrowd | Self::UploadRows => {
                Box::new(upload::Uploads::new(self, server, peers)?)
            }
            Self::WrongKeys => Box::new(keys::Keys::new(server, peers)),
        })
    }
}

/// Attackers at work. Their connections end with it.
trait Attack {
    /// Does what is to be done now; returns how long to wait until the next time.
    ///
    /// # Errors
    /// The server does not behave as it should.
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration>;
}

/// Adds to a number of the tally.
fn count(tally: &mut Tally, name: &str, number: u64) {
    match tally.get_mut(name) {
        Some(count) => *count += number,
        None => _ = tally.insert(name.to_owned(), number),
    }
}

/// What attackers are told.
pub(crate) const ON: &str = "on";
pub(crate) const OFF: &str = "off";
pub(crate) const HOW: &str = "how?";

/// That those who have a twin who behaves well are to be that.
pub(crate) const WELL: &str = "well";

/// Does what the lines of the standard input say, until its end: `on`, `well` and `off` are answered
/// when it has become so, and each other line while it is on, all with what was done so far.
pub(crate) fn obey(abuse: &str, server: SocketAddr, peers: usize) -> Result<()> {
    let abuse = Abuse::parse(abuse)?;
    cores::take_last()?;
    cores::go_last();
    let (sender, orders) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            _ = sender.send(line);
        }
    });
    let mut tally = Tally::new();
    while let Ok(order) = orders.recv() {
        let attack = match &*order {
            ON => Some(abuse.begin(server, peers)?),
            WELL => abuse.begin_twin(server, peers),
            _ => None,
        };
        if let Some(attack) = attack {
            println!("{}", serde_json::to_string(&tally)?);
            go_on(attack, &mut tally, &orders)?;
        }
        println!("{}", serde_json::to_string(&tally)?);
    }
    Ok(())
}

/// Attacks until it is told to stop. All connections are gone then.
fn go_on(mut attack: Box<dyn Attack>, tally: &mut Tally, orders: &Receiver<String>) -> Result<()> {
    let mut next = Instant::now();
    loop {
        next += attack.stroke(tally)?;
        // What was missed because nobody gave it a processor is not made up for.
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
