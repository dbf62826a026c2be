//! Clients of a server that is replaced again and again by `linerate serve --takeover`:
//! `linerate-stress takeover`.
//!
//! The clients speak all protocols, half of them with compression. Each checks that it receives the
//! numbers of its channel one after the other, and how long they take.

mod follower;
mod publisher;

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use linerate_testkit::server::RedisServer;
use tokio::time::sleep;

use follower::{Figures, Follower, Kind};
use publisher::Publisher;

/// The name of the command.
pub(crate) const TAKEOVER: &str = "takeover";

/// The number of clients that connect at the same time.
const CONNECTS_AT_ONCE: u32 = 100;

/// How long publications arrive between two takeovers.
const STEADY: Duration = Duration::from_secs(2);

/// How long deliveries count as during a takeover after the new process serves.
const AFTER: Duration = Duration::from_millis(500);

/// How long a process may take to serve, and the last publications to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many clients there are, and what happens to them.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    clients: u32,
    /// Number of channels that they are subscribed to
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    channels: u32,
    /// Number of publications a second, in one channel after the other
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    rate: u32,
    /// Number of takeovers
    #[arg(long, value_name = "N", default_value_t = 10)]
    takeovers: u32,
    /// Encrypt the connections
    #[arg(long)]
    tls: bool,
    /// The linerate binary to run as the server [default: linerate next to this program]
    #[arg(long, value_name = "FILE", env = "LINERATE_BIN")]
    pub(crate) linerate: Option<PathBuf>,
}

/// A server process. Dropping it ends it.
struct Server {
    child: Child,
    address: String,
}

/// Runs everything and prints the figures. Returns whether no client has noticed anything.
pub(crate) fn run(arguments: &Arguments, linerate: &Path) -> Result<bool> {
    ensure!(arguments.rate > 0, "--rate must be at least 1");
    ensure!(arguments.channels > 0, "--channels must be at least 1");
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    runtime.block_on(take_turns(arguments, linerate))
}

async fn take_turns(arguments: &Arguments, linerate: &Path) -> Result<bool> {
    let redis = RedisServer::start().context("Redis is not installed")?;
    let directory = tempfile::tempdir()?;
    let config = directory.path().join("linerate.toml");
    std::fs::write(
        &config,
        configuration(arguments, directory.path(), &redis.url())?,
    )?;
    let mut server = Server::start(linerate, &config, false)?;
    let figures = Arc::new(Figures::default());
    let tasks = connect(arguments, &server.address, &figures).await?;
    println!(
        "{} clients of {} channels are connected",
        arguments.clients, arguments.channels
    );
    let publisher = Publisher::start(redis.port(), arguments.channels, arguments.rate)?;
    let mut longest = Duration::ZERO;
    for number in 1..=arguments.takeovers {
        sleep(STEADY).await;
        figures.begin_takeover();
        let started = Instant::now();
        let (linerate, config) = (linerate.to_owned(), config.clone());
        let new = tokio::task::spawn_blocking(move || Server::start(&linerate, &config, true));
        let new = new.await??;
        let lasted = started.elapsed();
        longest = longest.max(lasted);
        let mut old = std::mem::replace(&mut server, new);
        sleep(AFTER).await;
        figures.end_takeover();
        let ended = tokio::task::spawn_blocking(move || old.child.wait());
        ensure!(ended.await??.success(), "the old process has failed");
        println!("takeover {number}: the new process served after {lasted:.1?}");
    }
    sleep(STEADY).await;
    // The clients receive meanwhile.
    let stopped = tokio::task::spawn_blocking(|| publisher.stop());
    let published = stopped.await??;
    figures.expect(published);
    let waited = Instant::now();
    while figures.behind(arguments.clients) > 0 && waited.elapsed() < PATIENCE {
        sleep(Duration::from_millis(50)).await;
    }
    let behind = figures.behind(arguments.clients);
    for task in tasks {
        task.abort();
    }
    figures.print(behind, longest);
    Ok(behind == 0 && figures.is_flawless())
}

/// Connects all clients.
async fn connect(
    arguments: &Arguments,
    address: &str,
    figures: &Arc<Figures>,
) -> Result<Vec<tokio::task::JoinHandle<()>>> {
    let mut tasks = Vec::new();
    let next = Arc::new(AtomicU32::new(0));
    let mut connecting = Vec::new();
    for _ in 0..CONNECTS_AT_ONCE {
        let (next, figures, address) = (next.clone(), figures.clone(), address.to_owned());
        let (clients, channels, is_encrypted) =
            (arguments.clients, arguments.channels, arguments.tls);
        connecting.push(tokio::spawn(async move {
            let mut tasks = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= clients {
                    return Ok::<_, anyhow::Error>(tasks);
                }
                let kind = Kind::of(number);
                let channel = number % channels;
                let is_compressed = number % 2 == 0;
                let follower =
                    Follower::connect(&address, kind, channel, (is_compressed, is_encrypted));
                let follower = follower.await?;
                tasks.push(tokio::spawn(follower.follow(figures.clone())));
            }
        }));
    }
    for one in connecting {
        tasks.extend(one.await??);
    }
    Ok(tasks)
}

impl Server {
    /// Starts a process, and waits until it serves.
    fn start(linerate: &Path, config: &Path, takes_over: bool) -> Result<Self> {
        let mut command = Command::new(linerate);
        command.arg("serve").arg("--config").arg(config);
        if takes_over {
            command.arg("--takeover");
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().context("the server has no output")?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().rsplit_once("//").map(|(_, address)| address);
        let address = address.context("the server does not serve")?;
        Ok(Self {
            address: address.trim_end_matches('/').to_owned(),
            child,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn configuration(arguments: &Arguments, directory: &Path, redis: &str) -> Result<String> {
    let socket = directory.join("takeover.sock");
    let mut text = format!(
        r#"
[server]
listen = "127.0.0.1:0"
workers = 2
connections_max = 20_000
accepts_per_second_max = 20_000
takeover_socket = {socket:?}
[server.drain]
window_s = 1
[broker]
url = "{redis}"
[auth]
anonymous = true
[compression]
enabled = true
[channel]
allow_subscribe = true
allow_anonymous = true
"#
    );
    if arguments.tls {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|it| directory.join(it));
        std::fs::write(&certificate, made.cert.pem())?;
        std::fs::File::create(&key)?.write_all(made.signing_key.serialize_pem().as_bytes())?;
        text += &format!("[server.tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
    }
    Ok(text)
}
