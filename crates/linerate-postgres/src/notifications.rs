//! Listens to channels of Postgres, and publishes their notifications.
//!
//! **Guarantees.** Notifications are published in the order in which Postgres sends them: that of
//! commits. Postgres does not keep them for a reader that is away. Whenever this node begins to
//! read after another reader or after a lost connection, it therefore reports a gap, and
//! subscribers are told that they may have missed publications.

use std::{convert::Infallible, future::pending, io, pin::Pin, sync::Arc, time::Duration};

use foldhash::HashMap;
use linerate_broker::Publish;
use linerate_hub::ChannelName;
use linerate_source::{Attempts, Sink, SourceState, Status, insist};
use tokio::time::{interval, sleep};
use tokio_postgres::{Config, Notification};

use crate::{error::SourceError, options::NotificationOptions, session::Session};

/// How often to check whether the server answers.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Reads notifications and publishes them, until this future is dropped.
pub async fn run(options: NotificationOptions, sink: Arc<dyn Sink>, status: Arc<Status>) {
    let servers = options.server.servers();
    let named = |channel: &ChannelName| (channel.as_str().to_owned(), channel.clone());
    let mut source = Source {
        channels: options.channels.iter().map(named).collect(),
        lock: hash(&options.name),
        options,
        sink,
        status,
        may_have_missed: false,
    };
    let mut attempts = Attempts::new(source.options.name.clone(), source.status.clone());
    loop {
        for server in &servers {
            let Err(error) = source.read(server).await;
            attempts.failed(error);
        }
        attempts.pause().await;
    }
}

struct Source {
    options: NotificationOptions,
    /// The channels by their names in Postgres.
    channels: HashMap<String, ChannelName>,
    /// The number of the advisory lock.
    lock: u32,
    sink: Arc<dyn Sink>,
    status: Arc<Status>,
    /// True if another node has read, or this one has before.
    may_have_missed: bool,
}

type Ping<'a> = Pin<Box<dyn Future<Output = Result<(), SourceError>> + Send + 'a>>;

impl Source {
    /// Reads until the connection is lost.
    async fn read(&mut self, server: &Config) -> Result<Infallible, SourceError> {
        let (session, mut notifications) = Session::connect(server, &self.options.tls).await?;
        while !session.try_lock(self.lock).await? {
            self.may_have_missed = true;
            self.status.enter(&self.options.name, SourceState::Standby);
            sleep(Duration::from_secs(1)).await;
        }
        for channel in self.channels.keys() {
            session.listen(channel).await?;
        }
        let identity = session.identity().await?;
        self.status.note_reading(&self.options.name);
        if std::mem::replace(&mut self.may_have_missed, true) {
            self.status.note_gap();
            let channels = self.channels.keys().cloned().collect();
            self.sink.report_gap(channels).await;
        }
        let mut ticks = interval(PING_INTERVAL);
        let mut ping: Option<Ping<'_>> = None;
        let mut number = 0_u64;
        loop {
            tokio::select! {
                notification = notifications.recv() => {
                    let notification = notification.ok_or(io::ErrorKind::UnexpectedEof);
                    let notification = notification.map_err(io::Error::from)?;
                    number += 1;
                    // The answer cannot be read while many notifications wait.
                    ping = None;
                    self.publish(&notification, format!("{identity}:{number}")).await;
                }
                answered = async { match &mut ping {
                    Some(ping) => ping.await,
                    None => pending().await,
                } } => {
                    answered?;
                    ping = None;
                }
                _ = ticks.tick(), if ping.is_none() => ping = Some(Box::pin(session.ping())),
            }
        }
    }

    async fn publish(&self, notification: &Notification, key: String) {
        let Some(channel) = self.channels.get(notification.channel()) else {
            return;
        };
        let (source, key) = (&self.options.name, &key);
        let attempt = || async move {
            let publish = Publish {
                payload: notification.payload().to_owned().into(),
                info: None,
                tags: Vec::new(),
                idempotency_key: Some(format!("{source}:{key}")),
                options: self.sink.options(channel),
            };
            self.sink.publish(channel, publish).await.map(drop)
        };
        match insist(&*self.sink, source, attempt).await {
            Ok(()) => self.status.note_published(),
            Err(error) => {
                if let Some(refused) = self.status.note_refused() {
                    tracing::warn!(source, %channel, %error, refused, "notifications cannot be published; skipped");
                }
            }
        }
    }
}

/// Returns a number for a name (FNV-1a). Names with the same number exclude each other without
/// need.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
