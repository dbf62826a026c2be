//! Where to begin in partitions, and which records are missing.
//!
//! Without a committed offset, librdkafka would begin at the configured end of a partition, and
//! commit only after the first record. Records would then be lost without notice: those of a new
//! partition before it is discovered, those between a restart and the first record, and those that
//! Kafka has deleted before they were read. So the first offset of each partition is determined and
//! committed before it is read.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext},
    error::{KafkaError, KafkaResult},
};

use crate::options::Start;

/// The maximum time until Kafka has answered.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A topic and the number of a partition.
pub(crate) type Partition = (String, i32);

/// Where a partition is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    /// The offset of the next record.
    pub(crate) next: i64,
    /// The end of the partition when it was assigned. Records before it may have been published by
    /// an earlier reader.
    pub(crate) suspect: i64,
}

/// What is known of a partition when it is assigned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Known {
    committed: Option<i64>,
    /// The oldest record.
    first: i64,
    /// After the newest record.
    end: i64,
    /// True if the group has read another partition of the topic.
    is_topic_known: bool,
}

/// Where to begin, and whether records may be missing before it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Beginning {
    offset: i64,
    is_gap: bool,
}

impl Known {
    fn beginning(self, start: Start) -> Beginning {
        match self.committed {
            Some(committed) if (self.first..=self.end).contains(&committed) => Beginning {
                offset: committed,
                is_gap: false,
            },
            // Deleted, or the topic was replaced by another one with its name.
            Some(_) => Beginning {
                offset: self.first,
                is_gap: true,
            },
            // A partition that was added to the topic.
            None if self.is_topic_known => Beginning {
                offset: self.first,
                is_gap: self.first > 0,
            },
            // There may have been offsets that Kafka has forgotten.
            None => Beginning {
                offset: match start {
                    Start::Earliest => self.first,
                    Start::Latest => self.end,
                },
                is_gap: true,
            },
        }
    }
}

/// Where the assigned partitions are read, and the topics in which records may be missing.
pub(crate) struct Prepared {
    pub(crate) places: HashMap<Partition, Place>,
    pub(crate) gaps: HashSet<String>,
    /// Offsets to commit before the partitions are read, after the gaps have been reported.
    begun: TopicPartitionList,
}

/// Determines where to begin in partitions.
///
/// # Errors
/// Kafka does not answer.
pub(crate) fn prepare<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    assigned: &[Partition],
    start: Start,
) -> KafkaResult<Prepared> {
    let mut prepared = Prepared {
        places: HashMap::new(),
        gaps: HashSet::new(),
        begun: TopicPartitionList::new(),
    };
    if assigned.is_empty() {
        return Ok(prepared);
    }
    let topics: HashSet<&str> = assigned.iter().map(|it| it.0.as_str()).collect();
    let mut all = TopicPartitionList::new();
    for topic in &topics {
        let metadata = consumer.fetch_metadata(Some(topic), ANSWER_MAX)?;
        let partitions = metadata
            .topics()
            .iter()
            .flat_map(|topic| topic.partitions());
        for partition in partitions {
            all.add_partition(topic, partition.id());
        }
    }
    let committed = offsets(&consumer.committed_offsets(all, ANSWER_MAX)?)?;
    let known: HashSet<&str> = committed.keys().map(|it| it.0.as_str()).collect();
    let first = bounds(consumer, assigned, Offset::Beginning)?;
    let end = bounds(consumer, assigned, Offset::End)?;
    for partition in assigned {
        let (Some(&first), Some(&end)) = (first.get(partition), end.get(partition)) else {
            return Err(KafkaError::OffsetFetch(
                rdkafka::types::RDKafkaErrorCode::NoOffset,
            ));
        };
        let (topic, number) = partition;
        let committed = committed.get(partition).copied();
        let known = Known {
            committed,
            first,
            end,
            is_topic_known: known.contains(topic.as_str()),
        };
        let Beginning { offset, is_gap } = known.beginning(start);
        if is_gap {
            prepared.gaps.insert(topic.clone());
        }
        if committed != Some(offset) {
            let begun = &mut prepared.begun;
            begun.add_partition_offset(topic, *number, Offset::Offset(offset))?;
        }
        let place = Place {
            next: offset,
            suspect: end,
        };
        prepared.places.insert(partition.clone(), place);
    }
    Ok(prepared)
}

impl Prepared {
    /// Commits where to begin.
    ///
    /// # Errors
    /// Kafka does not answer.
    pub(crate) fn commit<C: ConsumerContext>(&self, consumer: &BaseConsumer<C>) -> KafkaResult<()> {
        match self.begun.count() {
            0 => Ok(()),
            _ => consumer.commit(&self.begun, CommitMode::Sync),
        }
    }
}

/// Returns how many records are not published, or `None` if a partition is unknown.
///
/// # Errors
/// Kafka does not answer.
pub(crate) fn lag<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    places: &HashMap<Partition, Place>,
) -> KafkaResult<u64> {
    if places.is_empty() {
        return Ok(0);
    }
    let partitions: Vec<_> = places.keys().cloned().collect();
    let ends = bounds(consumer, &partitions, Offset::End)?;
    let lag = |(partition, place): (&Partition, &Place)| {
        let end = ends.get(partition).copied().unwrap_or_default();
        u64::try_from(end - place.next).unwrap_or_default()
    };
    Ok(places.iter().map(lag).sum())
}

/// Returns the first or last offsets of partitions.
fn bounds<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    partitions: &[Partition],
    bound: Offset,
) -> KafkaResult<HashMap<Partition, i64>> {
    let mut asked = TopicPartitionList::new();
    for (topic, partition) in partitions {
        asked.add_partition_offset(topic, *partition, bound)?;
    }
    offsets(&consumer.offsets_for_times(asked, ANSWER_MAX)?)
}

/// Returns the offsets of the partitions that have one.
fn offsets(list: &TopicPartitionList) -> KafkaResult<HashMap<Partition, i64>> {
    let mut offsets = HashMap::new();
    for element in list.elements() {
        element.error()?;
        if let Offset::Offset(offset) = element.offset() {
            offsets.insert((element.topic().to_owned(), element.partition()), offset);
        }
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::{Beginning, Known};
    use crate::options::Start;

    fn begin(committed: Option<i64>, is_topic_known: bool, start: Start) -> (i64, bool) {
        let known = Known {
            committed,
            first: 5,
            end: 9,
            is_topic_known,
        };
        let Beginning { offset, is_gap } = known.beginning(start);
        (offset, is_gap)
    }

    #[test]
    fn reading_continues_at_the_committed_offset_if_its_record_exists() {
        for committed in [5, 7, 9] {
            let begun = begin(Some(committed), true, Start::Latest);
            assert_eq!(begun, (committed, false));
        }
    }

    #[test]
    fn deleted_records_and_replaced_topics_are_gaps() {
        for committed in [0, 4, 10] {
            assert_eq!(begin(Some(committed), true, Start::Latest), (5, true));
        }
    }

    #[test]
    fn an_added_partition_is_read_from_its_oldest_record() {
        assert_eq!(begin(None, true, Start::Latest), (5, true));
        let complete = Known {
            committed: None,
            first: 0,
            end: 9,
            is_topic_known: true,
        };
        assert!(!complete.beginning(Start::Latest).is_gap);
    }

    #[test]
    fn a_topic_that_the_group_has_not_read_begins_with_a_gap() {
        assert_eq!(begin(None, false, Start::Latest), (9, true));
        assert_eq!(begin(None, false, Start::Earliest), (5, true));
    }
}
