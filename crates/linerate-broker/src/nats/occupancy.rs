//! Occupied names in NATS: a stream in memory with one message for each name, which lists the
//! leases of the nodes that occupy it. Every change names the message that it replaces, so that the
//! changes of a name have one order.
//!
//! Each lease has a message as well, which shows other nodes what to remove when the node has
//! ended.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use async_nats::jetstream::{
    context::{GetStreamErrorKind, PublishErrorKind},
    message::PublishMessage,
    stream::{Config, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream},
};
use futures_util::{StreamExt, TryStreamExt, future::try_join_all, stream::iter};
use serde::{Deserialize, Serialize};

use super::{
    errors::{explain, unavailable},
    streams::{READS_AT_ONCE, Streams},
    subject::{self, Subjects},
};
use crate::{broker::BrokerError, occupancy::OccupancyChange};

/// The number of changes that are made concurrently.
const CHANGES_AT_ONCE: usize = 64;

/// The maximum size of the messages of all names.
const BYTES_MAX: i64 = 1 << 30;

/// The number of times that a change is attempted while other nodes change the same name.
const ATTEMPTS_MAX: u32 = 100;

/// The longest pause before a change is attempted again.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// A name and the leases that occupy it.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Occupants {
    name: String,
    /// True for the lease that made the name occupied.
    leases: BTreeMap<String, bool>,
}

/// What to do with a lease in the list of a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Action {
    Add,
    Remove,
    /// Remove a lease that has ended. Another node may have done so already.
    Sweep,
}

/// The result of an action.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Outcome {
    /// True if the list has changed.
    has_changed: bool,
    /// True if the name became occupied or vacant, now or when the action was done before.
    is_turn: bool,
}

impl Occupants {
    fn apply(&mut self, lease: &str, action: Action) -> Outcome {
        match action {
            Action::Add => match self.leases.get(lease) {
                Some(&is_turn) => Outcome {
                    has_changed: false,
                    is_turn,
                },
                None => {
                    let is_turn = self.leases.is_empty();
                    self.leases.insert(lease.to_owned(), is_turn);
                    Outcome {
                        has_changed: true,
                        is_turn,
                    }
                }
            },
            Action::Remove | Action::Sweep => {
                let has_changed = self.leases.remove(lease).is_some();
                let is_vacant = self.leases.is_empty();
                Outcome {
                    has_changed,
                    is_turn: is_vacant && (has_changed || action == Action::Remove),
                }
            }
        }
    }
}

impl Streams {
    /// Creates the stream unless it exists, and records that a lease has begun.
    pub(super) async fn begin_occupancy(
        &self,
        subjects: &Subjects,
        lease: &str,
    ) -> Result<(), BrokerError> {
        self.occupancy_stream(subjects).await?;
        let message = PublishMessage::build().expected_stream(stream_of(subjects));
        let subject = subjects.occupancy_lease(lease);
        let sent = self.send_acknowledged(subject, message).await;
        sent.map(|_| ()).map_err(BrokerError::away)
    }

    /// Stores which names a lease occupies, and which no longer. Returns for each change whether it
    /// made the name occupied or vacant.
    pub(super) async fn set_occupancy(
        &self,
        subjects: &Subjects,
        lease: &str,
        changes: &[OccupancyChange],
    ) -> Result<Vec<bool>, BrokerError> {
        let stream = self.context.get_stream_no_info(stream_of(subjects)).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        let mut results = Vec::with_capacity(changes.len());
        for changes in changes.chunks(CHANGES_AT_ONCE) {
            let made = changes.iter().map(|change| {
                let action = match change.is_occupied {
                    true => Action::Add,
                    false => Action::Remove,
                };
                let subject = subjects.occupied(&change.name);
                self.occupy(&stream, subject, Some(&change.name), lease, action)
            });
            let made = try_join_all(made).await?;
            results.extend(made.into_iter().map(|(is_turn, _)| is_turn));
        }
        Ok(results)
    }

    /// Removes the names of leases that have ended. Adds those that became vacant to `vacated`,
    /// also if there is an error.
    pub(super) async fn sweep_occupancy(
        &self,
        subjects: &Subjects,
        vacated: &mut Vec<String>,
    ) -> Result<(), BrokerError> {
        let stream = match self.context.get_stream(stream_of(subjects)).await {
            Ok(stream) => stream,
            // No node has stored anything.
            Err(error) if matches!(error.kind(), GetStreamErrorKind::JetStream(_)) => return Ok(()),
            Err(error) => return Err(unavailable(&error)),
        };
        let leases = subjects.occupancy_lease("*");
        let leases = self.subjects_of(&stream, leases).await?;
        // A lease begins after the node was registered, so the nodes of all current leases that
        // were found are registered.
        let nodes: HashSet<_> = self.nodes(subjects).await?.into_iter().collect();
        let leases = leases.iter().filter_map(|lease| lease.rsplit('.').next());
        for lease in ended(leases, &nodes) {
            let occupied = self.subjects_of(&stream, subjects.all_occupied()).await?;
            let swept = iter(occupied)
                .map(|subject| self.occupy(&stream, subject, None, lease, Action::Sweep));
            let mut swept = swept.buffer_unordered(READS_AT_ONCE);
            while let Some((is_turn, name)) = swept.try_next().await? {
                if is_turn {
                    vacated.push(name);
                }
            }
            let purged = stream.purge().filter(subjects.occupancy_lease(lease)).await;
            purged.map_err(|error| unavailable(&error))?;
        }
        Ok(())
    }

    /// Changes the list of the name with this subject. Returns whether the name became occupied or
    /// vacant, and the name.
    async fn occupy<T>(
        &self,
        stream: &Stream<T>,
        subject: String,
        name: Option<&str>,
        lease: &str,
        action: Action,
    ) -> Result<(bool, String), BrokerError> {
        for _ in 0..ATTEMPTS_MAX {
            let (last, mut occupants) = read(stream, &subject).await?;
            if let Some(name) = name {
                name.clone_into(&mut occupants.name);
            }
            let outcome = occupants.apply(lease, action);
            if !outcome.has_changed {
                return Ok((outcome.is_turn, occupants.name));
            }
            // Serializing to memory fails only for maps with keys that are not strings.
            let payload = serde_json::to_vec(&occupants).unwrap_or_default();
            let message = PublishMessage::build()
                .payload(payload.into())
                .expected_last_subject_sequence(last);
            match self.send_acknowledged(subject.clone(), message).await {
                Ok(sent) => {
                    if occupants.leases.is_empty() {
                        // Ignore errors: an empty list means the same as none.
                        let purge = stream.purge().filter(&subject);
                        _ = purge.sequence(sent.sequence + 1).await;
                    }
                    return Ok((outcome.is_turn, occupants.name));
                }
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                    let pause = PAUSE_MAX.mul_f32(rand::random());
                    tokio::time::sleep(pause).await;
                }
                // The server has lost the stream, and with it what this node had stored.
                Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                    return Err(BrokerError::LeaseEnded);
                }
                Err(error) => return Err(BrokerError::away(error)),
            }
        }
        let reason = "other nodes change the same name all the time";
        Err(BrokerError::away(reason))
    }

    async fn occupancy_stream(&self, subjects: &Subjects) -> Result<Stream, BrokerError> {
        let config = Config {
            name: stream_of(subjects),
            description: Some("occupied names of linerate".to_owned()),
            subjects: vec![subjects.occupancy()],
            max_messages_per_subject: 1,
            max_bytes: BYTES_MAX,
            discard: DiscardPolicy::New,
            storage: StorageType::Memory,
            num_replicas: self.options.stream_replicas.into(),
            ..Config::default()
        };
        let stream = self.context.get_or_create_stream(config).await;
        stream.map_err(|error| explain(&error))
    }
}

/// Returns the list at a subject, and the number of its message; 0 if there is none.
async fn read<T>(stream: &Stream<T>, subject: &str) -> Result<(u64, Occupants), BrokerError> {
    match stream.get_last_raw_message_by_subject(subject).await {
        Ok(message) => {
            let occupants = serde_json::from_slice(&message.payload).unwrap_or_default();
            Ok((message.sequence, occupants))
        }
        Err(error) => match error.kind() {
            LastRawMessageErrorKind::NoMessageFound => Ok((0, Occupants::default())),
            _ => Err(unavailable(&error)),
        },
    }
}

/// Returns the leases of nodes that are not registered, and those that a later generation of the
/// same node replaces.
fn ended<'a>(
    leases: impl Iterator<Item = &'a str>,
    nodes: &HashSet<String>,
) -> impl Iterator<Item = &'a str> {
    let known: Vec<_> = leases
        .filter_map(|lease| {
            let (node, generation) = lease.split_once('_')?;
            Some((lease, node, generation.parse::<u64>().ok()?))
        })
        .collect();
    let mut newest = BTreeMap::new();
    for (_, node, generation) in &known {
        let newest = newest.entry(*node).or_insert(*generation);
        *newest = *generation.max(newest);
    }
    let has_ended = move |(_, node, generation): &(&str, &str, u64)| {
        !nodes.contains(*node) || newest.get(node) != Some(generation)
    };
    let has_ended: Vec<_> = known.into_iter().filter(has_ended).collect();
    has_ended.into_iter().map(|(lease, ..)| lease)
}

fn stream_of(subjects: &Subjects) -> String {
    subject::stream(&subjects.occupancy())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Action, Occupants, Outcome, ended};

    fn outcome(has_changed: bool, is_turn: bool) -> Outcome {
        Outcome {
            has_changed,
            is_turn,
        }
    }

    #[test]
    fn the_first_and_the_last_change_of_a_name_are_turns_also_when_repeated() {
        let mut name = Occupants::default();
        assert_eq!(name.apply("a_0", Action::Add), outcome(true, true));
        assert_eq!(name.apply("a_0", Action::Add), outcome(false, true));
        assert_eq!(name.apply("b_0", Action::Add), outcome(true, false));
        assert_eq!(name.apply("b_0", Action::Add), outcome(false, false));
        assert_eq!(name.apply("a_0", Action::Remove), outcome(true, false));
        assert_eq!(name.apply("a_0", Action::Remove), outcome(false, false));
        assert_eq!(name.apply("b_0", Action::Sweep), outcome(true, true));
        assert_eq!(name.apply("b_0", Action::Sweep), outcome(false, false));
        assert_eq!(name.apply("b_0", Action::Remove), outcome(false, true));
    }

    #[test]
    fn a_lease_ends_with_its_node_and_with_the_next_generation() {
        let nodes = HashSet::from(["a".to_owned(), "b-1".to_owned()]);
        let leases = ["a_0", "a_2", "b-1_0", "c_7", "foreign", "a_x"];
        let ended: Vec<_> = ended(leases.into_iter(), &nodes).collect();
        assert_eq!(ended, ["a_0", "c_7"]);
    }
}
