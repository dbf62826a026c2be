//! Options of the subscribers in the simulation.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use linerate_filter::Limits;
use linerate_hub::{
    Batch, Conflate, Encode, EncodingId, Filter, JsonPointer, Payloads, Place, Publication,
    SlowPolicy, SubscriptionOptions, Unencodable,
};

use super::random::Random;
use crate::world::Contains;

/// The number of a publication before the first.
pub(crate) const NONE: u64 = u64::MAX;

/// Encodes the numbers and lengths of publications, with the number of the publication that each
/// may be a delta from, and how many were conflated.
#[derive(Debug)]
pub(crate) struct Numbers;

impl Encode for Numbers {
    type Block = Bytes;

    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        out.extend_from_slice(&batch.conflated.to_le_bytes());
        let mut previous = match batch.payloads {
            Payloads::Deltas { previous } => previous.map(id),
            Payloads::Full => None,
        };
        for publication in batch.publications {
            let id = id(publication);
            let before = previous.replace(id);
            let before = before.filter(|_| !matches!(batch.payloads, Payloads::Full));
            let bytes = publication.payload().len() as u64;
            for number in [id, bytes, before.unwrap_or(NONE)] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        Ok(())
    }

    fn seal(&self, bytes: Bytes, _batch: &Batch<'_>, _place: Option<Place<'_>>) -> Bytes {
        bytes
    }
}

fn id(publication: &Publication) -> u64 {
    let value = publication.value().unwrap();
    value["id"].as_u64().unwrap()
}

/// Matches publications whose letters equal the text after the `=`.
#[derive(Debug)]
struct Equals(&'static str, Arc<linerate_filter::Filter>);

impl Equals {
    fn new(expression: &'static str) -> Self {
        let text = format!("letters == '{}'", &expression[1..]);
        let filter = linerate_filter::Filter::new(&text, &Limits::default());
        Self(expression, Arc::new(filter.unwrap()))
    }
}

impl Filter for Equals {
    fn expression(&self) -> &str {
        self.0
    }

    fn payload(&self) -> Option<&Arc<linerate_filter::Filter>> {
        Some(&self.1)
    }
}

pub(crate) fn any_options(random: &mut Random, is_conflating: bool) -> SubscriptionOptions {
    let contains = |letter| Some(Arc::new(Contains(letter)) as Arc<dyn Filter>);
    let equals = |letters| Some(Arc::new(Equals::new(letters)) as Arc<dyn Filter>);
    let filter = match random.below(7) {
        0 => contains("a"),
        1 => contains("b"),
        2 => contains("c"),
        3 => equals("=a"),
        4 => equals("=ab"),
        _ => None,
    };
    let slow = [
        SlowPolicy::Conflate,
        SlowPolicy::Disconnect,
        SlowPolicy::DropOldest,
        SlowPolicy::DropOldest,
    ];
    let by_key = Conflate::LatestPerKey(JsonPointer::new("/key").unwrap());
    let conflate = random.one_of(&[Conflate::Latest, by_key.clone(), by_key]);
    SubscriptionOptions {
        encoding: EncodingId(random.below(2) as u8),
        scope: None,
        filter,
        batch_interval: Duration::from_millis(random.one_of(&[0, 0, 50, 200])),
        batch_bytes_max: random.one_of(&[1, 150, 64 * 1024]),
        conflate: is_conflating.then_some(conflate),
        slow: random.one_of(&slow),
        positioned: random.once_in(4),
        is_sequenced: false,
        with_deltas: random.once_in(2),
        with_channel_id: false,
        with_positions: false,
        label: random.below(3) as u16,
    }
}
