//! `linerate bench story`: compares servers that push JSON from Redis to filtered subscribers.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use linerate_bench::{
    host::Cores,
    server::Launcher,
    story::{
        Cell, Dialect, Peer, StoryError, Transport, Trial,
        dialect::PUSHER_KEY,
        ladder::climb,
        message::{room_of, source_name},
        start_redis,
        table::{Row, markdown},
        trial::Testbed,
    },
};
use linerate_harness::{cores::pin, process::raise_file_limit};
use tempfile::NamedTempFile;

use super::launch;
use crate::terminal::print;

const EXAMPLES: &str = "\
Examples:
  scripts/story-peers                   build the other servers, once
  linerate bench story                  all servers; 10, 230 and 525 subscribers; with and without batches
  linerate bench story --subscribers 10 --batch-ms 0 --peer linerate --record story.jsonl
  linerate bench story --subscribers 230 --batch-ms 0 --protocol polling
  linerate bench story --subscribers 10000 --sources 1 --stalled 1000 --batch-ms 0 --common-rate 20 --rate-max 20 --peer linerate

JSON messages of 250 B (84 %), 3 kB (15 %) and 30 kB (1 %) from ten sources are published to a Redis channel; each \
subscriber asks for the messages of one source. The rate is raised step by step. Every message is checked: the climb \
ends when one is lost, duplicated or out of order. Requires redis-server. Do not use the machine for anything else \
during a run.";

/// Compares linerate with Centrifuge and Socket.IO on the workload that linerate was built for:
/// JSON from Redis, filtered for each client and pushed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Number of subscribers; may be repeated.
    #[arg(long, value_name = "N", default_values_t = [10, 230, 525],
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    subscribers: Vec<u32>,

    /// Batch interval in milliseconds, or 0 for no batches; may be repeated. Servers that cannot
    /// batch take part only with 0.
    #[arg(long, value_name = "N", default_values_t = [0, 200],
        value_parser = clap::value_parser!(u32).range(0..=10_000))]
    batch_ms: Vec<u32>,

    /// Number of sources, which take turns to publish; each subscriber asks for the messages of one
    /// source.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=64))]
    sources: u32,

    /// Number of additional subscribers that read nothing and must not slow down the others. All
    /// sockets are filled before the trial; use 0 for a baseline with filled sockets but no stalled
    /// subscribers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    stalled: Option<u32>,

    /// Measure only servers whose name contains PART; may be repeated.
    #[arg(long, value_name = "PART")]
    peer: Vec<String>,

    /// Measure only clients whose protocol, as in the table, contains PART; may be repeated.
    #[arg(long, value_name = "PART")]
    protocol: Vec<String>,

    /// Duration of each trial in seconds.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,

    /// Messages per second at which all servers are compared, and at which the climb begins.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    common_rate: u32,

    /// Messages per second at which the climb ends.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate_max: u32,

    /// Where to write the record, one trial per line.
    #[arg(long, value_name = "FILE", default_value = "story.jsonl")]
    record: PathBuf,

    /// Folder of the other servers, as built by scripts/story-peers.
    #[arg(long, value_name = "DIR", default_value = ".cache/story")]
    peers_dir: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let config = write_config(arguments.sources)?;
    let peers = arguments.peers(config.path())?;
    let cores = Cores::choose(None, None)?;
    let launcher =
        Launcher::this_binary(&launch::VERBS).context("cannot find the path of this binary")?;
    raise_file_limit()?;
    pin(&cores.load).context("cannot pin the load generator to its cores")?;
    let redis = start_redis(&launcher, &cores.load)?;
    let mut record = File::create(&arguments.record)
        .with_context(|| format!("cannot write {}", arguments.record.display()))?;
    let mut rows = Vec::new();
    for cell in arguments.cells() {
        for peer in peers
            .iter()
            .filter(|peer| peer.batches || cell.batch_ms == 0)
        {
            let open = || Testbed::open(peer, cell, &launcher, &cores.server, &redis);
            let row = arguments.measure(&open, &mut record);
            rows.push(
                row.with_context(|| {
                    format!("{} with {} subscribers", peer.name, cell.subscribers)
                })?,
            );
        }
    }
    Ok(print(&markdown(&rows))?)
}

impl Arguments {
    fn cells(&self) -> Vec<Cell> {
        let cells = self.batch_ms.iter().flat_map(|&batch_ms| {
            let subscribers = self.subscribers.iter();
            subscribers.map(move |&subscribers| Cell {
                subscribers,
                sources: self.sources,
                batch_ms,
                stalled: self.stalled,
            })
        });
        cells.collect()
    }

    fn measure<'a>(
        &self,
        open: &dyn Fn() -> Result<Testbed<'a>, StoryError>,
        record: &mut File,
    ) -> anyhow::Result<Row> {
        let time = Duration::from_secs(self.seconds.into());
        let mut testbed = None;
        let mut try_rate = |rate: f64| {
            let running = match &mut testbed {
                Some(running) => running,
                None => testbed.insert(open()?),
            };
            let trial = running.try_rate(rate, time)?;
            note(&trial);
            // The run continues, because the table at the end does not need the record.
            if let Err(error) = write_line(record, &trial) {
                eprintln!("cannot write the record: {error}");
            }
            if !trial.is_sustained() {
                // Some subscribers may have disconnected, and the server may have a backlog, so the
                // next trial starts from scratch.
                testbed = None;
            }
            Ok(trial)
        };
        let common = f64::from(self.common_rate);
        let calm = try_rate(common)?;
        let peak = climb(common, f64::from(self.rate_max), try_rate)?;
        Ok(Row { peak, calm })
    }

    fn peers(&self, config: &Path) -> anyhow::Result<Vec<Peer>> {
        let this = std::env::current_exe().context("cannot find the path of this binary")?;
        let serve = [
            "serve",
            "--workers",
            "1",
            "--listen",
            "{listen}",
            "--broker",
            "redis://{redis}",
            "--config",
        ];
        let ours: Vec<String> = serve
            .iter()
            .map(ToString::to_string)
            .chain([config.display().to_string()])
            .collect();
        let peer = |name: &str, program: &Path, arguments: &[String], dialect| Peer {
            name: name.into(),
            program: program.into(),
            arguments: arguments.to_vec(),
            dialect,
            transport: Transport::WebSocket,
            batches: matches!(dialect, Dialect::Native | Dialect::Raw),
        };
        let polling = |peer: Peer| Peer {
            transport: Transport::Polling,
            ..peer
        };
        let theirs = |more: &[&str]| -> Vec<String> {
            let always = ["--listen", "{listen}", "--redis", "{redis}"];
            always.iter().chain(more).map(ToString::to_string).collect()
        };
        let centrifuge = self.peers_dir.join("centrifuge/server");
        let socket_io = self.peers_dir.join("socket-io/server");
        let all = [
            peer("linerate", &this, &ours, Dialect::Raw),
            peer("linerate", &this, &ours, Dialect::Native),
            peer("linerate", &this, &ours, Dialect::Pusher),
            peer("linerate", &this, &ours, Dialect::SocketIoNamespace),
            polling(peer("linerate", &this, &ours, Dialect::SocketIoNamespace)),
            peer(
                "centrifuge",
                &centrifuge,
                &theirs(&[]),
                Dialect::CentrifugeJson,
            ),
            peer("socket.io", &socket_io, &theirs(&[]), Dialect::SocketIo),
            polling(peer(
                "socket.io",
                &socket_io,
                &theirs(&[]),
                Dialect::SocketIo,
            )),
            peer(
                "socket.io, binary",
                &socket_io,
                &theirs(&["--binary"]),
                Dialect::SocketIo,
            ),
        ];
        let has = |name: &str, parts: &[String]| {
            parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
        };
        let is_wanted =
            |peer: &Peer| has(&peer.name, &self.peer) && has(peer.protocol(), &self.protocol);
        let available = all
            .iter()
            .map(|peer| format!("{} ({})", peer.name, peer.protocol()));
        let available: Vec<_> = available.collect();
        let chosen: Vec<Peer> = all.into_iter().filter(is_wanted).collect();
        if chosen.is_empty() {
            bail!(
                "no server matches --peer {:?} --protocol {:?}; available: {}",
                self.peer,
                self.protocol,
                available.join("; ")
            );
        }
        for peer in &chosen {
            if !peer.program.exists() {
                bail!(
                    "{} does not exist: build it with scripts/story-peers, or select other servers with --peer",
                    peer.program.display()
                );
            }
        }
        Ok(chosen)
    }
}

/// Writes a configuration in which every client may connect, filter and ask for batches.
fn write_config(sources: u32) -> anyhow::Result<NamedTempFile> {
    let sources: Vec<String> = (0..sources).map(source_name).collect();
    let namespaces: Vec<String> = sources.iter().map(|name| format!("/{name}")).collect();
    let rooms: Vec<String> = sources.iter().map(|name| room_of(name)).collect();
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile()?;
    write!(
        file,
        "[server]\nconnections_max = 25000\nconnections_per_address_max = 25000\naccepts_per_second_max = 100000\n\
         [auth]\nanonymous = true\n[channel]\nallow_subscribe = true\nallow_anonymous = true\nallow_filter = true\n\
         allow_batch_override = true\n[protocols]\npusher = true\nsocketio = true\n[pusher]\napp_id = \"1\"\nkey = \"{PUSHER_KEY}\"\n\
         secret = \"of no use elsewhere\"\n[socketio]\nnamespaces = {namespaces:?}\nrooms = {rooms:?}\n"
    )?;
    Ok(file)
}

fn write_line(record: &mut File, trial: &Trial) -> std::io::Result<()> {
    let line = serde_json::to_string(trial)?;
    writeln!(record, "{line}")
}

/// Prints the outcome of a trial on standard error.
fn note(trial: &Trial) {
    let outcome = match (trial.is_sustained(), trial.is_on_schedule()) {
        (true, _) => "sustained",
        (false, true) => "not sustained",
        (false, false) => "publisher late",
    };
    let p99_ms = trial
        .latency
        .as_ref()
        .map_or(0.0, |latency| latency.p99_us / 1e3);
    eprintln!(
        "{:18} {:18} {:4} subscribers, batch {:3} ms, {:7.0}/s: {outcome}, {:9.0} delivered per CPU-s, p99 {p99_ms:.1} ms, {} lost{}",
        trial.peer,
        trial.dialect,
        trial.subscribers,
        trial.batch_ms,
        trial.rate,
        trial.delivered_per_cpu_s,
        trial.received.lost,
        trial
            .received
            .end
            .as_ref()
            .map_or(String::new(), |end| format!(
                ", {} ended: {end}",
                trial.received.ended
            )),
    );
}
