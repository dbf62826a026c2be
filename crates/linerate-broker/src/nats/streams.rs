//! The streams of durable channels, which are shared by all channels of a shard.
//!
//! There are two kinds. One stores publications: a stream for each shard and each set of options
//! that NATS applies to a whole stream (see `home`). The other stores the newest position of each
//! channel for longer than its publications, so that offsets continue when these have expired or
//! were removed.
//!
//! A stream numbers the messages of all its channels together. Therefore each message says which
//! offsets it has in its channel, and the server stores it only if the message before it in the
//! channel is the one that the publisher knows.

use std::{collections::HashSet, sync::Mutex, time::Duration};

use async_nats::{
    Client, HeaderMap, datetime,
    jetstream::{
        Context, ErrorCode,
        context::{ContextBuilder, CreateStreamErrorKind, PublishError, PublishErrorKind},
        message::{PublishMessage, StreamMessage},
        publish::PublishAck,
        stream::{
            Config, DirectGetErrorKind, DiscardPolicy, Info, LastRawMessageErrorKind, Republish,
            RetentionPolicy, StorageType,
        },
    },
};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::{runtime::Handle, sync::Semaphore};

use super::{
    errors::{explain, unavailable},
    home::{DurableChannel, Home},
    queue::Queues,
    subject::{self, ShardSubjects},
    wire::Head,
};
use crate::{broker::BrokerError, lock::lock, options::BrokerOptions};

/// The description of our streams. That of earlier versions had the name of an incarnation after
/// the first word.
const DESCRIPTION: &str = "linerate durable-channels";

/// The beginning of the descriptions of our streams and of those of earlier versions.
const DESCRIPTIONS: &str = "linerate ";

/// The number of messages of a stream that are requested at once.
pub(super) const READS_AT_ONCE: usize = 64;

/// The number of channels that are read at once when a link is new.
const CATCH_UPS_AT_ONCE: usize = 32;

/// The streams on the server of a link.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) context: Context,
    /// The same with a shorter deadline, for requests that are not always answered.
    direct: Context,
    pub(super) options: BrokerOptions,
    pub(super) catch_ups: Semaphore,
    pub(super) queues: Queues,
    /// The runtime of the link.
    pub(super) runtime: Handle,
    /// The names of the streams that are known to exist with the current options. They are as few
    /// as the options of channels in the configurations of nodes.
    known: Mutex<HashSet<String>>,
}

/// The last message on a subject of a stream, if there is one.
#[derive(Debug, Default)]
pub(super) struct Last {
    /// Its number in the stream, or 0 if there is no message.
    pub(super) sequence: u64,
    /// Its head. `None` if it was not published by linerate.
    pub(super) head: Option<Head>,
    pub(super) headers: HeaderMap,
    pub(super) payload: Bytes,
}

/// What became of a message.
#[derive(Debug)]
pub(super) enum Sent {
    /// It is stored, or is a duplicate of a stored one.
    Stored(PublishAck),
    /// The last message of its subject is not the expected one.
    Conflict,
    NoStream,
}

impl Streams {
    /// Creates the state for a new link, whose runtime must be the current one.
    pub(super) fn new(client: &Client, options: BrokerOptions) -> Self {
        let context = |deadline| {
            let context = ContextBuilder::new().timeout(deadline);
            context.ack_timeout(deadline).build(client.clone())
        };
        Self {
            context: context(options.command_timeout),
            direct: context(options.command_timeout / 4),
            options,
            catch_ups: Semaphore::new(CATCH_UPS_AT_ONCE),
            queues: Queues::default(),
            runtime: Handle::current(),
            known: Mutex::default(),
        }
    }

    /// Creates the streams for a channel unless they are known to exist.
    pub(super) async fn prepare(&self, channel: &DurableChannel) -> Result<(), BrokerError> {
        let shard = subject::shard(&channel.subject);
        // Positions come first, since publications depend on them.
        for config in [self.positions(shard), self.publications(shard, channel)] {
            if lock(&self.known).contains(&config.name) {
                continue;
            }
            let name = config.name.clone();
            self.ensure(config).await?;
            lock(&self.known).insert(name);
        }
        Ok(())
    }

    /// Returns the last message that the stream of a home stores for a channel.
    pub(super) async fn last_stored(
        &self,
        channel: &DurableChannel,
        home: Home,
    ) -> Result<Last, BrokerError> {
        let stream = self.stream_of(channel, home);
        self.last(stream, subject::stored(home, &channel.subject))
            .await
    }

    /// Returns the stored position of a channel.
    pub(super) async fn last_position(
        &self,
        channel: &DurableChannel,
    ) -> Result<Last, BrokerError> {
        let stream = self.positions(subject::shard(&channel.subject)).name;
        self.last(stream, subject::position(&channel.subject)).await
    }

    /// Sends a message to the stream of a home, which stores it if the last message of the channel
    /// has the number `expected`.
    pub(super) async fn send(
        &self,
        channel: &DurableChannel,
        home: Home,
        message: PublishMessage,
        expected: u64,
    ) -> Result<Sent, BrokerError> {
        let stream = self.stream_of(channel, home);
        let subject = subject::stored(home, &channel.subject);
        self.send_expecting(stream, subject, message, expected)
            .await
    }

    /// Stores the position of a channel if the stored one has the number `expected`.
    pub(super) async fn send_position(
        &self,
        channel: &DurableChannel,
        head: &Head,
        expected: u64,
    ) -> Result<Sent, BrokerError> {
        let stream = self.positions(subject::shard(&channel.subject)).name;
        let message = PublishMessage::build().headers(head.headers());
        let subject = subject::position(&channel.subject);
        self.send_expecting(stream, subject, message, expected)
            .await
    }

    /// Sends a message and waits until a stream has stored it.
    pub(super) async fn send_acknowledged(
        &self,
        subject: String,
        message: PublishMessage,
    ) -> Result<PublishAck, PublishError> {
        self.context.send_publish(subject, message).await?.await
    }

    /// Deletes the streams of channels with `prefix` that are empty and have received nothing for a
    /// long time: those for options that are no longer used, and those of earlier versions.
    ///
    /// Nodes create a stream again when it is needed. Those of positions stay.
    pub(super) async fn sweep(&self, prefix: &str) {
        let mut infos = self.context.streams();
        let mut idle = Vec::new();
        while let Some(Ok(info)) = infos.next().await {
            if is_ours(&info, prefix) && is_idle(&info, self.options.meta_ttl) {
                idle.push(info.config.name);
            }
        }
        for name in idle {
            match self.context.delete_stream(&name).await {
                Ok(_) => tracing::info!(name, "deleted the stream of idle channels"),
                Err(error) => {
                    tracing::warn!(name, %error, "cannot delete the stream of idle channels")
                }
            }
        }
    }

    /// Returns the name of the stream of a home that stores a channel's publications.
    pub(super) fn stream_of(&self, channel: &DurableChannel, home: Home) -> String {
        subject::stream(&self.shard(subject::shard(&channel.subject)).stored(home))
    }

    /// Returns the last message of a subject that a stream stores.
    pub(super) async fn last(&self, stream: String, subject: String) -> Result<Last, BrokerError> {
        // A replica that lags behind may answer a direct request; only the leader knows for
        // certain.
        if self.options.stream_replicas <= 1 {
            let from = self.direct.get_stream_no_info(&stream).await;
            let from = from.map_err(|error| unavailable(&error))?;
            match from.direct_get_last_for_subject(&subject).await {
                Ok(message) => return Ok(message.into()),
                Err(error) => match error.kind() {
                    DirectGetErrorKind::NotFound => return Ok(Last::default()),
                    // No server answers a direct request to a stream that does not exist.
                    DirectGetErrorKind::TimedOut | DirectGetErrorKind::ErrorResponse(..) => (),
                    _ => return Err(unavailable(&error)),
                },
            }
        }
        let from = self.context.get_stream_no_info(&stream).await;
        let from = from.map_err(|error| unavailable(&error))?;
        match from.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(message.into()),
            Err(error) => match error.kind() {
                LastRawMessageErrorKind::NoMessageFound => Ok(Last::default()),
                LastRawMessageErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
                    lock(&self.known).remove(&stream);
                    Ok(Last::default())
                }
                _ => Err(unavailable(&error)),
            },
        }
    }

    async fn send_expecting(
        &self,
        stream: String,
        subject: String,
        message: PublishMessage,
        expected: u64,
    ) -> Result<Sent, BrokerError> {
        let message = message
            .expected_stream(&stream)
            .expected_last_subject_sequence(expected);
        let error = match self.send_acknowledged(subject, message).await {
            Ok(acknowledgement) => return Ok(Sent::Stored(acknowledgement)),
            Err(error) => error,
        };
        match error.kind() {
            PublishErrorKind::WrongLastSequence => Ok(Sent::Conflict),
            PublishErrorKind::StreamNotFound => {
                lock(&self.known).remove(&stream);
                Ok(Sent::NoStream)
            }
            PublishErrorKind::TimedOut => {
                lock(&self.known).remove(&stream);
                let deadline = self.options.command_timeout;
                Err(BrokerError::Timeout { deadline })
            }
            PublishErrorKind::BrokenPipe => Err(BrokerError::away(error)),
            _ => Err(BrokerError::refused(error)),
        }
    }

    async fn ensure(&self, config: Config) -> Result<(), BrokerError> {
        let created = self.context.get_or_create_stream(config.clone()).await;
        let stream = created.map_err(|error| match error.kind() {
            CreateStreamErrorKind::JetStream(_) => explain(&error),
            _ => unavailable(&error),
        })?;
        let is = &stream.cached_info().config;
        if is.subjects != config.subjects {
            let name = &config.name;
            return Err(BrokerError::refused(format!(
                "stream {name} was not created by linerate"
            )));
        }
        if limits(is) == limits(&config) {
            return Ok(());
        }
        let updated = self.context.update_stream(config).await;
        updated.map(|_| ()).map_err(BrokerError::refused)
    }

    fn shard(&self, shard: u8) -> ShardSubjects<'_> {
        let prefix = &self.options.prefix;
        ShardSubjects { prefix, shard }
    }

    fn positions(&self, shard: u8) -> Config {
        let subjects = self.shard(shard).positions();
        Config {
            max_messages_per_subject: 1,
            max_age: self.options.meta_ttl,
            duplicate_window: self.options.meta_ttl.min(Duration::from_secs(120)),
            ..self.config(subjects)
        }
    }

    fn publications(&self, shard: u8, channel: &DurableChannel) -> Config {
        let (of_shard, home) = (self.shard(shard), channel.home());
        let subjects = of_shard.stored(home);
        let republish = Republish {
            source: subjects.clone(),
            destination: of_shard.live(),
            headers_only: false,
        };
        // The server does not accept a window that is longer than the lifetime of messages.
        let window = match home.ttl() {
            Duration::ZERO => self.options.idempotency_ttl,
            ttl => self.options.idempotency_ttl.min(ttl),
        };
        Config {
            max_messages_per_subject: home.size_max.try_into().unwrap_or(i64::MAX),
            max_age: home.ttl(),
            duplicate_window: window,
            republish: Some(republish),
            ..self.config(subjects)
        }
    }

    fn config(&self, subjects: String) -> Config {
        Config {
            name: subject::stream(&subjects),
            description: Some(DESCRIPTION.to_owned()),
            subjects: vec![subjects],
            retention: RetentionPolicy::Limits,
            discard: DiscardPolicy::Old,
            storage: StorageType::File,
            num_replicas: self.options.stream_replicas.into(),
            max_bytes: self.options.stream_bytes_max.try_into().unwrap_or(i64::MAX),
            allow_direct: true,
            ..Config::default()
        }
    }
}

impl From<StreamMessage> for Last {
    fn from(message: StreamMessage) -> Self {
        Self {
            sequence: message.sequence,
            head: Head::parse(&message.headers),
            headers: message.headers,
            payload: message.payload,
        }
    }
}

/// Returns the limits that can be changed.
fn limits(config: &Config) -> (i64, Duration, Duration, usize) {
    (
        config.max_bytes,
        config.max_age,
        config.duplicate_window,
        config.num_replicas,
    )
}

fn is_ours(info: &Info, prefix: &str) -> bool {
    let description = info.config.description.as_deref();
    let is_ours = description.is_some_and(|text| text.starts_with(DESCRIPTIONS));
    let subjects = &info.config.subjects;
    is_ours
        && subjects
            .iter()
            .all(|subject| subject::is_stored(subject, prefix))
}

fn is_idle(info: &Info, idle_max: Duration) -> bool {
    let newest = info.created.max(info.state.last_timestamp);
    info.state.messages == 0 && datetime::now() - newest > idle_max
}
