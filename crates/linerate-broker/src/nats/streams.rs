//! The streams of durable channels, one for each channel.
//!
//! A stream shared by several channels would number them together. With its own stream, the offsets
//! of a channel have no holes, so that a missing publication is detected. The stream also reports
//! what it still holds and where it ends, even when everything in it has expired or was removed.

use std::{sync::Mutex, time::Duration};

use async_nats::{
    datetime,
    jetstream::{
        self, Context, ErrorCode,
        context::{CreateStreamErrorKind, GetStreamErrorKind, PublishError, PublishErrorKind},
        message::PublishMessage,
        publish::PublishAck,
        stream::{Config, DiscardPolicy, Info, Republish, RetentionPolicy, StorageType, Stream},
    },
};
use foldhash::HashMap;
use futures_util::{StreamExt, TryStreamExt, stream};
use linerate_hub::{ChannelName, Epoch, Publication, StreamPosition};
use tokio::sync::Semaphore;

use super::{
    catch_up::{Progress, StreamContents},
    subject, wire,
};
use crate::{
    broker::BrokerError,
    incarnation,
    lock::lock,
    options::BrokerOptions,
    request::{History, HistoryRequest, Publish, Published, StreamOptions},
};

/// The beginning of the description of each of our streams. The incarnation follows.
const DESCRIPTION: &str = "linerate ";

/// The number of messages of a stream that are requested at once.
pub(super) const READS_AT_ONCE: usize = 64;

/// The maximum number of payload bytes that are read from a stream for one history, or to catch up.
const READ_BYTES_MAX: usize = 64 << 20;

/// The number of streams that are read at once when a link is new.
const CATCH_UPS_AT_ONCE: usize = 32;

/// The streams on the server of a link.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) context: Context,
    pub(super) options: BrokerOptions,
    /// The streams that are known to exist, with their options and epochs.
    known: Mutex<HashMap<ChannelName, (StreamOptions, Epoch)>>,
    catch_ups: Semaphore,
}

/// A durable channel and its subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct DurableChannel {
    pub(super) channel: ChannelName,
    pub(super) subject: String,
    pub(super) options: StreamOptions,
}

struct OpenStream {
    stream: Stream,
    epoch: Epoch,
    /// The oldest stored offset, or the next offset if nothing is stored.
    first: u64,
    newest: u64,
}

impl Streams {
    pub(super) fn new(context: Context, options: BrokerOptions) -> Self {
        Self {
            context,
            options,
            known: Mutex::default(),
            catch_ups: Semaphore::new(CATCH_UPS_AT_ONCE),
        }
    }

    /// Publishes. Completes when the stream has stored the message. Whether it is on disk at that
    /// time depends on the server, which syncs every two minutes unless configured otherwise.
    pub(super) async fn publish(
        &self,
        durable: &DurableChannel,
        publish: Publish,
    ) -> Result<Published, BrokerError> {
        let epoch = self.epoch(durable).await?;
        match self.send(durable, &publish).await? {
            Some(offset) => Ok(published(epoch, offset)),
            // The stream was deleted.
            None => {
                lock(&self.known).remove(&durable.channel);
                let epoch = self.epoch(durable).await?;
                let offset = self.send(durable, &publish).await?;
                let offset = offset.ok_or_else(|| BrokerError::refused("stream was deleted"))?;
                Ok(published(epoch, offset))
            }
        }
    }

    /// Returns the publications that a channel's stream holds.
    pub(super) async fn history(
        &self,
        durable: &DurableChannel,
        request: HistoryRequest,
    ) -> Result<History, BrokerError> {
        let opened = self.open(durable).await?;
        let newest = opened.newest;
        let (after, mut is_contiguous) = match &request.since {
            None => (opened.first - 1, true),
            Some(since) if since.epoch != opened.epoch => (newest, false),
            Some(since) if since.offset > newest => (newest, false),
            Some(since) => {
                let after = since.offset.max(opened.first - 1);
                (after, after == since.offset)
            }
        };
        let limit = request.limit.map_or(u64::MAX, |limit| limit as u64);
        let (from, to) = match request.is_reverse {
            false => (after + 1, newest.min(after.saturating_add(limit))),
            true => ((newest + 1).saturating_sub(limit).max(after + 1), newest),
        };
        let read = opened.read(from, to).await?;
        let Some(mut publications) = read else {
            let bytes_max = READ_BYTES_MAX;
            let reason = format!(
                "history is larger than {bytes_max} bytes; request fewer publications at a time"
            );
            return Err(BrokerError::refused(reason));
        };
        // Newer messages may have replaced those that were there a moment ago.
        let first = publications.first().map(Publication::offset);
        if request.since.is_some() && from <= to {
            is_contiguous &= first == Some(from);
        }
        if request.is_reverse {
            publications.reverse();
        }
        Ok(History {
            publications,
            newest: StreamPosition {
                epoch: opened.epoch,
                offset: newest,
            },
            is_contiguous,
        })
    }

    /// Deletes the contents of a channel's stream.
    pub(super) async fn remove_history(&self, durable: &DurableChannel) -> Result<(), BrokerError> {
        let opened = self.open(durable).await?;
        let purged = opened.stream.purge().await;
        purged.map(|_| ()).map_err(BrokerError::refused)
    }

    /// Reads the publications after the delivered position.
    ///
    /// A stream that ends before that position, or has a different payload there, went back in
    /// time, for example because the server lost its newest writes in a restart. Such a stream gets
    /// a new epoch.
    pub(super) async fn catch_up(
        &self,
        durable: &DurableChannel,
        delivered: Option<Progress>,
    ) -> Result<StreamContents, BrokerError> {
        let _turn = self
            .catch_ups
            .acquire()
            .await
            .map_err(|_| BrokerError::refused("link ended"))?;
        let opened = self.open(durable).await?;
        let nothing = |opened: OpenStream| StreamContents {
            epoch: opened.epoch,
            newest: opened.newest,
            publications: Vec::new(),
        };
        let Some(delivered) = delivered else {
            return Ok(nothing(opened));
        };
        if delivered.position.epoch != opened.epoch {
            return Ok(nothing(opened));
        }
        if opened.is_other(&delivered).await? {
            return Ok(nothing(self.renew(durable, opened).await?));
        }
        let from = opened.first.max(delivered.position.offset + 1);
        // If there is more than may be read, treat it as if it were gone: as a gap.
        let publications = opened.read(from, opened.newest).await?;
        Ok(StreamContents {
            publications: publications.unwrap_or_default(),
            ..nothing(opened)
        })
    }

    /// Deletes the streams of channels with `prefix` that are empty and have received nothing for a
    /// long time.
    ///
    /// A message that is published at the same moment may be deleted with its stream. The next one
    /// then starts a new epoch, so subscribers are notified.
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
                Ok(_) => tracing::info!(name, "deleted the stream of an idle channel"),
                Err(error) => {
                    tracing::warn!(name, %error, "cannot delete the stream of an idle channel")
                }
            }
        }
    }

    /// Returns the incarnation of a channel's stream, which is created if it does not exist.
    async fn epoch(&self, durable: &DurableChannel) -> Result<Epoch, BrokerError> {
        let known = lock(&self.known).get(&durable.channel).cloned();
        match known {
            Some((options, epoch)) if options == durable.options => Ok(epoch),
            _ => Ok(self.open(durable).await?.epoch),
        }
    }

    async fn open(&self, durable: &DurableChannel) -> Result<OpenStream, BrokerError> {
        let stream = match self.find(durable).await? {
            Some(stream) => stream,
            None => match self.create(durable).await? {
                Some(stream) => stream,
                // Another node was faster.
                None => self
                    .find(durable)
                    .await?
                    .ok_or_else(|| BrokerError::refused("stream was deleted"))?,
            },
        };
        let opened = OpenStream::new(stream, durable)?;
        self.reconfigure(durable, &opened).await?;
        let known = (durable.options, opened.epoch.clone());
        lock(&self.known).insert(durable.channel.clone(), known);
        Ok(opened)
    }

    async fn find(&self, durable: &DurableChannel) -> Result<Option<Stream>, BrokerError> {
        match self
            .context
            .get_stream(subject::stream(&durable.subject))
            .await
        {
            Ok(stream) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
                    Ok(None)
                }
                GetStreamErrorKind::JetStream(error) => Err(BrokerError::refused(error)),
                _ => Err(unavailable(&error)),
            },
        }
    }

    async fn create(&self, durable: &DurableChannel) -> Result<Option<Stream>, BrokerError> {
        let config = self.config(durable, &incarnation::random());
        match self.context.create_stream(config).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                CreateStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NAME_EXIST =>
                {
                    Ok(None)
                }
                CreateStreamErrorKind::JetStream(error) => Err(BrokerError::refused(error)),
                _ => Err(unavailable(&error)),
            },
        }
    }

    /// Updates the limits of a stream to the current configuration.
    async fn reconfigure(
        &self,
        durable: &DurableChannel,
        opened: &OpenStream,
    ) -> Result<(), BrokerError> {
        let is = &opened.stream.cached_info().config;
        let wanted = self.config(durable, opened.epoch.as_str());
        let limits = |config: &Config| {
            let replicas = config.num_replicas;
            (
                config.max_messages,
                config.max_age,
                config.max_bytes,
                replicas,
            )
        };
        if limits(is) == limits(&wanted) {
            return Ok(());
        }
        self.update(wanted).await.map(|_| ())
    }

    async fn renew(
        &self,
        durable: &DurableChannel,
        opened: OpenStream,
    ) -> Result<OpenStream, BrokerError> {
        let incarnation = incarnation::random();
        self.update(self.config(durable, &incarnation)).await?;
        let epoch = Epoch::new(&incarnation);
        let known = (durable.options, epoch.clone());
        lock(&self.known).insert(durable.channel.clone(), known);
        Ok(OpenStream { epoch, ..opened })
    }

    async fn update(&self, config: Config) -> Result<Info, BrokerError> {
        let updated = self.context.update_stream(config).await;
        updated.map_err(BrokerError::refused)
    }

    fn config(&self, durable: &DurableChannel, incarnation: &str) -> Config {
        let StreamOptions { size_max, ttl, .. } = durable.options;
        Config {
            name: subject::stream(&durable.subject),
            description: Some(format!("{DESCRIPTION}{incarnation}")),
            subjects: vec![durable.subject.clone()],
            retention: RetentionPolicy::Limits,
            discard: DiscardPolicy::Old,
            storage: StorageType::File,
            num_replicas: self.options.stream_replicas.into(),
            max_bytes: self.options.stream_bytes_max.try_into().unwrap_or(i64::MAX),
            max_messages: size_max.try_into().unwrap_or(i64::MAX),
            max_age: ttl,
            // The server does not accept a window that is longer than the lifetime of messages.
            duplicate_window: self.options.idempotency_ttl.min(ttl),
            allow_direct: true,
            republish: Some(Republish {
                source: durable.subject.clone(),
                destination: subject::live(&durable.subject),
                headers_only: false,
            }),
            ..Config::default()
        }
    }

    /// Sends a message and returns its offset, or `None` if the stream does not exist.
    async fn send(
        &self,
        durable: &DurableChannel,
        publish: &Publish,
    ) -> Result<Option<u64>, BrokerError> {
        let mut message = PublishMessage::build()
            .payload(publish.payload.clone())
            .expected_stream(subject::stream(&durable.subject));
        if let Some(headers) = wire::headers(publish) {
            for (name, values) in headers.iter() {
                for value in values {
                    message = message.header(name.clone(), value.clone());
                }
            }
        }
        if let Some(key) = &publish.idempotency_key {
            message = message.message_id(wire::message_id(key));
        }
        let subject = durable.subject.clone();
        match self.send_acknowledged(subject, message).await {
            Ok(acknowledgement) => Ok(Some(acknowledgement.sequence)),
            Err(error) => match error.kind() {
                PublishErrorKind::StreamNotFound => Ok(None),
                PublishErrorKind::TimedOut => {
                    lock(&self.known).remove(&durable.channel);
                    let deadline = self.options.command_timeout;
                    Err(BrokerError::Timeout { deadline })
                }
                PublishErrorKind::BrokenPipe => Err(BrokerError::away(error)),
                PublishErrorKind::MaxPayloadExceeded => Err(BrokerError::PayloadTooLarge {
                    bytes: publish.payload.len(),
                    bytes_max: self.context.client().max_payload(),
                }),
                _ => Err(BrokerError::refused(error)),
            },
        }
    }

    /// Sends a message and waits until a stream has stored it.
    pub(super) async fn send_acknowledged(
        &self,
        subject: String,
        message: PublishMessage,
    ) -> Result<PublishAck, PublishError> {
        self.context.send_publish(subject, message).await?.await
    }
}

impl OpenStream {
    fn new(stream: Stream, durable: &DurableChannel) -> Result<Self, BrokerError> {
        let info = stream.cached_info();
        let description = info.config.description.as_deref().unwrap_or_default();
        let incarnation = description.strip_prefix(DESCRIPTION);
        let is_ours = info.config.subjects == [durable.subject.as_str()];
        let Some(incarnation) = incarnation.filter(|_| is_ours) else {
            let name = &info.config.name;
            return Err(BrokerError::refused(format!(
                "stream {name} was not created by linerate"
            )));
        };
        let newest = info.state.last_sequence;
        Ok(Self {
            epoch: Epoch::new(incarnation),
            first: info.state.first_sequence.clamp(1, newest + 1),
            newest,
            stream,
        })
    }

    /// Returns whether the stream has a different payload at the delivered position, or ends before
    /// it.
    async fn is_other(&self, delivered: &Progress) -> Result<bool, BrokerError> {
        let offset = delivered.position.offset;
        if offset > self.newest {
            return Ok(true);
        }
        let Some(payload) = &delivered.payload else {
            return Ok(false);
        };
        let there = self.message(offset).await?;
        Ok(there.is_some_and(|there| there.payload() != payload))
    }

    /// Reads the messages that exist in a range. Returns `None` if they have more than
    /// [`READ_BYTES_MAX`] bytes.
    async fn read(&self, from: u64, to: u64) -> Result<Option<Vec<Publication>>, BrokerError> {
        let messages = stream::iter(from..=to).map(|offset| self.message(offset));
        let mut messages = std::pin::pin!(messages.buffered(READS_AT_ONCE));
        let (mut publications, mut bytes) = (Vec::new(), 0);
        while let Some(message) = messages.try_next().await? {
            bytes += message
                .as_ref()
                .map_or(0, |message| message.payload().len());
            if bytes > READ_BYTES_MAX {
                return Ok(None);
            }
            publications.extend(message);
        }
        Ok(Some(publications))
    }

    async fn message(&self, offset: u64) -> Result<Option<Publication>, BrokerError> {
        use jetstream::stream::{DirectGetErrorKind, RawMessageErrorKind};
        let message = match self.stream.direct_get(offset).await {
            Ok(message) => message,
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => {
                // A replica that lags behind may have answered; only the leader knows for certain.
                match self.stream.get_raw_message(offset).await {
                    Ok(message) => message,
                    Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => {
                        return Ok(None);
                    }
                    Err(error) => return Err(unavailable(&error)),
                }
            }
            Err(error) => return Err(unavailable(&error)),
        };
        let publication = wire::publication(message.payload, Some(&message.headers));
        let epoch = self.epoch.clone();
        Ok(Some(
            publication
                .with_position(StreamPosition { epoch, offset })
                .finish(),
        ))
    }
}

fn is_ours(info: &Info, prefix: &str) -> bool {
    let description = info.config.description.as_deref();
    let is_ours = description.is_some_and(|text| text.starts_with(DESCRIPTION));
    is_ours
        && info
            .config
            .subjects
            .iter()
            .all(|subject| subject.starts_with(prefix))
}

fn is_idle(info: &Info, idle_max: Duration) -> bool {
    let newest = info.created.max(info.state.last_timestamp);
    info.state.messages == 0 && datetime::now() - newest > idle_max
}

fn published(epoch: Epoch, offset: u64) -> Published {
    Published {
        position: Some(StreamPosition { epoch, offset }),
    }
}

/// Converts an error that means that JetStream did not answer: it is disabled, is still starting,
/// or the link is gone.
pub(super) fn unavailable(error: &dyn std::error::Error) -> BrokerError {
    let source = error.source().map(|source| format!(": {source}"));
    BrokerError::away(format!("JetStream: {error}{}", source.unwrap_or_default()))
}
