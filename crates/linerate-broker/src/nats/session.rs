//! Runs one link after another, and watches each until it ends.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use async_nats::ServerAddr;
use rand::RngExt;
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    runtime,
    sync::mpsc,
    time::{interval, sleep, timeout},
};

use super::{
    dial::Connector,
    link::{Command, Link},
    pump::Pump,
    servers::Servers,
    state::{CurrentLink, NatsState},
};
use crate::{
    awake::{sleep_awake, timeout_awake},
    backoff::Backoff,
    event::{Event, GapReason, LinkState},
};

/// The number of commands that may wait for the pump.
const COMMANDS_MAX: usize = 1_024;

/// The interval between checks of how much is waiting for the node.
const BACKLOG_INTERVAL: Duration = Duration::from_millis(50);

/// The shortest and the longest interval between searches for streams that are not used.
const SWEEP_INTERVAL: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60 * 60)];

/// How long a server may take to send its greeting when we only check whether it is alive.
const GREETING_MAX: Duration = Duration::from_secs(2);

/// How long a deaf link may take to recover once its server greets new connections.
const GRACE: Duration = Duration::from_secs(1);

/// Maintains a link until the broker is shut down.
///
/// Each link has its own runtime. Everything that belongs to the link ends with the runtime,
/// including the background tasks of async-nats.
pub(super) fn run_links(shared: &Arc<NatsState>, dial: &Connector) {
    let mut servers = Servers::new(dial.servers());
    let mut backoff = Backoff::new(&shared.options);
    let mut delay = Duration::ZERO;
    let mut ended = GapReason::LinkLost;
    while !shared.is_shut_down() {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let result = match &runtime {
            Ok(runtime) => runtime.block_on(session(shared, dial, &mut servers, delay, ended)),
            Err(error) => {
                thread::sleep(delay);
                Err(error.to_string())
            }
        };
        if let Ok(runtime) = runtime {
            runtime.shutdown_background();
        }
        match result {
            Ok(reason) => {
                ended = reason;
                backoff.reset();
            }
            Err(reason) => {
                let server = servers.current().map(ServerAddr::as_url_str);
                tracing::warn!(server, reason, "not connected to NATS");
                shared.set_current(CurrentLink::Down { reason });
                servers.advance();
            }
        }
        delay = backoff.next();
    }
}

/// Runs one link. Returns why it ended, or an error if it was never established.
async fn session(
    shared: &Arc<NatsState>,
    dial: &Connector,
    servers: &mut Servers,
    delay: Duration,
    before: GapReason,
) -> Result<GapReason, String> {
    tokio::select! {
        () = sleep(delay) => (),
        () = shared.shut_down() => return Ok(GapReason::LinkLost),
    }
    let (commands, queue) = mpsc::channel(COMMANDS_MAX);
    let server = servers.current().cloned().ok_or("no server is known")?;
    let link = Link::connect(dial, &server, &shared.options, commands.clone()).await?;
    let link = Arc::new(link);
    servers.set_announced(dial.scheme(), &link.cluster());
    let mut pump = Pump::new(Arc::clone(shared), Arc::clone(&link));
    start_loopback(&link).await?;
    pump.subscribe_all()
        .await
        .map_err(|error| error.to_string())?;
    let sent = Instant::now();
    link.round_trip().await.map_err(|error| error.to_string())?;
    pump.queue_events(shared.handle_established(sent.elapsed(), before));
    shared.set_current(CurrentLink::Up(Arc::clone(&link)));
    tracing::info!(server = server.as_url_str(), "connected to NATS");
    tokio::select! {
        () = pump.run(queue) => (),
        () = watch(shared, servers, &link, &commands) => (),
        _ = link.ended() => (),
        () = shared.shut_down() => {
            // Write out the publications that are still buffered.
            let _ = timeout(shared.options.probe_timeout, link.client.flush()).await;
        }
    }
    servers.set_announced(dial.scheme(), &link.cluster());
    // Only the first reason counts.
    link.end(GapReason::LinkLost);
    let reason = link.ended().await;
    tracing::warn!(?reason, "connection to NATS has ended");
    shared.set_state(LinkState::Deaf);
    let down = "connection was lost".to_owned();
    shared.set_current(CurrentLink::Down { reason: down });
    link.loopback.end();
    pump.finish().await;
    shared
        .ingest
        .ingest(vec![Event::Link(LinkState::Deaf)])
        .await;
    Ok(reason)
}

async fn start_loopback(link: &Arc<Link>) -> Result<(), String> {
    let inbox = link.loopback.inbox().to_owned();
    let subscriber = link.client.subscribe(inbox).await;
    let subscriber = subscriber.map_err(|error| error.to_string())?;
    let receiving = Arc::clone(link);
    tokio::spawn(async move { receiving.loopback.receive(subscriber).await });
    let sending = Arc::clone(link);
    tokio::spawn(async move { sending.loopback.send(&sending.client).await });
    Ok(())
}

/// Watches a link until it must be closed.
async fn watch(
    shared: &NatsState,
    servers: &Servers,
    link: &Link,
    commands: &mpsc::Sender<Command>,
) {
    tokio::select! {
        () = watch_backlog(link) => (),
        () = probe(shared, servers, link, commands) => (),
        () = sweep(shared, link) => (),
    }
}

/// Deletes streams that are not used from time to time, at other times than other nodes.
async fn sweep(shared: &NatsState, link: &Link) {
    let [shortest, longest] = SWEEP_INTERVAL;
    let interval = (shared.options.meta_ttl / 24).clamp(shortest, longest);
    loop {
        sleep(interval.mul_f64(rand::rng().random_range(0.5..1.5))).await;
        link.streams.sweep(&shared.options.prefix).await;
    }
}

async fn watch_backlog(link: &Link) {
    let mut ticks = interval(BACKLOG_INTERVAL);
    loop {
        ticks.tick().await;
        if link.is_backlog_too_large() {
            link.end(GapReason::Overflow);
            return;
        }
        if link.is_cut() {
            return;
        }
    }
}

/// Sends a loopback message at regular intervals and reports the result. Ends when the link is
/// dead.
async fn probe(
    shared: &NatsState,
    servers: &Servers,
    link: &Link,
    commands: &mpsc::Sender<Command>,
) {
    let options = &shared.options;
    let tell = async |state| {
        shared.set_state(state);
        // This fails only if the pump has ended, and with it the link.
        let _ = commands.send(Command::Report(Event::Link(state))).await;
    };
    loop {
        sleep(options.probe_interval).await;
        let sent = Instant::now();
        let mut round_trip = std::pin::pin!(link.loopback.round_trip());
        let back = match timeout_awake(options.probe_timeout, &mut round_trip).await {
            Some(back) => back,
            None => {
                tell(LinkState::Deaf).await;
                let left = options.dead_after.saturating_sub(options.probe_timeout);
                tokio::select! {
                    biased;
                    back = &mut round_trip => back,
                    () = is_dead(servers, left) => return,
                }
            }
        };
        if back.is_err() {
            return;
        }
        let round_trip = sent.elapsed();
        tell(LinkState::Up { round_trip }).await;
    }
}

/// Completes when a deaf link should be closed: when some server greets new connections, but
/// nothing comes back on the link.
///
/// A server that was only paused greets no connections either. In that case the old link continues
/// where it was and nothing is lost, whereas a new link would have to start again.
async fn is_dead(servers: &Servers, after: Duration) {
    sleep_awake(after).await;
    loop {
        for server in servers.all() {
            if timeout(GREETING_MAX, greets(server)).await == Ok(true) {
                sleep_awake(GRACE).await;
                return;
            }
        }
        sleep(GRACE).await;
    }
}

async fn greets(server: &ServerAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect((server.host(), server.port())).await else {
        return false;
    };
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).await.is_ok() && &greeting == b"INFO"
}
