//! What can be chosen for a hub, a channel and a subscription.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use linerate_budget::Account;

use crate::{Encode, Filter, JsonPointer, Publication, Scope};

/// Options of a hub.
#[derive(Clone, Debug)]
pub struct HubOptions<B = Bytes> {
    /// The encodings that subscriptions choose from, by [`EncodingId`].
    pub encodings: Vec<Arc<dyn Encode<Block = B>>>,
    /// Where the ticks of the channels start; different for each worker of a node.
    pub seed: u64,
    /// At most so many bytes of frozen blocks are kept for subscribers that come later to the same place, for
    /// each kind of subscription in a channel. 256 KiB, four blocks of the usual size; older ones are frozen
    /// again where they are needed.
    pub block_cache_bytes_max: usize,
    /// Distinct filters of a channel, because each may have to be evaluated for every publication, and remembers
    /// which of those in the ring it has let pass. 1,024.
    pub channel_filters_max: usize,
    /// How often all distinct filters of a channel may go through values of a payload
    /// ([`searches`](linerate_filter::Filter::searches)), because that takes longer the larger it is. 512.
    pub channel_searches_max: usize,
    /// Distinct filters of a client, in all channels. 128.
    pub client_filters_max: usize,
    /// At most so many subscriptions of one client. 1,024.
    pub subscriptions_max: usize,
    /// Where the memory of blocks is counted, as long as anybody holds them. Nowhere.
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

/// Names an encoding: its place in [`HubOptions::encodings`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct EncodingId(pub u8);

/// How much a channel keeps for subscribers that can't take it yet.
///
/// A channel whose subscribers have all taken everything keeps nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChannelOptions {
    /// At most so many publications. 4,096. The newest is kept in any case.
    pub ring_messages_max: usize,
    /// At most so many bytes, with an allowance for what each publication costs beside its payload; what
    /// conflation by key has parsed comes on top. 4 MiB. The newest publication is kept in any case.
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

/// What a subscriber wants.
#[derive(Clone, Debug)]
pub struct SubscriptionOptions {
    /// How publications are encoded.
    pub encoding: EncodingId,
    /// Which sources of a pattern it sees, before the filter is asked; all if `None`.
    pub scope: Option<Arc<dyn Scope>>,
    /// Which ones it sees; all if `None`.
    pub filter: Option<Arc<dyn Filter>>,
    /// How long publications are collected; zero delivers at once. At most [`Self::BATCH_INTERVAL_MAX`].
    pub batch_interval: Duration,
    /// Publications are delivered before the interval is over once they have so many bytes, or half of what the
    /// channel's ring may hold, unless they are conflated. No block holds more, unless a single publication does.
    /// 64 KiB.
    pub batch_bytes_max: usize,
    /// Whether newer publications replace older ones that were not delivered yet.
    pub conflate: Option<Conflate>,
    /// What happens when the subscriber falls behind the channel's ring.
    pub slow: SlowPolicy,
    /// Whether the subscriber relies on an unbroken stream: nothing follows a gap.
    pub positioned: bool,
    /// Under which number its [deliveries](crate::Hub::deliveries) are counted.
    pub label: u16,
}

impl SubscriptionOptions {
    /// The longest interval that publications may be collected.
    pub const BATCH_INTERVAL_MAX: Duration = Duration::from_secs(60);

    /// Returns options for everything at once in `encoding`; slow subscribers lose the oldest.
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
            label: 0,
        }
    }

    /// Returns whether the subscriber sees a publication.
    pub fn sees(&self, publication: &Publication) -> bool {
        let scope = self.scope.as_ref();
        scope.is_none_or(|scope| scope.admits(publication.source()))
            && self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.matches(publication))
    }
}

/// Which publications replace others.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Conflate {
    /// Each replaces all before it.
    Latest,
    /// Each replaces those before it whose JSON has the same value at this place. What has nothing there, or is
    /// no JSON, replaces nothing and is not replaced.
    LatestPerKey(JsonPointer),
}

/// What happens to a subscriber that has fallen behind the channel's ring.
///
/// One that conflates only misses what newer publications replace; beside the ring, the newest publication of
/// each key is kept for it, in as much memory as the ring may take.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SlowPolicy {
    /// It gets the newest publication, or the newest of each key if the subscription conflates by key.
    Conflate,
    /// It gets what the ring still holds, after a gap; if it conflates, the same as with `Conflate`.
    DropOldest,
    /// Its connection ends; if it conflates, once it has not taken a batch before the next one was due.
    Disconnect,
}
