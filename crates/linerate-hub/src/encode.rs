//! Encoding of publications for the sockets.

use std::{any::Any, fmt, sync::Arc};

use bytes::Bytes;

use crate::{ChannelName, Publication};

/// Encodes publications, frame headers included, into bytes that are the same for all subscribers.
///
/// It is called once per channel, class of filters and tick, not once per subscriber.
pub trait Encode: fmt::Debug + Send + Sync {
    /// The block that all subscribers receive clones of. Data that is derived from it later, such
    /// as a compressed form, can be computed once and shared through the clones.
    type Block;

    /// Appends `batch` to `out`.
    ///
    /// # Errors
    /// Returns [`Unencodable`] if a publication cannot be represented in this encoding. What was
    /// appended to `out` is not used then.
    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable>;

    /// Makes a block from the bytes that [`encode`](Self::encode) has appended for `batch`. `place`
    /// is its place among the blocks for the same subscriptions, if these are
    /// [sequenced](crate::SubscriptionOptions::is_sequenced) and there are several.
    fn seal(&self, bytes: Bytes, batch: &Batch<'_>, place: Option<Place<'_>>) -> Self::Block;

    /// Creates the state of a sequence of blocks. The default is none.
    fn sequence(&self) -> Option<Sequence> {
        None
    }
}

/// The state that an encoding keeps for subscriptions that receive the same blocks. It lasts as
/// long as the subscriptions and their blocks. Only the encoding knows its type.
pub type Sequence = Arc<dyn Any + Send + Sync>;

/// The place of a block in a sequence.
///
/// Most subscriptions receive blocks each of which begins where the one before it ended. One that
/// has fallen behind may receive blocks that overlap with these.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The sequence.
    pub sequence: &'a Sequence,
    /// The number of the first publication, among those that the subscriptions see.
    pub from: u64,
    /// The number of the publication after the last.
    pub to: u64,
}

/// Publications of one channel, oldest first; never empty.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The channel or the pattern that the subscription names.
    pub channel: &'a ChannelName,
    /// The number of the channel in this worker, valid while the channel has subscribers.
    pub channel_id: u32,
    /// The publications to deliver.
    pub publications: &'a [Publication],
    /// How many more publications were left out because newer ones replaced them.
    pub conflated: u64,
    /// How the subscribers receive the payloads.
    pub payloads: Payloads<'a>,
    /// True if the subscribers know the channel by its number; see
    /// [`SubscriptionOptions::with_channel_id`](crate::SubscriptionOptions::with_channel_id).
    pub with_channel_id: bool,
    /// True if the subscribers are told the positions of the publications; see
    /// [`SubscriptionOptions::with_positions`](crate::SubscriptionOptions::with_positions).
    pub with_positions: bool,
}

/// How subscribers receive the payloads of publications. There are no other ways, so encodings can
/// match both.
#[derive(Clone, Copy, Debug)]
pub enum Payloads<'a> {
    /// As differences from the payload before, where these are shorter; see
    /// [`SubscriptionOptions::with_deltas`](crate::SubscriptionOptions::with_deltas).
    Deltas {
        /// The publication that all of these subscribers received last. `None` if it is unknown, or
        /// if it is no longer there.
        previous: Option<&'a Publication>,
    },
    /// In full.
    Full,
}

impl<'a> Payloads<'a> {
    /// Returns each of `publications` with its [delta](Publication::delta_from), if the subscribers
    /// receive it as one.
    pub fn of(
        self,
        publications: &'a [Publication],
    ) -> impl Iterator<Item = (&'a Publication, Option<Bytes>)> {
        let (is_full, mut previous) = match self {
            Self::Deltas { previous } => (false, previous),
            Self::Full => (true, None),
        };
        publications.iter().map(move |publication| {
            let before = previous.replace(publication).filter(|_| !is_full);
            let delta = before.and_then(|before| publication.delta_from(before));
            (publication, delta)
        })
    }
}

/// A publication cannot be represented in an encoding. For example, a JSON encoding cannot carry a
/// payload that is not JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("publication cannot be represented in this encoding")]
pub struct Unencodable;
