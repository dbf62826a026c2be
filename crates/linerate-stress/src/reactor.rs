//! Rows about a `linerate-reactor` server, on each driver.

use std::{
    io::{self, BufRead},
    net::Ipv4Addr,
    thread,
    time::Duration,
};

use anyhow::Result;
use linerate_harness::process::Process;
use linerate_reactor::{
    Context, DriverKind, Handler, Message, Opened, Options, Server, handshake::HttpResponse,
};

use crate::{
    Row,
    attack::{self, Abuse, connect::CONNECTS, flood::MESSAGE_BYTES, pages},
    child::Child,
    cores,
    figures::{Effort, Figures, alternate},
    live::{LiveClients, Target},
    outcome::{Bounds, Finding, Outcome},
};

/// The first argument of a server process.
pub(crate) const SERVE: &str = "serve-by-reactor";

/// How long a peer may be silent, refuse to read, or take for its handshake. The time is short, so
/// that the slices also include the end of abused connections.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// The value of the option with this name.
const BACKLOG_BYTES_MAX: usize = 64 << 10;

/// The size of a page in bytes, which is more than a backlog may have before it is congested.
const PAGE_BYTES: usize = 128 << 10;

/// The latency that does no harm, whatever the ratio.
const P99_FREE: Duration = Duration::from_micros(200);

/// How long the server may need to read what a client has sent after its request, and to discard
/// it.
const READ: Duration = Duration::from_micros(1);

const ABUSES: [Abuse; 8] = [
    Abuse::SlowReaders,
    Abuse::HalfOpen,
    Abuse::Pages,
    Abuse::Pings,
    Abuse::TinyFragments,
    Abuse::EmptyFragments,
    Abuse::Churn,
    Abuse::Silence,
];

/// Returns a row for each abuse on each driver.
pub(crate) fn rows() -> Vec<Row> {
    let rows = DriverKind::ALL.into_iter().flat_map(|driver| {
        ABUSES.map(|abuse| {
            let name = format!("reactor/{driver}/{}", abuse.name());
            Row::new(name, move |effort| run(driver, abuse, effort))
        })
    });
    rows.collect()
}

fn run(driver: DriverKind, abuse: Abuse, effort: &Effort) -> Result<Outcome> {
    driver.check()?;
    let peers = peers(abuse);
    let figures = abused(&[SERVE, driver.as_str()], abuse, peers, effort)?;
    let mut also = Vec::new();
    if abuse == Abuse::Pages {
        also.push(Finding::all(&figures, pages::ASKED, pages::ANSWERED));
    }
    let turn = match abuse {
        Abuse::Pages => READ,
        _ => Duration::ZERO,
    };
    let memory_max = memory_max(abuse, peers);
    Ok(outcome(figures, peers, turn, memory_max, also))
}

/// Returns the outcome of an abuse by `peers` attackers that may cost `memory_max` bytes of memory.
///
/// The server has one thread. If all attackers have sent something, a live client waits until each
/// of them has had one turn.
pub(crate) fn outcome(
    figures: Figures,
    peers: usize,
    turn: Duration,
    memory_max: usize,
    also: Vec<Finding>,
) -> Outcome {
    Outcome {
        abuse: format!("up to {peers} connections"),
        bounds: Bounds {
            memory_growth_max: memory_max as u64,
            p99_free: P99_FREE + turn * peers as u32,
        },
        figures,
        also,
    }
}

/// Measures an abuse by `peers` attackers on a server that this program runs with these arguments.
pub(crate) fn abused(
    server: &[&str],
    abuse: Abuse,
    peers: usize,
    effort: &Effort,
) -> Result<Figures> {
    let mut server = Child::start(server)?;
    let address = server.answer()?;
    let address = address.parse()?;
    let mut attackers = attack::start(abuse, address, peers)?;
    let mut live = LiveClients::open(Target {
        address,
        path: "/echo",
        tls: None,
    })?;
    let process = Process::new(server.id());
    let figures = alternate(process, &mut live, &mut attackers, abuse.has_twin(), effort)?;
    drop(live);
    attackers.end()?;
    server.end()?;
    Ok(figures)
}

/// Returns the maximum number of connections of an abuse.
const fn peers(abuse: Abuse) -> usize {
    match abuse {
        Abuse::EmptyFragments | Abuse::Pings | Abuse::TinyFragments => 4,
        Abuse::Pages => 256,
        Abuse::SlowReaders => 64,
        // Each lives for at most four times `PATIENCE`, which is two seconds.
        _ => 2 * CONNECTS,
    }
}

/// Returns how many bytes of memory an abuse may cost the server, according to the server's
/// options.
pub(crate) const fn memory_max(abuse: Abuse, peers: usize) -> usize {
    /// What a worker keeps for reuse, whatever its clients do: a buffer for reads, one for output,
    /// and up to a megabyte of each size for messages in pieces.
    const WORKER: usize = 16 << 20;
    /// Input that was read before reading was paused.
    const HELD: usize = 256 << 10;
    let each = match abuse {
        // A message of at most a megabyte, in a buffer that grows by doubling.
        Abuse::EmptyFragments | Abuse::Pings | Abuse::TinyFragments => (2 << 20) + HELD,
        // The page in a backlog, which may take four times as much while it is small.
        Abuse::Pages => PAGE_BYTES + 4 * BACKLOG_BYTES_MAX + HELD,
        Abuse::SlowReaders => BACKLOG_BYTES_MAX + MESSAGE_BYTES + HELD,
        // An incomplete request, and a connection.
        _ => 16 << 10,
    };
    WORKER + peers * each
}

/// Prints the address of the server, and serves until standard input ends.
pub(crate) fn serve(driver: DriverKind) -> Result<()> {
    cores::take_first()?;
    cores::go_first();
    let mut options = Options::default();
    options.driver = driver;
    options.backlog_bytes_max = BACKLOG_BYTES_MAX;
    options.write_timeout = PATIENCE;
    options.handshake.time_max = PATIENCE;
    options.config.ping_interval = Some(PATIENCE);
    options.config.ping_timeout = PATIENCE;
    options.config.close_timeout = PATIENCE;
    let server = Server::new()
        .with_workers(1)
        .with_options(options)
        .with_fallback(Echo)
        .with_http(pages::PATH, |_| {
            HttpResponse::bytes("application/octet-stream", &[b'x'; PAGE_BYTES][..])
        })
        .listen((Ipv4Addr::LOCALHOST, 0).into())?;
    println!("{}", server.local_addr());
    let remote = server.remote();
    thread::spawn(move || {
        for _ in io::stdin().lock().lines() {}
        remote.shut_down();
    });
    Ok(server.run()?)
}

/// Echoes each message.
#[derive(Clone)]
struct Echo;

impl Handler for Echo {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        // Sending fails if the peer has disconnected.
        _ = cx.send(message);
    }
}
