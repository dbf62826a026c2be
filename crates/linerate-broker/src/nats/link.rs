//! One connection to a server, from when it is established until it ends. It never reconnects.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, HeaderMap, Message, ServerAddr, ServerError, connection::State};
use bytes::Bytes;
use foldhash::HashMap;
use linerate_hub::ChannelName;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use super::{
    dial::Connector,
    loopback::{LinkEnded, Loopback},
    streams::Streams,
    wire,
};
use crate::{
    broker::{BrokerError, check_payload},
    event::{Event, GapReason},
    lock::lock,
    options::BrokerOptions,
    request::Publish,
};

/// The maximum number of bytes that may have arrived and wait for the node. Beyond it, the link is
/// closed because the node is too slow.
const BACKLOG_BYTES_MAX: u64 = 64 << 20;

/// The maximum number of subjects whose refusals are remembered.
const REFUSALS_MAX: usize = 10_000;

/// How long async-nats waits before it reconnects on its own. That never happens: a link ends with
/// its runtime, so that publications before and after a lost connection cannot be taken for one
/// sequence.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// One connection to a server.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) streams: Arc<Streams>,
    pub(super) loopback: Loopback,
    commands: mpsc::Sender<Command>,
    signals: Arc<Signals>,
    options: BrokerOptions,
    taken_messages: AtomicU64,
    /// The bytes that had arrived when nothing was waiting the last time, and those taken since
    /// then.
    idle_bytes: AtomicU64,
    taken_bytes: AtomicU64,
}

/// A command to the pump of a link, which moves arriving messages to the node.
#[derive(Debug)]
pub(super) enum Command {
    /// Subscribes, unless the channel is already subscribed. `done` is notified when the
    /// subscription is in effect.
    Subscribe {
        channel: ChannelName,
        done: oneshot::Sender<Result<(), BrokerError>>,
    },
    Report(Event),
    Unsubscribe(ChannelName),
}

/// The events that async-nats reports for the connection.
#[derive(Debug)]
struct Signals {
    ended: watch::Sender<Option<GapReason>>,
    refusals: Mutex<Refusals>,
}

/// How often the server has refused each subject.
#[derive(Debug, Default)]
struct Refusals {
    publishing: HashMap<String, u64>,
    subscribing: HashMap<String, u64>,
}

impl Link {
    /// Connects to a server.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable or rejects us.
    pub(super) async fn connect(
        dial: &Connector,
        server: &ServerAddr,
        options: &BrokerOptions,
        commands: mpsc::Sender<Command>,
    ) -> Result<Self, String> {
        let signals = Arc::new(Signals {
            ended: watch::Sender::new(None),
            refusals: Mutex::default(),
        });
        let connected = AtomicBool::new(false);
        let connect = dial.connect_options().map_err(|error| error.to_string())?;
        let client = connect
            .ignore_discovered_servers()
            .max_reconnects(1)
            .reconnect_delay_callback(move |_| match connected.swap(true, Ordering::Relaxed) {
                false => Duration::ZERO,
                true => NEVER,
            })
            .event_callback({
                let signals = Arc::clone(&signals);
                move |event| {
                    signals.handle_event(&event);
                    std::future::ready(())
                }
            })
            .connect(server.clone())
            .await
            .map_err(|error| describe(&error))?;
        Ok(Self {
            loopback: Loopback::new(client.new_inbox()),
            streams: Arc::new(Streams::new(&client, options.clone())),
            client,
            commands,
            signals,
            options: options.clone(),
            taken_messages: AtomicU64::new(0),
            idle_bytes: AtomicU64::new(0),
            taken_bytes: AtomicU64::new(0),
        })
    }

    /// Returns the hosts and ports of its cluster that the server announces for clients.
    pub(super) fn cluster(&self) -> Vec<String> {
        self.client.server_info().connect_urls
    }

    /// Publishes in a plain channel. Completes when the server has accepted the message.
    pub(super) async fn publish(
        &self,
        subject: &str,
        publish: &Publish,
    ) -> Result<(), BrokerError> {
        let before = lock(&self.signals.refusals)
            .publishing
            .get(subject)
            .copied();
        self.send_with(
            subject,
            wire::plain_headers(publish),
            publish.payload.clone(),
        )
        .await?;
        self.round_trip().await?;
        match lock(&self.signals.refusals)
            .publishing
            .get(subject)
            .copied()
            == before
        {
            true => Ok(()),
            false => Err(not_permitted("publishing", subject)),
        }
    }

    /// Publishes without waiting for the server.
    pub(super) async fn send(&self, subject: &str, payload: Bytes) -> Result<(), BrokerError> {
        self.send_with(subject, None, payload).await
    }

    async fn send_with(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: Bytes,
    ) -> Result<(), BrokerError> {
        check_payload(payload.len(), self.client.max_payload())?;
        let subject = subject.to_owned();
        let sent = match headers {
            Some(headers) => {
                let client = &self.client;
                client.publish_with_headers(subject, headers, payload).await
            }
            None => self.client.publish(subject, payload).await,
        };
        sent.map_err(|error| match error.kind() {
            async_nats::PublishErrorKind::Send => ended(),
            _ => BrokerError::refused(error),
        })
    }

    /// Lets the pump subscribe to a channel. Completes when the subscription is in effect.
    ///
    /// # Errors
    /// Returns an error if the link ended before the server answered.
    pub(super) async fn subscribe(
        &self,
        channel: &ChannelName,
    ) -> Result<Result<(), BrokerError>, LinkEnded> {
        let (done, result) = oneshot::channel();
        let channel = channel.clone();
        let command = Command::Subscribe { channel, done };
        self.commands.send(command).await.map_err(|_| LinkEnded)?;
        result.await.map_err(|_| LinkEnded)
    }

    /// Sends a command to the pump.
    pub(super) async fn command(&self, command: Command) {
        // If the pump has ended, there is nothing left for it to do.
        let _ = self.commands.send(command).await;
    }

    /// Forgets that a subscription to `subject` was refused before.
    pub(super) fn expect(&self, subject: &str) {
        lock(&self.signals.refusals).subscribing.remove(subject);
    }

    /// Waits until the subscriptions to `subjects`, which were made before, are in effect.
    pub(super) async fn in_effect(&self, subjects: &[String]) -> Result<(), BrokerError> {
        self.round_trip().await?;
        let refused = &lock(&self.signals.refusals).subscribing;
        match subjects
            .iter()
            .find(|subject| refused.contains_key(*subject))
        {
            Some(subject) => Err(not_permitted("subscribing to", subject)),
            None => Ok(()),
        }
    }

    /// Waits until the server has processed everything that was sent before.
    pub(super) async fn round_trip(&self) -> Result<(), BrokerError> {
        let deadline = self.options.command_timeout;
        match timeout(deadline, self.loopback.round_trip()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(ended()),
            Err(_) => Err(BrokerError::Timeout { deadline }),
        }
    }

    /// Records that a message has left the queues of async-nats.
    pub(super) fn count_taken(&self, message: &Message) {
        self.taken_messages.fetch_add(1, Ordering::Relaxed);
        self.taken_bytes
            .fetch_add(message.length as u64, Ordering::Relaxed);
    }

    /// Returns approximately how many messages have arrived and wait. The result is never too
    /// small.
    pub(super) fn backlog_messages(&self) -> u64 {
        let arrived = self.client.statistics().in_messages.load(Ordering::Relaxed);
        arrived.saturating_sub(self.taken_messages.load(Ordering::Relaxed))
    }

    /// Records that nothing is waiting, which is the new base for counting what arrives.
    pub(super) fn record_idle(&self) {
        let arrived = self.client.statistics().in_bytes.load(Ordering::Relaxed);
        self.idle_bytes.store(arrived, Ordering::Relaxed);
        self.taken_bytes.store(0, Ordering::Relaxed);
    }

    /// Returns whether more bytes are waiting for the node than allowed.
    pub(super) fn is_backlog_too_large(&self) -> bool {
        let arrived = self.client.statistics().in_bytes.load(Ordering::Relaxed);
        let since_idle = arrived - self.idle_bytes.load(Ordering::Relaxed);
        let taken = self.taken_bytes.load(Ordering::Relaxed);
        since_idle.saturating_sub(taken) > BACKLOG_BYTES_MAX
    }

    /// Ends the link.
    pub(super) fn end(&self, reason: GapReason) {
        self.signals.end(reason);
    }

    /// Waits until the link has ended, and returns the reason.
    pub(super) async fn ended(&self) -> GapReason {
        let mut ended = self.signals.ended.subscribe();
        let ended = ended.wait_for(Option::is_some).await;
        ended
            .ok()
            .and_then(|ended| *ended)
            .unwrap_or(GapReason::LinkLost)
    }

    /// Waits for an answer from JetStream, which would never arrive after the link has ended.
    ///
    /// # Errors
    /// Returns the error of `operation`, or an error if the link has ended.
    pub(super) async fn answer<T>(
        &self,
        operation: impl Future<Output = Result<T, BrokerError>>,
    ) -> Result<T, BrokerError> {
        tokio::select! {
            biased;
            result = operation => result,
            _ = self.ended() => Err(ended()),
        }
    }

    /// Returns whether async-nats considers the connection closed, in case its event for that was
    /// lost.
    pub(super) fn is_cut(&self) -> bool {
        self.client.connection_state() == State::Disconnected
    }
}

impl Signals {
    fn handle_event(&self, event: &async_nats::Event) {
        match event {
            async_nats::Event::Disconnected | async_nats::Event::Closed => {
                self.end(GapReason::LinkLost);
            }
            async_nats::Event::SlowConsumer(_) => self.end(GapReason::Overflow),
            async_nats::Event::ServerError(ServerError::Other(text)) => {
                lock(&self.refusals).record(text)
            }
            _ => (),
        }
    }

    fn end(&self, reason: GapReason) {
        self.ended.send_if_modified(|ended| match ended {
            Some(_) => false,
            None => {
                *ended = Some(reason);
                true
            }
        });
    }
}

impl Refusals {
    /// Records an error of the server, which has the form `Permissions Violation for Publish to
    /// "subject"`.
    fn record(&mut self, text: &str) {
        let subject = text.split('"').nth(1);
        let (Some(subject), true) = (subject, text.starts_with("Permissions Violation")) else {
            tracing::warn!(error = text, "NATS server reported an error");
            return;
        };
        let refusals = match text.contains("for Publish to") {
            true => &mut self.publishing,
            false => &mut self.subscribing,
        };
        if refusals.len() >= REFUSALS_MAX {
            refusals.clear();
        }
        *refusals.entry(subject.to_owned()).or_default() += 1;
    }
}

fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let error_text = error.to_string();
        if !text.contains(&error_text) {
            text = format!("{text}: {error_text}");
        }
        source = error.source();
    }
    text
}

fn ended() -> BrokerError {
    BrokerError::away("connection was lost")
}

fn not_permitted(what: &str, subject: &str) -> BrokerError {
    BrokerError::refused(format!("{what} {subject} is not permitted"))
}

#[cfg(test)]
mod tests {
    use super::Refusals;

    #[test]
    fn refusals_are_distinguished_by_subject_and_kind() {
        let mut refusals = Refusals::default();
        refusals.record("Permissions Violation for Publish to \"a.b\"");
        refusals.record("Permissions Violation for Subscription to \"c.>\"");
        refusals.record("Permissions Violation for Publish to \"a.b\"");
        refusals.record("Unknown Protocol Operation");
        assert_eq!(refusals.publishing.get("a.b"), Some(&2));
        assert_eq!(refusals.subscribing.get("c.>"), Some(&1));
        assert_eq!(refusals.publishing.len() + refusals.subscribing.len(), 2);
    }
}
