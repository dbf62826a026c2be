//! Subscribers that come back whenever they are sent away, and write down what they saw.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use linerate::{Client, Options, WebSocket};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    event_stream::{Event, EventStream},
    ledger::Seen,
};

/// How long is waited before a subscriber comes back.
const BACK_AFTER: Duration = Duration::from_millis(200);

/// How long a subscriber waits for a sign of life. Nodes in these tests always have something to say.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Nothing can be recovered from the position.
const UNRECOVERABLE: u64 = 112;

/// What a subscriber speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Protocol {
    /// Centrifuge's in JSON, with recovery.
    Centrifuge,
    /// Events over HTTP, with recovery.
    EventStream,
    /// Raw, told of gaps, without recovery.
    Raw,
}

/// A subscriber of one channel.
pub(crate) struct Subscriber {
    pub(crate) channel: String,
    pub(crate) protocol: Protocol,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    address: SocketAddr,
    channel: String,
    seen: Mutex<Vec<(Instant, Seen)>>,
    /// Whether it reads what comes.
    is_reading: watch::Sender<bool>,
}

impl Subscriber {
    pub(crate) fn start(address: SocketAddr, channel: &str, protocol: Protocol) -> Self {
        let state = Arc::new(State {
            address,
            channel: channel.to_owned(),
            seen: Mutex::default(),
            is_reading: watch::Sender::new(true),
        });
        let running = Arc::clone(&state);
        let task = tokio::spawn(async move {
            match protocol {
                Protocol::Centrifuge => running.run_centrifuge().await,
                Protocol::EventStream => running.run_event_stream().await,
                Protocol::Raw => running.run_raw().await,
            }
        });
        Self {
            channel: channel.to_owned(),
            protocol,
            state,
            task,
        }
    }

    /// Lets the subscriber read nothing for a while, or go on.
    pub(crate) fn read(&self, is_reading: bool) {
        self.state.is_reading.send_replace(is_reading);
    }

    /// Returns the newest number that it saw.
    pub(crate) fn newest(&self) -> Option<u64> {
        let seen = self.state.seen.lock().unwrap();
        seen.iter().rev().find_map(|(_, seen)| match seen {
            Seen::Gap => None,
            Seen::Number(number) => Some(*number),
        })
    }

    pub(crate) fn seen(&self) -> Vec<(Instant, Seen)> {
        self.state.seen.lock().unwrap().clone()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn see(&self, seen: Seen) {
        self.seen.lock().unwrap().push((Instant::now(), seen));
    }

    async fn run_raw(&self) {
        let url = format!(
            "ws://{}/raw?channel={}&gaps=true",
            self.address, self.channel
        );
        loop {
            if let Ok(mut ws) = client().connect(&url).await {
                while let Some(message) = self.next(&mut ws).await {
                    match (message["n"].as_u64(), &message["gap"]) {
                        (Some(number), _) => self.see(Seen::Number(number)),
                        (None, Value::Object(_)) => self.see(Seen::Gap),
                        _ => panic!("raw subscriber got {message}"),
                    }
                }
                // Raw without a position promises nothing across connections, and its client knows.
                self.see(Seen::Gap);
            }
            sleep(BACK_AFTER).await;
        }
    }

    async fn run_event_stream(&self) {
        let mut last: Option<String> = None;
        let mut is_first = true;
        loop {
            let opened = EventStream::open(self.address, &self.channel, last.as_deref()).await;
            if let Some(mut stream) = opened {
                if !std::mem::take(&mut is_first) && last.is_none() {
                    // There was nothing to come back with, and its client knows.
                    self.see(Seen::Gap);
                }
                while let Some(event) = self.next_event(&mut stream).await {
                    match event.name.as_str() {
                        "" => {
                            self.see(Seen::Number(event.number()));
                            last = Some(event.id).filter(|id| !id.is_empty());
                        }
                        "gap" => self.see(Seen::Gap),
                        "disconnect" => break,
                        other => panic!("event stream got {other}"),
                    }
                }
            }
            sleep(BACK_AFTER).await;
        }
    }

    async fn next_event(&self, stream: &mut EventStream) -> Option<Event> {
        let mut is_reading = self.is_reading.subscribe();
        is_reading.wait_for(|is_reading| *is_reading).await.ok()?;
        timeout(SILENCE_MAX, stream.next()).await.ok()?
    }

    async fn run_centrifuge(&self) {
        let url = format!("ws://{}/connection/websocket", self.address);
        let mut position = None;
        loop {
            if let Ok(mut ws) = client().connect(&url).await {
                let mut session = Session {
                    state: self,
                    ws: &mut ws,
                    position: position.take(),
                };
                // `None` is a cut connection.
                let _ = session.run().await;
                position = session.position;
            }
            sleep(BACK_AFTER).await;
        }
    }

    /// Returns the next message, or the next line of one; `None` at the end of the connection.
    async fn next(&self, ws: &mut WebSocket) -> Option<Value> {
        let text = self.next_text(ws).await?;
        Some(serde_json::from_str(&text).unwrap())
    }

    async fn next_text(&self, ws: &mut WebSocket) -> Option<String> {
        let mut is_reading = self.is_reading.subscribe();
        is_reading.wait_for(|is_reading| *is_reading).await.ok()?;
        let message = timeout(SILENCE_MAX, ws.recv()).await.ok()?.ok()??;
        Some(message.as_text().expect("text").to_owned())
    }
}

/// Returns a client that, as browsers do, takes what was missed in one message, however long that is.
fn client() -> Client {
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 256 << 20;
    Client::new().with_options(options)
}

/// A connection that speaks Centrifuge's protocol.
struct Session<'a> {
    state: &'a State,
    ws: &'a mut WebSocket,
    position: Option<Position>,
}

#[derive(Clone, Debug)]
struct Position {
    epoch: String,
    offset: u64,
}

impl Session<'_> {
    async fn run(&mut self) -> Option<()> {
        self.send(&json!({"id": 1, "connect": {}})).await?;
        loop {
            let text = self.state.next_text(self.ws).await?;
            for line in text.lines() {
                self.handle(&serde_json::from_str(line).unwrap()).await?;
            }
        }
    }

    async fn handle(&mut self, reply: &Value) -> Option<()> {
        if reply.as_object().is_some_and(serde_json::Map::is_empty) {
            return self.send(&json!({})).await;
        }
        if reply["connect"].is_object() {
            return self.subscribe().await;
        }
        if reply["error"]["code"] == UNRECOVERABLE {
            self.state.see(Seen::Gap);
            self.position = None;
            return self.subscribe().await;
        }
        if reply["error"].is_object() {
            assert!(
                reply["error"]["code"] == 100 || reply["error"]["temporary"] == true,
                "{reply}"
            );
            sleep(BACK_AFTER).await;
            return self.subscribe().await;
        }
        if reply["subscribe"].is_object() {
            self.handle_subscribed(&reply["subscribe"]);
        }
        let push = &reply["push"];
        if push["pub"].is_object() {
            self.handle_publication(&push["pub"]);
        }
        if push["unsubscribe"].is_object() {
            assert!(push["unsubscribe"]["code"].as_u64()? >= 2_500, "{reply}");
            return self.subscribe().await;
        }
        if push["disconnect"].is_object() {
            return None;
        }
        Some(())
    }

    async fn subscribe(&mut self) -> Option<()> {
        let mut subscribe =
            json!({"channel": self.state.channel, "positioned": true, "recoverable": true});
        if let Some(position) = &self.position {
            subscribe["recover"] = true.into();
            subscribe["epoch"] = position.epoch.as_str().into();
            subscribe["offset"] = position.offset.into();
        }
        self.send(&json!({"id": 2, "subscribe": subscribe})).await
    }

    fn handle_subscribed(&mut self, reply: &Value) {
        let was_subscribed = self.position.is_some();
        // Without a history there is none.
        let epoch = reply["epoch"].as_str().unwrap_or_default().to_owned();
        let offset = reply["offset"].as_u64().unwrap_or(0);
        if was_subscribed && reply["recovered"] != true {
            self.state.see(Seen::Gap);
        }
        self.position = Some(Position { epoch, offset });
        for publication in reply["publications"].as_array().into_iter().flatten() {
            self.handle_publication(publication);
        }
        if let Some(position) = &mut self.position {
            position.offset = position.offset.max(offset);
        }
    }

    fn handle_publication(&mut self, publication: &Value) {
        let number = publication["data"]["n"].as_u64().expect("a number");
        if let (Some(position), Some(offset)) = (&mut self.position, publication["offset"].as_u64())
        {
            position.offset = offset;
        }
        self.state.see(Seen::Number(number));
    }

    async fn send(&mut self, command: &Value) -> Option<()> {
        self.ws.send(command.to_string()).await.ok()
    }
}
