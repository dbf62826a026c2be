//! A naive model of a channel: a list of everything that arrived, and the place where its ring
//! begins.

use std::collections::VecDeque;

use linerate_hub::{ChannelName, ChannelOptions, Gap, GapCause, Publication};

use crate::world::{name, position};

/// The overhead in bytes that the hub counts for each publication in addition to its payload.
const OVERHEAD_BYTES: usize = 512;

/// A publication. Filters select by its letters, and conflation by its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) id: u64,
    pub(crate) letters: &'static str,
    pub(crate) key: u64,
    /// The epoch and the offset.
    pub(crate) at: Option<(u32, u64)>,
}

pub(crate) struct Channel {
    pub(crate) name: ChannelName,
    pub(crate) options: ChannelOptions,
    pub(crate) is_positioned: bool,
    /// The publications that the broker has, and those of them that have not arrived yet.
    pub(crate) newest: (u32, u64),
    pub(crate) history: Vec<Item>,
    pub(crate) underway: VecDeque<Item>,
    /// The publications that have arrived since the channel got its first subscriber.
    pub(crate) log: Vec<Item>,
    pub(crate) gaps: Vec<(usize, Gap)>,
    /// The index at which the ring begins.
    pub(crate) base: usize,
    live: Option<(u32, u64)>,
}

impl Item {
    /// Returns whether a filter lets the publication pass. The filter is one of the letters, or `=`
    /// and all of them.
    pub(crate) fn matches(&self, filter: &str) -> bool {
        match filter.strip_prefix('=') {
            Some(letters) => self.letters == letters,
            None => self.letters.contains(filter),
        }
    }

    pub(crate) fn publication(&self) -> Publication {
        let build = Publication::build(self.payload().into());
        match self.at {
            Some((epoch, offset)) => build.with_position(position(&epoch.to_string(), offset)),
            None => build,
        }
        .finish()
    }

    fn payload(&self) -> String {
        let Self {
            id, letters, key, ..
        } = self;
        format!(r#"{{"id":{id},"letters":"{letters}","key":{key}}}"#)
    }
}

impl Channel {
    pub(crate) fn new(index: usize, options: ChannelOptions, is_positioned: bool) -> Self {
        Self {
            name: name(&format!("channel{index}")),
            options,
            is_positioned,
            newest: (1, 0),
            history: Vec::new(),
            underway: VecDeque::new(),
            log: Vec::new(),
            gaps: Vec::new(),
            base: 0,
            live: None,
        }
    }

    /// Publishes through the broker.
    pub(crate) fn produce(&mut self, id: u64, letters: &'static str) {
        self.newest.1 += 1;
        let at = self.is_positioned.then_some(self.newest);
        let key = id % 7 % 5;
        let item = Item {
            id,
            letters,
            key,
            at,
        };
        self.history.push(item);
        self.underway.push_back(item);
    }

    /// Records a publication that is passed to the hub.
    pub(crate) fn arrive(&mut self, item: Item) {
        match (self.live, item.at) {
            (Some(live), Some(at)) if live.0 != at.0 => {
                // A gap directly before this publication has already reported that.
                let told = self.gaps.last().map(|(at, _)| *at);
                if told != Some(self.log.len()) {
                    self.gap(None, GapCause::EpochChanged);
                }
            }
            (Some(live), Some(at)) if at.1 <= live.1 => return,
            (Some(live), Some(at)) if at.1 > live.1 + 1 => {
                self.gap(Some(at.1 - live.1 - 1), GapCause::OffsetHole);
            }
            _ => {}
        }
        self.live = item.at.or(self.live);
        self.log.push(item);
        while self.is_over() {
            self.base += 1;
        }
    }

    pub(crate) fn gap(&mut self, missed: Option<u64>, cause: GapCause) {
        self.gaps.push((self.log.len(), Gap { missed, cause }));
    }

    /// Drops the live state, because the last subscriber has left.
    pub(crate) fn forget(&mut self) {
        self.log.clear();
        self.gaps.clear();
        self.base = 0;
        self.live = None;
    }

    fn is_over(&self) -> bool {
        let ring = &self.log[self.base..];
        let bytes = |item: &Item| item.payload().len() + OVERHEAD_BYTES;
        let is_over = ring.len() > self.options.ring_messages_max
            || ring.iter().map(bytes).sum::<usize>() > self.options.ring_bytes_max;
        is_over && ring.len() > 1
    }
}
