//! Options of a hub, a channel and a subscription.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use linerate_budget::Account;

use crate::{Encode, Filter, JsonPointer, Publication, Scope};

/// Options of a hub.
#[derive(Clone, Debug)]
pub struct HubOptions<B = Bytes> {
    /// The encodings that subscriptions choose from, by [`EncodingId`].
    pub encodings: Vec<Arc<dyn Encode<Block = B>>>,
    /// Seed for the phases of the channels' ticks; use a different seed for each worker of a node.
    pub seed: u64,
    /// Maximum total size, in bytes, of the frozen blocks that are kept for subscribers that reach
    /// the same place later. The limit applies to each kind of subscription in a channel. A block
    /// that was dropped is encoded again when it is needed. Default: 256 KiB, which is four blocks
    /// of the usual size.
    pub block_cache_bytes_max: usize,
    /// Maximum number of distinct filters of a channel. It is limited because each filter may have
    /// to be evaluated for every publication, and remembers which publications of the ring match.
    /// Default: 1,024.
    pub channel_filters_max: usize,
    /// Maximum number of [searches](linerate_filter::Filter::searches) through values of a payload
    /// that all distinct filters of a channel may need together. It is limited because a search
    /// takes longer the larger the payload is. Default: 512.
    pub channel_searches_max: usize,
    /// Maximum number of distinct filters of a client, over all its channels. Default: 128.
    pub client_filters_max: usize,
    /// Maximum number of subscriptions of a client. Default: 1,024.
    pub subscriptions_max: usize,
    /// The account that is charged for the memory of blocks until their last owner drops them. By
    /// default, the memory is not counted.
    pub blocks: Account,
}

impl<B> Default for HubOptions<B> {
    fn default() -> Self {
        Self {
            encodings: Vec::new(),
            seed: 0,
            block_cache_bytes_max: 256 * 1024,
            channel_filters_max: 1_024,
            channel_searches_max: 512,
            client_filters_max: 128,
            subscriptions_max: 1_024,
            blocks: Account::default(),
        }
    }
}

/// Identifies an encoding by its index in [`HubOptions::encodings`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct EncodingId(pub u8);

/// Limits on what a channel keeps for subscribers that cannot take it yet.
///
/// A channel keeps nothing once all its subscribers have taken everything, except for what
/// [deltas](SubscriptionOptions::with_deltas) need.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChannelOptions {
    /// Maximum number of publications. The newest publication is always kept. Default: 4,096.
    pub ring_messages_max: usize,
    /// Maximum size in bytes, which includes an allowance for the overhead of each publication.
    /// Values that are parsed for conflation by key are not included. The newest publication is
    /// always kept. Default: 4 MiB.
    pub ring_bytes_max: usize,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            ring_messages_max: 4_096,
            ring_bytes_max: 4 * 1024 * 1024,
        }
    }
}

/// Options of a subscription.
#[derive(Clone, Debug)]
pub struct SubscriptionOptions {
    /// The encoding of the publications.
    pub encoding: EncodingId,
    /// Selects the source channels that a subscriber to a pattern sees; checked before the filter.
    /// `None` admits all of them.
    pub scope: Option<Arc<dyn Scope>>,
    /// Selects publications by their contents. `None` lets all of them pass.
    pub filter: Option<Arc<dyn Filter>>,
    /// How long publications are collected before they are delivered. Zero delivers each of them at
    /// once. The maximum is [`Self::BATCH_INTERVAL_MAX`].
    pub batch_interval: Duration,
    /// Size in bytes at which collected publications are delivered before the interval is over.
    /// They are also delivered early when they take up half of the channel's ring. Neither applies
    /// to publications that are conflated. A block holds at most this many bytes, unless it holds a
    /// single larger publication. Default: 64 KiB.
    pub batch_bytes_max: usize,
    /// Which newer publications replace older ones that were not delivered yet. `None` delivers
    /// all.
    pub conflate: Option<Conflate>,
    /// What happens when the subscriber falls behind the channel's ring.
    pub slow: SlowPolicy,
    /// True if the subscriber relies on an unbroken stream: the subscription ends at the first gap.
    pub positioned: bool,
    /// True if blocks are told their [place](crate::Place) among those for the same subscriptions.
    pub is_sequenced: bool,
    /// True if the encoding may replace payloads by their differences from the payload before. A
    /// channel with such subscriptions keeps its newest publication for this.
    pub with_deltas: bool,
    /// True if the encoding may name the channel by its [number](crate::Batch::channel_id), which
    /// the subscriber knows.
    pub with_channel_id: bool,
    /// True if the encoding tells the subscriber the position of each publication.
    pub with_positions: bool,
    /// The label under which its [deliveries](crate::Hub::deliveries) are counted.
    pub label: u16,
}

impl SubscriptionOptions {
    /// The longest [`batch_interval`](Self::batch_interval).
    pub const BATCH_INTERVAL_MAX: Duration = Duration::from_secs(60);

    /// Returns options that deliver every publication at once in `encoding`. A subscriber that is
    /// too slow loses the oldest publications.
    pub fn new(encoding: EncodingId) -> Self {
        Self {
            encoding,
            scope: None,
            filter: None,
            batch_interval: Duration::ZERO,
            batch_bytes_max: 64 * 1024,
            conflate: None,
            slow: SlowPolicy::DropOldest,
            positioned: false,
            is_sequenced: false,
            with_deltas: false,
            with_channel_id: false,
            with_positions: false,
            label: 0,
        }
    }

    /// Returns whether the scope and the filter let `publication` pass.
    pub fn sees(&self, publication: &Publication) -> bool {
        let scope = self.scope.as_ref();
        scope.is_none_or(|scope| scope.admits(publication.source()))
            && self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.matches(publication))
    }
}

/// Which undelivered publications a newer one replaces.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Conflate {
    /// Each publication replaces all earlier ones.
    Latest,
    /// Each publication replaces the earlier ones whose JSON has the same value at this pointer. A
    /// payload that is not JSON, or has no value there, replaces nothing and is not replaced.
    LatestPerKey(JsonPointer),
}

/// What happens to a subscriber that has fallen behind the channel's ring.
///
/// A subscriber that conflates misses only what newer publications replace. In addition to the
/// ring, the newest publication of each key is kept for it, within the same limits as the ring's.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SlowPolicy {
    /// The subscriber receives the newest publication, or the newest of each key if it conflates by
    /// key.
    Conflate,
    /// The subscriber receives a gap, and then what the ring still holds. If it conflates, this is
    /// the same as [`Conflate`](Self::Conflate).
    DropOldest,
    /// The connection is closed. If the subscription conflates, this happens when a batch was not
    /// taken before the next one was due.
    Disconnect,
}
