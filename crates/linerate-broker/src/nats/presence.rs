//! Presence in NATS: a stream in memory with one message for each client in each channel. Its
//! subject names the channel, the lease of the node, the user and the client, so that counts and
//! removals need no payloads.
//!
//! Each lease has a message as well, which shows other nodes what to remove when the node has
//! ended.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use async_nats::jetstream::{
    consumer::{AckPolicy, PullConsumer, pull},
    context::{GetStreamErrorKind, PublishErrorKind},
    message::PublishMessage,
    stream::{Config, DiscardPolicy, StorageType, Stream},
};
use bytes::Bytes;
use futures_util::{StreamExt, future::try_join_all};
use linerate_hub::{ChannelName, ClientInfo, presence::Counts};

use super::{
    errors::{explain, unavailable},
    streams::Streams,
    subject::{self, Subjects},
};
use crate::{
    broker::BrokerError,
    presence::{self, PresenceChange},
};

/// The number of changes that are sent before their answers are awaited.
const CHANGES_AT_ONCE: usize = 64;

/// The maximum size of the entries of all nodes.
const BYTES_MAX: i64 = 1 << 30;

/// The smallest size of an entry in a reply, which limits how many are read.
const ENTRY_BYTES_MIN: usize = 24;

/// How long the server keeps a reader that this node does not end.
const READER_TTL: Duration = Duration::from_secs(5);

/// A lease under which a node stores entries. A later generation replaces the earlier ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct PresenceLease<'a> {
    pub(super) node: &'a str,
    pub(super) generation: u64,
}

impl Streams {
    /// Creates the stream unless it exists, and records that a lease has begun.
    pub(super) async fn begin_presence(
        &self,
        subjects: &Subjects,
        lease: PresenceLease<'_>,
    ) -> Result<(), BrokerError> {
        self.presence_stream(subjects).await?;
        let subject = subjects.presence_lease(lease.node, lease.generation);
        self.store_entry(subjects, subject, Bytes::new()).await
    }

    /// Stores who is present, and who no longer. The changes must concern different clients or
    /// channels, because they are made in any order.
    pub(super) async fn set_presence(
        &self,
        subjects: &Subjects,
        lease: PresenceLease<'_>,
        changes: &[PresenceChange],
    ) -> Result<(), BrokerError> {
        for changes in changes.chunks(CHANGES_AT_ONCE) {
            let sent = changes
                .iter()
                .map(|change| self.change_entry(subjects, lease, change));
            try_join_all(sent).await?;
        }
        Ok(())
    }

    /// Removes the entries of the leases of nodes that have ended, and of earlier generations.
    pub(super) async fn sweep_presence(&self, subjects: &Subjects) -> Result<(), BrokerError> {
        // A lease begins after the node was registered, so all current leases that are found here
        // are those of nodes that are found next.
        let name = subject::stream(&subjects.presence());
        let stream = match self.context.get_stream(name).await {
            Ok(stream) => stream,
            // No node has stored anything.
            Err(error) if matches!(error.kind(), GetStreamErrorKind::JetStream(_)) => return Ok(()),
            Err(error) => return Err(unavailable(&error)),
        };
        let leases = self
            .subjects_of(&stream, subjects.presence_leases())
            .await?;
        let leases: Vec<_> = leases.iter().filter_map(|lease| of_lease(lease)).collect();
        let nodes: HashSet<_> = self.nodes(subjects).await?.into_iter().collect();
        let mut newest = HashMap::new();
        for (node, generation) in &leases {
            let newest = newest.entry(node).or_insert(*generation);
            *newest = *generation.max(newest);
        }
        for (node, generation) in &leases {
            let is_held = nodes.contains(node) && newest.get(node) == Some(generation);
            if !is_held {
                let entries = subjects.presence_of_lease(node, *generation);
                self.remove_entries(subjects, entries).await?;
            }
        }
        Ok(())
    }

    /// Returns the clients that are present in a channel.
    pub(super) async fn present(
        &self,
        subjects: &Subjects,
        channel: &ChannelName,
        bytes_max: usize,
    ) -> Result<Vec<ClientInfo>, BrokerError> {
        let stream = self.presence_stream(subjects).await?;
        let reader = pull::Config {
            filter_subject: subjects.presence_in(channel),
            ack_policy: AckPolicy::None,
            inactive_threshold: READER_TTL,
            memory_storage: true,
            ..pull::Config::default()
        };
        let reader: PullConsumer = stream
            .create_consumer(reader)
            .await
            .map_err(|error| unavailable(&error))?;
        let entries = read_all(&reader, bytes_max).await;
        // A reader that cannot be deleted expires.
        _ = stream.delete_consumer(&reader.cached_info().name).await;
        let mut found = HashMap::new();
        for entry in entries? {
            if let Some(info) = presence::decode(&entry) {
                // Entries of an ended lease may not be removed yet; the newest are the last.
                found.insert(info.client.clone(), info);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Returns how many clients and users are present in a channel.
    pub(super) async fn present_counts(
        &self,
        subjects: &Subjects,
        channel: &ChannelName,
    ) -> Result<Counts, BrokerError> {
        let stream = self.presence_stream(subjects).await?;
        let entries = self
            .subjects_of(&stream, subjects.presence_in(channel))
            .await?;
        let (mut clients, mut users) = (HashSet::new(), HashSet::new());
        for entry in &entries {
            let mut tokens = entry.rsplit('.');
            clients.insert(tokens.next());
            users.insert(tokens.next());
        }
        Ok(Counts {
            clients: clients.len(),
            users: users.len(),
        })
    }

    /// Removes the entries that a subject, which may have wildcards, matches.
    pub(super) async fn remove_entries(
        &self,
        subjects: &Subjects,
        subject: String,
    ) -> Result<(), BrokerError> {
        let name = subject::stream(&subjects.presence());
        let stream = self.context.get_stream_no_info(name).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        let removed = stream.purge().filter(subject).await;
        removed.map(|_| ()).map_err(|error| unavailable(&error))
    }

    async fn change_entry(
        &self,
        subjects: &Subjects,
        lease: PresenceLease<'_>,
        change: &PresenceChange,
    ) -> Result<(), BrokerError> {
        let (channel, info) = (&change.channel, &change.info);
        let subject = subjects.presence_entry(channel, lease.node, lease.generation, info);
        match change.is_present {
            true => {
                let entry = presence::encode(info).into();
                self.store_entry(subjects, subject, entry).await
            }
            false => self.remove_entries(subjects, subject).await,
        }
    }

    async fn store_entry(
        &self,
        subjects: &Subjects,
        subject: String,
        entry: Bytes,
    ) -> Result<(), BrokerError> {
        let message = PublishMessage::build()
            .payload(entry)
            .expected_stream(subject::stream(&subjects.presence()));
        match self.send_acknowledged(subject, message).await {
            Ok(_) => Ok(()),
            // The server has lost the stream, and with it what this node had stored.
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                Err(BrokerError::LeaseEnded)
            }
            Err(error) => Err(BrokerError::away(error)),
        }
    }

    async fn presence_stream(&self, subjects: &Subjects) -> Result<Stream, BrokerError> {
        let all = subjects.presence();
        let config = Config {
            name: subject::stream(&all),
            description: Some("presence of linerate".to_owned()),
            subjects: vec![all],
            max_messages_per_subject: 1,
            max_bytes: BYTES_MAX,
            discard: DiscardPolicy::New,
            storage: StorageType::Memory,
            num_replicas: self.options.stream_replicas.into(),
            allow_direct: true,
            ..Config::default()
        };
        let stream = self.context.get_or_create_stream(config).await;
        stream.map_err(|error| explain(&error))
    }
}

/// Reads all entries of a reader, unless they have more than `bytes_max` bytes.
async fn read_all(reader: &PullConsumer, bytes_max: usize) -> Result<Vec<Bytes>, BrokerError> {
    let mut left = usize::try_from(reader.cached_info().num_pending).unwrap_or(usize::MAX);
    if left > bytes_max / ENTRY_BYTES_MIN {
        return Err(BrokerError::PresenceTooLarge { bytes_max });
    }
    let (mut entries, mut bytes) = (Vec::with_capacity(left), 0);
    while left > 0 {
        let batch = reader.fetch().max_messages(left).messages().await;
        let mut batch = batch.map_err(|error| unavailable(&error))?;
        let before = left;
        while let Some(message) = batch.next().await {
            let message = message.map_err(BrokerError::away)?;
            bytes += message.payload.len();
            if bytes > bytes_max {
                return Err(BrokerError::PresenceTooLarge { bytes_max });
            }
            entries.push(message.payload.clone());
            left -= 1;
        }
        if left == before {
            // The rest was removed in the meantime.
            break;
        }
    }
    Ok(entries)
}

/// Returns the node and the generation that the subject of a lease names.
fn of_lease(subject: &str) -> Option<(String, u64)> {
    let mut tokens = subject.rsplit('.').skip(2);
    let generation = tokens.next()?.parse().ok()?;
    Some((tokens.next()?.to_owned(), generation))
}

#[cfg(test)]
mod tests {
    use linerate_hub::{ChannelName, ClientInfo};

    use super::{Subjects, of_lease};

    #[test]
    fn the_subject_of_a_lease_names_it_and_is_matched_with_its_entries() {
        let subjects = Subjects::new("p.").unwrap();
        let lease = subjects.presence_lease("abc", 7);
        assert_eq!(of_lease(&lease), Some(("abc".to_owned(), 7)));
        let channel = ChannelName::new("a.b").unwrap();
        let entry = subjects.presence_entry(&channel, "abc", 7, &ClientInfo::default());
        let tokens = |subject: &str| subject.split('.').count();
        for other in [
            entry,
            subjects.presence_in(&channel),
            subjects.presence_leases(),
            subjects.presence_of_lease("abc", 7),
            subjects.presence(),
        ] {
            assert_eq!(tokens(&lease), tokens(&other), "{other}");
        }
    }
}
