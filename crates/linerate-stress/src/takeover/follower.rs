//! Clients that check what they receive.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use linerate::{Client, Deflate, WebSocket};

/// Longer delays count as this long, in microseconds.
const DELAY_MICROS_MAX: u64 = 60_000_000;

/// The protocol of a client.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Centrifuge,
    Native,
    Raw,
}

/// A client.
pub(super) struct Follower {
    ws: WebSocket,
    /// The last number that it has received; 0 before the first.
    last: u64,
}

/// What all clients have received.
#[derive(Debug, Default)]
pub(super) struct Figures {
    disconnected: AtomicU64,
    lost: AtomicU64,
    repeated: AtomicU64,
    delivered: AtomicU64,
    is_takeover: AtomicBool,
    /// The last number of all channels; 0 as long as it is unknown.
    expected: AtomicU64,
    delays: Mutex<Delays>,
}

/// How long deliveries took, in microseconds.
#[derive(Debug)]
struct Delays {
    steady: Histogram<u64>,
    takeover: Histogram<u64>,
}

impl Default for Delays {
    fn default() -> Self {
        let new = || Histogram::new_with_bounds(1, DELAY_MICROS_MAX, 3).expect("valid bounds");
        Self {
            steady: new(),
            takeover: new(),
        }
    }
}

impl Kind {
    /// Returns the protocol of the client with this number.
    pub(super) const fn of(number: u32) -> Self {
        // Each protocol has compressed and uncompressed clients.
        match number / 2 % 3 {
            0 => Self::Raw,
            1 => Self::Native,
            _ => Self::Centrifuge,
        }
    }
}

impl Follower {
    /// Connects and subscribes to a channel.
    pub(super) async fn connect(
        address: &str,
        kind: Kind,
        channel: u32,
        (is_compressed, is_encrypted): (bool, bool),
    ) -> Result<Self> {
        let mut options = linerate::Options::default();
        options.deflate = is_compressed.then(Deflate::default);
        let mut client = Client::new().with_options(options);
        if is_encrypted {
            let trusting = linerate::tls::danger_client_config_trusting_anybody();
            client = client.with_tls(Arc::new(trusting));
        }
        let path = match kind {
            Kind::Raw => format!("/raw?channel=c{channel}"),
            Kind::Native | Kind::Centrifuge => "/connection/websocket".to_owned(),
        };
        if let Kind::Native = kind {
            client = client.with_subprotocol("linerate.v1");
        }
        let scheme = if is_encrypted { "wss" } else { "ws" };
        let mut ws = client
            .connect(&format!("{scheme}://{address}{path}"))
            .await?;
        if !matches!(kind, Kind::Raw) {
            let subscribe = format!(r#"{{"id":2,"subscribe":{{"channel":"c{channel}"}}}}"#);
            for command in [r#"{"id":1,"connect":{}}"#, &subscribe] {
                ws.send(command).await?;
                ws.recv().await?.context("closed")?;
            }
        }
        Ok(Self { ws, last: 0 })
    }

    /// Receives until the end.
    pub(super) async fn follow(mut self, figures: Arc<Figures>) {
        while let Ok(Some(message)) = self.ws.recv().await {
            if message.as_bytes() == b"{}" {
                if self.ws.send("{}").await.is_err() {
                    break;
                }
                continue;
            }
            let now = now_micros();
            for (number, sent) in publications(message.as_bytes()) {
                figures.count(
                    self.last,
                    number,
                    Duration::from_micros(now.saturating_sub(sent)),
                );
                self.last = self.last.max(number);
            }
        }
        figures.disconnected.fetch_add(1, Ordering::Relaxed);
    }
}

impl Figures {
    pub(super) fn begin_takeover(&self) {
        self.is_takeover.store(true, Ordering::Relaxed);
    }

    pub(super) fn end_takeover(&self) {
        self.is_takeover.store(false, Ordering::Relaxed);
    }

    /// Stores the last number of all channels.
    pub(super) fn expect(&self, last: u64) {
        self.expected.store(last, Ordering::Relaxed);
    }

    /// Returns how many of the clients have not received everything. Every publication is either
    /// delivered or counted as lost.
    pub(super) fn behind(&self, clients: u32) -> u64 {
        let expected = u64::from(clients) * self.expected.load(Ordering::Relaxed);
        let seen = self.delivered.load(Ordering::Relaxed) + self.lost.load(Ordering::Relaxed);
        expected.saturating_sub(seen)
    }

    fn count(&self, last: u64, number: u64, delay: Duration) {
        if number <= last {
            self.repeated.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.lost.fetch_add(number - last - 1, Ordering::Relaxed);
        self.delivered.fetch_add(1, Ordering::Relaxed);
        let mut delays = self.delays();
        let histogram = match self.is_takeover.load(Ordering::Relaxed) {
            true => &mut delays.takeover,
            false => &mut delays.steady,
        };
        histogram.saturating_record(delay.as_micros() as u64);
    }

    pub(super) fn is_flawless(&self) -> bool {
        let faults = [&self.disconnected, &self.lost, &self.repeated];
        faults
            .iter()
            .all(|count| count.load(Ordering::Relaxed) == 0)
    }

    /// Prints the figures. `behind` publications have not arrived.
    pub(super) fn print(&self, behind: u64, longest: Duration) {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        println!("delivered:     {}", count(&self.delivered));
        println!("disconnected:  {}", count(&self.disconnected));
        println!("lost:          {}", count(&self.lost) + behind);
        println!("repeated:      {}", count(&self.repeated));
        println!("longest start: {longest:.1?}");
        let delays = self.delays();
        for (name, histogram) in [("steady", &delays.steady), ("takeover", &delays.takeover)] {
            let at = |quantile| Duration::from_micros(histogram.value_at_quantile(quantile));
            println!(
                "{name:<14} p50 {:.1?}, p99 {:.1?}, p99.9 {:.1?}, max {:.1?}",
                at(0.5),
                at(0.99),
                at(0.999),
                at(1.0)
            );
        }
    }

    fn delays(&self) -> MutexGuard<'_, Delays> {
        self.delays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time in microseconds since 1970.
pub(super) fn now_micros() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as u64)
}

/// Returns the numbers and times in a message, however its protocol arranges them.
fn publications(message: &[u8]) -> Vec<(u64, u64)> {
    let text = String::from_utf8_lossy(message);
    let parts = text.split(r#"{"n":"#).skip(1);
    let read = |part: &str| {
        let (number, rest) = part.split_once(r#","t":"#)?;
        let (time, _) = rest.split_once(',')?;
        Some((number.parse().ok()?, time.parse().ok()?))
    };
    parts.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::publications;

    #[test]
    fn publications_are_found_in_any_protocol() {
        let raw = br#"{"n":7,"t":99,"to":"all"}"#;
        assert_eq!(publications(raw), [(7, 99)]);
        let json = br#"{"push":{"channel":"c1","pub":{"data":{"n":8,"t":100,"to":"all"}}}}
{"push":{"channel":"c1","pub":{"data":{"n":9,"t":101,"to":"all"}}}}"#;
        assert_eq!(publications(json), [(8, 100), (9, 101)]);
        assert_eq!(publications(b"{}"), []);
    }
}
