//! A channel as a naive model has it: a list of everything, and where its ring begins.

use std::collections::VecDeque;

use linerate_hub::{ChannelName, ChannelOptions, Gap, GapCause, Publication};

use crate::world::{name, position};

/// What the hub counts for a publication beside its payload.
const OVERHEAD_BYTES: usize = 512;

/// What was published; its letters are for filters, its key for conflation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) id: u64,
    pub(crate) letters: &'static str,
    pub(crate) key: u64,
    /// Epoch and offset.
    pub(crate) at: Option<(u32, u64)>,
}

pub(crate) struct Channel {
    pub(crate) name: ChannelName,
    pub(crate) options: ChannelOptions,
    pub(crate) is_positioned: bool,
    /// What the broker has, and what of it is still on its way.
    pub(crate) newest: (u32, u64),
    pub(crate) history: Vec<Item>,
    pub(crate) underway: VecDeque<Item>,
    /// What has arrived since the channel has had subscribers.
    pub(crate) log: Vec<Item>,
    pub(crate) gaps: Vec<(usize, Gap)>,
    /// Where the ring begins.
    pub(crate) base: usize,
    live: Option<(u32, u64)>,
}

impl Item {
    /// Says whether a filter lets it pass: one of the letters, or `=` and all of them.
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

    /// Publishes with the broker.
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

    /// Notes what the hub is given.
    pub(crate) fn arrive(&mut self, item: Item) {
        match (self.live, item.at) {
            (Some(live), Some(at)) if live.0 != at.0 => {
                // A gap right before it has told that already.
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

    /// Forgets all that is live, since nobody subscribes any more.
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
