//! Subscribers that reconnect whenever they are disconnected, and record what they saw.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use linerate::{Client, WebSocket, tls::rustls::ClientConfig};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    event_stream::{Event, EventStream},
    ledger::Seen,
    publisher::number,
};

/// How long a subscriber waits before it reconnects.
const BACK_AFTER: Duration = Duration::from_millis(200);

/// How long a subscriber waits for data. Nodes in these tests always have something to send.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The protocol and implementation of a subscriber.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Protocol {
    /// Events over HTTP, with recovery.
    EventStream,
    /// The npm package `centrifuge`.
    JavaScript,
    /// `centrifuge-python`.
    Python,
    /// The raw protocol, with notices of gaps but without recovery.
    Raw,
}

/// How to reach a node.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) address: SocketAddr,
    /// The configuration that trusts the node, if it uses TLS.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// A subscriber of one channel.
pub(crate) struct Subscriber {
    pub(crate) channel: String,
    pub(crate) protocol: Protocol,
    /// True if the fault must not affect this subscriber.
    pub(crate) is_bystander: bool,
    pub(crate) journal: Arc<Journal>,
}

/// Records what a subscriber saw, and when.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    seen: Mutex<Vec<(Instant, Seen)>>,
}

/// A subscriber within this program: raw, or an event stream.
pub(crate) struct Reader {
    /// False while the subscriber must not read.
    is_reading: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Protocol {
    /// Returns the name used in the record.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EventStream => "SSE",
            Self::JavaScript => "JS SDK",
            Self::Python => "Python SDK",
            Self::Raw => "raw",
        }
    }
}

impl Journal {
    pub(crate) fn see(&self, seen: Seen) {
        self.seen.lock().unwrap().push((Instant::now(), seen));
    }

    /// Returns the last number that was seen.
    pub(crate) fn newest(&self) -> Option<u64> {
        let seen = self.seen.lock().unwrap();
        seen.iter().rev().find_map(|(_, seen)| seen.number())
    }

    pub(crate) fn seen(&self) -> Vec<(Instant, Seen)> {
        self.seen.lock().unwrap().clone()
    }
}

impl Reader {
    /// Starts a subscriber, raw or of an event stream, that writes into `journal`.
    pub(crate) fn start(
        access: Access,
        channel: &str,
        protocol: Protocol,
        journal: Arc<Journal>,
    ) -> Self {
        let is_reading = watch::Sender::new(true);
        let state = State {
            access,
            channel: channel.to_owned(),
            journal,
            is_reading: is_reading.subscribe(),
        };
        let task = tokio::spawn(async move {
            match protocol {
                Protocol::EventStream => state.run_event_stream().await,
                Protocol::Raw => state.run_raw().await,
                Protocol::JavaScript | Protocol::Python => {
                    unreachable!("runs in a separate program")
                }
            }
        });
        Self { is_reading, task }
    }

    /// Pauses or resumes reading.
    pub(crate) fn read(&self, is_reading: bool) {
        self.is_reading.send_replace(is_reading);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct State {
    access: Access,
    channel: String,
    journal: Arc<Journal>,
    is_reading: watch::Receiver<bool>,
}

impl State {
    async fn run_raw(mut self) {
        let Access { address, tls } = self.access.clone();
        let scheme = if tls.is_some() { "wss" } else { "ws" };
        let url = format!(
            "{scheme}://{address}/raw?channel={}&gaps=true",
            self.channel
        );
        loop {
            if let Ok(mut ws) = client(tls.clone()).connect(&url).await {
                while let Some(text) = self.next(&mut ws).await {
                    self.journal.see(match number(&text) {
                        Some(number) => Seen::Number(number),
                        None if text.starts_with("{\"gap\":{") => Seen::Gap,
                        None => panic!("raw subscriber got {text}"),
                    });
                }
                // Without a position, raw guarantees nothing across connections, and its client
                // knows that.
                self.journal.see(Seen::Gap);
            }
            sleep(BACK_AFTER).await;
        }
    }

    async fn run_event_stream(mut self) {
        let mut last: Option<String> = None;
        let mut is_first = true;
        loop {
            let opened = EventStream::open(&self.access, &self.channel, last.as_deref()).await;
            if let Some(mut stream) = opened {
                if !std::mem::take(&mut is_first) && last.is_none() {
                    // There was no ID to resume with, and its client knows that.
                    self.journal.see(Seen::Gap);
                }
                while let Some(event) = self.next_event(&mut stream).await {
                    match event.name.as_str() {
                        "" => {
                            self.journal.see(Seen::Number(event.number()));
                            last = Some(event.id).filter(|id| !id.is_empty());
                        }
                        "gap" => self.journal.see(Seen::Gap),
                        "disconnect" => break,
                        other => panic!("event stream got {other}"),
                    }
                }
            }
            sleep(BACK_AFTER).await;
        }
    }

    async fn next_event(&mut self, stream: &mut EventStream) -> Option<Event> {
        self.is_reading
            .wait_for(|is_reading| *is_reading)
            .await
            .ok()?;
        timeout(SILENCE_MAX, stream.next()).await.ok()?
    }

    /// Returns the next message, or `None` at the end of the connection.
    async fn next(&mut self, ws: &mut WebSocket) -> Option<String> {
        self.is_reading
            .wait_for(|is_reading| *is_reading)
            .await
            .ok()?;
        let message = timeout(SILENCE_MAX, ws.recv()).await.ok()?.ok()??;
        Some(message.as_text().expect("text").to_owned())
    }
}

fn client(tls: Option<Arc<ClientConfig>>) -> Client {
    let client = Client::new();
    match tls {
        None => client,
        Some(config) => client.with_tls(config),
    }
}
