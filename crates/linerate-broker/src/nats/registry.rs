//! The registry of nodes in NATS: a stream that holds the newest beat of each node for as long as
//! its lease lasts, by the clock of the server.
//!
//! No node watches the stream, because a watcher receives each beat of each node. Its number of
//! subjects, which a beat reads, shows whether nodes have joined or left.

use async_nats::jetstream::{
    context::PublishErrorKind,
    message::PublishMessage,
    stream::{Config, DirectGetErrorKind, DiscardPolicy, StorageType, Stream},
};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    errors::{explain, unavailable},
    streams::{READS_AT_ONCE, Streams},
    subject::{self, Subjects},
};
use crate::{
    broker::BrokerError,
    registry::{Beat, LEASE},
};

impl Streams {
    /// Stores a beat of `node`. `last` is the number of its last one, if it is known, and becomes
    /// the number of this one.
    pub(super) async fn beat(
        &self,
        subjects: &Subjects,
        node: &str,
        details: Bytes,
        last: Option<u64>,
    ) -> Result<(u64, Beat), BrokerError> {
        // The server refuses to renew a lease that has ended.
        let renewed = match last {
            Some(_) => self.send_beat(subjects, node, &details, last).await?,
            None => None,
        };
        let number = match renewed {
            Some(number) => number,
            None => {
                // Creates the stream if it does not exist.
                self.registry_stream(subjects).await?;
                let sent = self.send_beat(subjects, node, &details, None).await?;
                sent.ok_or_else(|| BrokerError::refused("stream of nodes was deleted"))?
            }
        };
        let name = subject::stream(&subjects.beat(None));
        let info = self.context.get_stream(name).await;
        let info = info.map_err(|error| unavailable(&error))?;
        let nodes = info.cached_info().state.subjects_count;
        let beat = Beat {
            nodes: usize::try_from(nodes).unwrap_or(usize::MAX),
            is_new: renewed.is_none(),
            has_lost_presence: false,
        };
        Ok((number, beat))
    }

    /// Ends the lease of a node.
    pub(super) async fn deregister(
        &self,
        subjects: &Subjects,
        node: &str,
    ) -> Result<(), BrokerError> {
        let stream = self.registry_stream(subjects).await?;
        let purged = stream.purge().filter(subjects.beat(Some(node))).await;
        purged.map(|_| ()).map_err(|error| unavailable(&error))
    }

    /// Returns the IDs of the registered nodes.
    pub(super) async fn nodes(&self, subjects: &Subjects) -> Result<Vec<String>, BrokerError> {
        let stream = self.registry_stream(subjects).await?;
        self.nodes_in(&stream, subjects).await
    }

    /// Returns the details of the registered nodes.
    pub(super) async fn node_details(
        &self,
        subjects: &Subjects,
    ) -> Result<Vec<Bytes>, BrokerError> {
        let stream = self.registry_stream(subjects).await?;
        let nodes = self.nodes_in(&stream, subjects).await?;
        let read = stream::iter(nodes).map(|node| {
            let (stream, subject) = (&stream, subjects.beat(Some(&node)));
            async move {
                match stream.direct_get_last_for_subject(subject).await {
                    Ok(message) => Ok(Some(message.payload)),
                    // The node has left in the meantime.
                    Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
                    Err(error) => Err(unavailable(&error)),
                }
            }
        });
        let details: Vec<_> = read.buffered(READS_AT_ONCE).try_collect().await?;
        Ok(details.into_iter().flatten().collect())
    }

    async fn nodes_in(
        &self,
        stream: &Stream,
        subjects: &Subjects,
    ) -> Result<Vec<String>, BrokerError> {
        let found = self.subjects_of(stream, subjects.beat(None)).await?;
        let node = |subject: String| Some(subject.rsplit_once('.')?.1.to_owned());
        Ok(found.into_iter().filter_map(node).collect())
    }

    /// Returns the subjects of the messages in a stream that `filter` matches.
    pub(super) async fn subjects_of(
        &self,
        stream: &Stream,
        filter: String,
    ) -> Result<Vec<String>, BrokerError> {
        let found = stream.info_with_subjects(filter).await;
        let found = found.map_err(|error| unavailable(&error))?;
        let subjects = found.map_ok(|(subject, _)| subject).try_collect().await;
        subjects.map_err(|error| unavailable(&error))
    }

    /// Sends a beat. Returns its number, or `None` if the last one is not `last` or the stream does
    /// not exist.
    async fn send_beat(
        &self,
        subjects: &Subjects,
        node: &str,
        details: &Bytes,
        last: Option<u64>,
    ) -> Result<Option<u64>, BrokerError> {
        let mut message = PublishMessage::build()
            .payload(details.clone())
            .expected_stream(subject::stream(&subjects.beat(None)));
        if let Some(last) = last {
            message = message.expected_last_subject_sequence(last);
        }
        let subject = subjects.beat(Some(node));
        match self.send_acknowledged(subject, message).await {
            Ok(acknowledgement) => Ok(Some(acknowledgement.sequence)),
            Err(error) => match error.kind() {
                PublishErrorKind::StreamNotFound | PublishErrorKind::WrongLastSequence => Ok(None),
                _ => Err(BrokerError::away(error)),
            },
        }
    }

    async fn registry_stream(&self, subjects: &Subjects) -> Result<Stream, BrokerError> {
        let all = subjects.beat(None);
        let config = Config {
            name: subject::stream(&all),
            description: Some("nodes of linerate".to_owned()),
            subjects: vec![all],
            max_messages_per_subject: 1,
            max_age: LEASE,
            duplicate_window: LEASE,
            discard: DiscardPolicy::Old,
            storage: StorageType::Memory,
            num_replicas: self.options.stream_replicas.into(),
            allow_direct: true,
            ..Config::default()
        };
        let stream = self.context.get_or_create_stream(config).await;
        stream.map_err(|error| explain(&error))
    }
}
