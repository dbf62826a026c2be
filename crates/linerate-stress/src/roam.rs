//! The process of subscribers that go from node to node, and notice what they miss.

use std::{
    cell::RefCell,
    io::{self, BufRead},
    net::SocketAddr,
    rc::Rc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use linerate::{Client, WebSocket};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    runtime,
    sync::mpsc,
    task::LocalSet,
    time::{sleep, timeout},
};

use crate::cores;

/// The first argument of such a process.
pub(crate) const ROAM: &str = "roam";

/// Where they subscribe.
pub(crate) const CHANNEL: &str = "kept:stress";

/// Clients come back after up to so long, so that they do not come all at once.
const BACK_AFTER_MAX: Duration = Duration::from_millis(500);

/// How long a client waits for a sign of life; nodes ping more often.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Nothing can be recovered from the position.
const UNRECOVERABLE: u64 = 112;

/// What was seen since the last time that somebody asked.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Seen {
    /// Who is subscribed now.
    pub(crate) subscribed: u64,
    pub(crate) publications: u64,
    /// Publications that were missed, and how often it was said that some were.
    pub(crate) lost: u64,
    pub(crate) gaps: u64,
    /// Publications that came twice, or too late.
    pub(crate) repeated: u64,
    pub(crate) returns: u64,
    /// The 99th percentile of how long publications were on their way.
    pub(crate) on_its_way_p99: Duration,
    /// And that of the time from the end of a connection to the next subscription, chosen pauses
    /// included, over all returns since the beginning.
    pub(crate) return_p99: Duration,
}

#[derive(Default)]
struct Shared {
    seen: Seen,
    on_their_way: Vec<Duration>,
    returning: Vec<Duration>,
}

/// Subscribes and answers each line of the standard input with what was seen since the last one, until
/// its end.
pub(crate) fn roam(nodes: &[SocketAddr], count: usize) -> Result<()> {
    cores::take_last()?;
    let shared: Rc<RefCell<Shared>> = Rc::default();
    let (sender, mut orders) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            _ = sender.send(line);
        }
    });
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let all = LocalSet::new();
    for number in 0..count {
        let subscriber = Subscriber {
            nodes: nodes.to_vec(),
            node: number,
            shared: shared.clone(),
            position: None,
            last: None,
            lost_at: None,
        };
        all.spawn_local(subscriber.run());
    }
    all.block_on(&runtime, async {
        while orders.recv().await.is_some() {
            println!("{}", serde_json::to_string(&shared.borrow_mut().take())?);
        }
        Ok(())
    })
}

impl Shared {
    fn take(&mut self) -> Seen {
        let seen = Seen {
            on_its_way_p99: p99(&mut self.on_their_way),
            return_p99: p99(&mut self.returning),
            ..self.seen.clone()
        };
        self.on_their_way.clear();
        self.seen = Seen {
            subscribed: self.seen.subscribed,
            ..Seen::default()
        };
        seen
    }
}

/// Returns the 99th percentile; changes their order.
fn p99(times: &mut [Duration]) -> Duration {
    let place = times.len() * 99 / 100;
    match times.is_empty() {
        true => Duration::ZERO,
        false => *times.select_nth_unstable(place).1,
    }
}

struct Subscriber {
    nodes: Vec<SocketAddr>,
    node: usize,
    shared: Rc<RefCell<Shared>>,
    /// The epoch and offset up to which it has everything.
    position: Option<(String, u64)>,
    /// The newest number.
    last: Option<u64>,
    lost_at: Option<Instant>,
}

impl Subscriber {
    async fn run(mut self) {
        loop {
            let mut is_subscribed = false;
            // The end is a cut connection, or one that was sent away.
            _ = self.visit(&mut is_subscribed).await;
            if is_subscribed {
                self.shared.borrow_mut().seen.subscribed -= 1;
                self.lost_at = Some(Instant::now());
            }
            self.node += 1;
            sleep(BACK_AFTER_MAX.mul_f64(rand::random())).await;
        }
    }

    /// Subscribes at a node, and stays there as long as that works.
    async fn visit(&mut self, is_subscribed: &mut bool) -> Result<()> {
        let node = self.nodes[self.node % self.nodes.len()];
        let url = format!("ws://{node}/connection/websocket");
        let mut ws = Client::new().connect(&url).await?;
        ws.send(r#"{"id":1,"connect":{}}"#).await?;
        loop {
            let message = timeout(SILENCE_MAX, ws.recv()).await??;
            let message = message.context("sent away")?;
            let text = message.as_text().context("no text")?.to_owned();
            for line in text.lines() {
                let reply: Value = serde_json::from_str(line)?;
                self.take(&mut ws, &reply, is_subscribed).await?;
            }
        }
    }

    async fn take(
        &mut self,
        ws: &mut WebSocket,
        reply: &Value,
        is_subscribed: &mut bool,
    ) -> Result<()> {
        if let Some(publication) = reply["push"].get("pub") {
            self.see(publication);
        } else if reply.as_object().is_some_and(serde_json::Map::is_empty) {
            ws.send("{}").await?;
        } else if reply["connect"].is_object() {
            self.subscribe(ws).await?;
        } else if reply["error"]["code"] == UNRECOVERABLE {
            self.shared.borrow_mut().seen.gaps += 1;
            (self.position, self.last) = (None, None);
            self.subscribe(ws).await?;
        } else if reply["subscribe"].is_object() {
            self.begin(&reply["subscribe"]);
            *is_subscribed = true;
        } else if reply["error"].is_object() || reply["push"].is_object() {
            bail!("sent away: {reply}");
        }
        Ok(())
    }

    async fn subscribe(&self, ws: &mut WebSocket) -> Result<()> {
        let mut subscribe = json!({"channel": CHANNEL, "positioned": true, "recoverable": true});
        if let Some((epoch, offset)) = &self.position {
            subscribe["recover"] = true.into();
            subscribe["epoch"] = epoch.as_str().into();
            subscribe["offset"] = (*offset).into();
        }
        let command = json!({"id": 2, "subscribe": subscribe});
        Ok(ws.send(command.to_string()).await?)
    }

    fn begin(&mut self, reply: &Value) {
        {
            let mut shared = self.shared.borrow_mut();
            shared.seen.subscribed += 1;
            if self.position.is_some() && reply["recovered"] != true {
                shared.seen.gaps += 1;
                self.last = None;
            }
            if let Some(lost_at) = self.lost_at.take() {
                shared.seen.returns += 1;
                shared.returning.push(lost_at.elapsed());
            }
        }
        let epoch = reply["epoch"].as_str().unwrap_or_default().to_owned();
        let offset = reply["offset"].as_u64().unwrap_or_default();
        self.position = Some((epoch, offset));
        for publication in reply["publications"].as_array().into_iter().flatten() {
            self.see(publication);
        }
    }

    fn see(&mut self, publication: &Value) {
        let data = &publication["data"];
        let (number, at) = (data["n"].as_u64(), data["at"].as_u64());
        let mut shared = self.shared.borrow_mut();
        if let (Some((_, position)), Some(offset)) =
            (&mut self.position, publication["offset"].as_u64())
        {
            *position = offset.max(*position);
        }
        let (Some(number), Some(at)) = (number, at) else {
            // A publication that is not ours would count as missing later.
            return;
        };
        match self.last {
            Some(last) if number <= last => return shared.seen.repeated += 1,
            Some(last) => shared.seen.lost += number - last - 1,
            None => {}
        }
        self.last = Some(number);
        shared.seen.publications += 1;
        let made = SystemTime::UNIX_EPOCH + Duration::from_nanos(at);
        shared.on_their_way.push(made.elapsed().unwrap_or_default());
    }
}
