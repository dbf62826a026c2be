//! The process of subscribers that move from node to node, and detect publications that they miss.

mod reply;

use std::{
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use linerate::{Backoff, Client, WebSocket};
use rand::seq::IteratorRandom;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime;

use self::reply::{Publication, Reply, SubscribeReply};
use crate::{child::orders, cores, waits::p99};

/// The first argument of such a process.
pub(crate) const ROAM: &str = "roam";

/// The channel that they subscribe to.
pub(crate) const CHANNEL: &str = "kept:stress";

/// The maximum delay before a client reconnects. Each chooses its own, so that they do not
/// reconnect all at once.
const BACK_AFTER_MAX: Duration = Duration::from_millis(500);

/// The error code if nothing can be recovered from the position.
const UNRECOVERABLE: u64 = 112;

/// What was seen since the last report.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct RoamReport {
    /// How many clients are subscribed now.
    pub(crate) subscribed: u64,
    pub(crate) publications: u64,
    /// How many publications were missed, and how often a node reported a gap.
    pub(crate) lost: u64,
    pub(crate) gaps: u64,
    /// How many publications arrived twice, or out of order.
    pub(crate) repeated: u64,
    pub(crate) returns: u64,
    /// The 99th percentile of the time that publications took to arrive.
    pub(crate) on_its_way_p99: Duration,
    /// The 99th percentile of the time from the end of a connection to the next subscription,
    /// including the chosen delays, over all returns since the beginning.
    pub(crate) return_p99: Duration,
}

#[derive(Default)]
struct RoamState {
    seen: RoamReport,
    on_their_way: Vec<Duration>,
    returning: Vec<Duration>,
}

/// Subscribes, and answers each line of standard input with what was seen since the last one, until
/// the input ends.
pub(crate) fn roam(nodes: &[SocketAddr], count: usize) -> Result<()> {
    cores::take_last()?;
    let shared: Arc<Mutex<RoamState>> = Arc::default();
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let nodes: Arc<[SocketAddr]> = nodes.into();
    for number in 0..count {
        let subscriber = Subscriber {
            nodes: nodes.clone(),
            node: number % nodes.len(),
            shared: shared.clone(),
            position: None,
            last: None,
            lost_at: None,
        };
        runtime.spawn(subscriber.run());
    }
    thread::spawn(move || runtime.block_on(pending::<()>()));
    for _ in orders() {
        let seen = lock(&shared).take();
        println!("{}", serde_json::to_string(&seen)?);
    }
    Ok(())
}

impl RoamState {
    fn take(&mut self) -> RoamReport {
        let seen = RoamReport {
            on_its_way_p99: p99(&mut self.on_their_way),
            return_p99: p99(&mut self.returning),
            ..self.seen.clone()
        };
        self.on_their_way.clear();
        self.seen = RoamReport {
            subscribed: self.seen.subscribed,
            ..RoamReport::default()
        };
        seen
    }
}

struct Subscriber {
    nodes: Arc<[SocketAddr]>,
    /// The index of the current node, or of the next one.
    node: usize,
    shared: Arc<Mutex<RoamState>>,
    /// The epoch and offset up to which the subscriber has every publication.
    position: Option<(String, u64)>,
    /// The highest number of a publication that was received.
    last: Option<u64>,
    lost_at: Option<Instant>,
}

impl Subscriber {
    async fn run(mut self) {
        let mut backoff = Backoff::new()
            .with_first(BACK_AFTER_MAX)
            .with_max(BACK_AFTER_MAX);
        loop {
            let mut is_subscribed = false;
            // A visit ends when the connection is cut, or when the node disconnects the client.
            _ = self.visit(&mut is_subscribed).await;
            if is_subscribed {
                self.shared().seen.subscribed -= 1;
                self.lost_at = Some(Instant::now());
            }
            self.node = self.another();
            // The number of attempts is unlimited.
            _ = backoff.wait().await;
        }
    }

    /// Chooses another node at random, as a load balancer does. If all clients moved to the next
    /// node, the whole crowd would always be on the node that is restarted next.
    fn another(&self) -> usize {
        let others = (0..self.nodes.len()).filter(|node| *node != self.node);
        others.choose(&mut rand::rng()).unwrap_or(self.node)
    }

    /// Subscribes at a node, and stays there until the connection ends.
    async fn visit(&mut self, is_subscribed: &mut bool) -> Result<()> {
        let url = format!("ws://{}/connection/websocket", self.nodes[self.node]);
        // By default, a silent connection is pinged and then closed.
        let mut ws = Client::new().connect(&url).await?;
        // Both commands are sent at once, as centrifuge-js does.
        let connect = r#"{"id":1,"connect":{}}"#;
        let subscribe = self.subscribe_command();
        ws.send(format!("{connect}\n{subscribe}")).await?;
        loop {
            let message = ws.recv().await?.context("disconnected by the node")?;
            for line in message.as_text().context("message is not text")?.lines() {
                let reply = serde_json::from_str(line).with_context(|| line.to_owned())?;
                self.take(&mut ws, &reply, is_subscribed).await?;
            }
        }
    }

    async fn take(
        &mut self,
        ws: &mut WebSocket,
        reply: &Reply<'_>,
        is_subscribed: &mut bool,
    ) -> Result<()> {
        if let Some(push) = &reply.push {
            self.see(
                push.publication
                    .as_ref()
                    .context("disconnected by the node")?,
            );
        } else if let Some(error) = &reply.error {
            ensure!(
                error.code == UNRECOVERABLE,
                "subscription refused with error {}",
                error.code
            );
            self.shared().seen.gaps += 1;
            (self.position, self.last) = (None, None);
            ws.send(self.subscribe_command()).await?;
        } else if let Some(subscribed) = &reply.subscribe {
            self.begin(subscribed);
            *is_subscribed = true;
        } else if reply.is_ping() {
            ws.send("{}").await?;
        }
        Ok(())
    }

    fn subscribe_command(&self) -> String {
        let mut subscribe = json!({"channel": CHANNEL, "positioned": true, "recoverable": true});
        if let Some((epoch, offset)) = &self.position {
            subscribe["recover"] = true.into();
            subscribe["epoch"] = epoch.as_str().into();
            subscribe["offset"] = (*offset).into();
        }
        json!({"id": 2, "subscribe": subscribe}).to_string()
    }

    fn begin(&mut self, subscribed: &SubscribeReply<'_>) {
        let is_gap = self.position.is_some() && !subscribed.recovered;
        if is_gap {
            self.last = None;
        }
        let lost_at = self.lost_at.take();
        let mut shared = self.shared();
        shared.seen.subscribed += 1;
        shared.seen.gaps += u64::from(is_gap);
        if let Some(lost_at) = lost_at {
            shared.seen.returns += 1;
            shared.returning.push(lost_at.elapsed());
        }
        drop(shared);
        self.position = Some((subscribed.epoch.to_owned(), subscribed.offset));
        for publication in &subscribed.publications {
            self.see(publication);
        }
    }

    fn see(&mut self, publication: &Publication) {
        if let (Some((_, position)), Some(offset)) = (&mut self.position, publication.offset) {
            *position = offset.max(*position);
        }
        let (Some(number), Some(at)) = (publication.data.n, publication.data.at) else {
            // Ignore it: a publication that is not ours has no number.
            return;
        };
        let last = self.last;
        if last.is_none_or(|last| number > last) {
            self.last = Some(number);
        }
        let mut shared = self.shared();
        match last {
            Some(last) if number <= last => return shared.seen.repeated += 1,
            Some(last) => shared.seen.lost += number - last - 1,
            None => {}
        }
        shared.seen.publications += 1;
        let made = SystemTime::UNIX_EPOCH + Duration::from_nanos(at);
        shared.on_their_way.push(made.elapsed().unwrap_or_default());
    }

    fn shared(&self) -> MutexGuard<'_, RoamState> {
        lock(&self.shared)
    }
}

fn lock(shared: &Mutex<RoamState>) -> MutexGuard<'_, RoamState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
