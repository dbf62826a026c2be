//! Checks what one subscriber sees.

use std::collections::HashMap;

use linerate_hub::{Conflate, Gap, GapCause, SlowPolicy, SubscriptionOptions};

use super::{
    channel::{Channel, Item},
    options::NONE,
};

/// The number of gaps that the hub keeps for a subscriber that is behind.
const MARKS_MAX: usize = 16;

pub(crate) struct Checker {
    pub(crate) options: SubscriptionOptions,
    filter: String,
    /// The index of the next publication in the channel's log, and of the next gap.
    cursor: usize,
    gaps_seen: usize,
    joined: usize,
    /// The index at which the ring began when the subscription was activated.
    began: usize,
    /// The newest position that is known: at first from the broker's history, if the subscription
    /// begins after that, and then from live publications.
    pub(crate) known: Option<(u32, u64)>,
    is_exact: bool,
    /// The number of publications that were reported missing since then.
    missed: Option<u64>,
    has_missed: bool,
    last: Option<u64>,
    /// The publication that the subscriber received last.
    received: Option<u64>,
    newest_of_key: HashMap<u64, u64>,
    counted: u64,
    pub(crate) is_over: bool,
}

/// What must come next according to the model.
#[derive(Debug, PartialEq)]
enum Next {
    Gap(Gap),
    Lost(u64),
    Nothing,
    Publications,
}

impl Checker {
    pub(crate) fn new(options: SubscriptionOptions, channel: &Channel) -> Self {
        let filter = options.filter.as_ref();
        Self {
            filter: filter.map_or_else(String::new, |filter| filter.expression().to_owned()),
            options,
            cursor: channel.log.len(),
            gaps_seen: channel.gaps.len(),
            joined: channel.log.len(),
            began: 0,
            known: None,
            is_exact: true,
            missed: Some(0),
            has_missed: false,
            last: None,
            received: None,
            newest_of_key: HashMap::new(),
            counted: 0,
            is_over: false,
        }
    }

    pub(crate) fn begin(&mut self, channel: &Channel) {
        self.began = channel.base;
    }

    /// Starts the subscription after a position.
    pub(crate) fn begin_after(&mut self, known: (u32, u64)) {
        self.known = Some(known);
        self.is_exact = false;
    }

    pub(crate) fn see_gap(&mut self, gap: Gap, channel: &Channel) {
        if self.is_exact && self.options.conflate.is_none() {
            match self.next(channel) {
                Next::Gap(expected) => {
                    assert_eq!(gap, expected);
                    let kept_from = channel.gaps.len().saturating_sub(MARKS_MAX);
                    self.gaps_seen = (self.gaps_seen + 1).max(kept_from);
                }
                Next::Lost(_) if self.options.slow == SlowPolicy::Conflate => {
                    let (at, expected) = channel.gaps[self.gaps_seen];
                    assert_eq!(gap, expected);
                    self.cursor = at;
                    self.gaps_seen += 1;
                }
                Next::Lost(_) => {
                    assert_eq!(gap.cause, GapCause::RingEvicted);
                    // If more is lost later, the client is disconnected.
                    let is_excused = self.options.slow == SlowPolicy::Disconnect;
                    let end = if is_excused { self.began } else { channel.base };
                    let missed = self.count(&channel.log[self.cursor..end]);
                    assert_eq!(gap.missed, Some(missed));
                    self.cursor = end;
                }
                other => panic!("got {gap:?}, expected {other:?}"),
            }
        }
        if gap.cause == GapCause::EpochChanged && !self.is_exact {
            // Recovered publications may be of a newer epoch than those that still arrive.
            (self.last, self.known) = (None, None);
        }
        self.missed = self.missed.zip(gap.missed).map(|(a, b)| a + b);
        self.has_missed |= gap.cause == GapCause::RingEvicted;
        self.is_over |= self.options.positioned;
    }

    /// Checks that each publication of a block which may be a delta is one from what the subscriber
    /// received before it. Returns how many are deltas from an earlier block.
    pub(crate) fn see_deltas(&mut self, ids: &[u64], before: impl Iterator<Item = u64>) -> u64 {
        let mut deltas = 0;
        for (place, (id, before)) in ids.iter().zip(before).enumerate() {
            match before {
                NONE => assert!(place == 0 || !self.options.with_deltas),
                before => {
                    assert!(self.options.with_deltas);
                    assert_eq!(Some(before), self.received);
                    deltas += u64::from(place == 0);
                }
            }
            self.received = Some(*id);
        }
        deltas
    }

    /// Records a block: the numbers of its publications, and how many were conflated.
    pub(crate) fn see_block(
        &mut self,
        ids: &[u64],
        conflated: u64,
        bytes: usize,
        channel: &Channel,
    ) {
        assert!(!self.is_over, "output after the end of the subscription");
        assert!(ids.len() == 1 || bytes <= self.options.batch_bytes_max);
        for id in ids {
            assert!(
                self.last < Some(*id),
                "{id} was delivered after {:?}",
                self.last
            );
            self.last = Some(*id);
            let place = channel.history.binary_search_by_key(id, |item| item.id);
            let item = channel.history[place.unwrap()];
            assert!(item.matches(&self.filter));
            self.newest_of_key.insert(item.key, *id);
            let is_complete = self.options.slow != SlowPolicy::Conflate;
            if is_complete && self.options.conflate.is_none() {
                self.follow(item);
            }
        }
        self.counted += ids.len() as u64 + conflated;
        if self.options.conflate.is_some() {
            return;
        }
        let is_lost = self.is_exact && matches!(self.next(channel), Next::Lost(_));
        if conflated > 0 || (is_lost && self.options.slow == SlowPolicy::Conflate) {
            self.see_newest(ids, channel);
        } else if self.is_exact {
            self.see_exactly(ids, channel);
        }
    }

    /// Records that the client is to be disconnected.
    pub(crate) fn see_end(&mut self, channel: &Channel) {
        assert_eq!(self.options.slow, SlowPolicy::Disconnect);
        if self.is_exact && self.options.conflate.is_none() {
            assert!(matches!(self.next(channel), Next::Lost(_)));
        }
        self.is_over = true;
    }

    /// Returns whether the client should have been disconnected.
    pub(crate) fn is_too_slow(&self, channel: &Channel) -> bool {
        self.options.slow == SlowPolicy::Disconnect
            && self.options.conflate.is_none()
            && self.is_exact
            && !self.is_over
            && self.cursor.max(self.began) < channel.base
            && self.count(&channel.log[self.cursor.max(self.began)..channel.base]) > 0
    }

    /// Records that there is no more output although all ticks have passed.
    pub(crate) fn see_nothing(&self, channel: &Channel) {
        if self.is_over {
            return;
        }
        if self.is_exact && self.options.conflate.is_none() {
            assert_eq!(self.next(channel), Next::Nothing);
        }
        self.check_newest(channel);
        let arrived = &channel.log[self.joined..];
        let matching = arrived
            .iter()
            .filter(|item| item.matches(&self.filter))
            .count();
        if self.is_exact {
            assert!(self.counted <= matching as u64);
        }
    }

    /// Checks that the stream continues without an unreported hole.
    fn follow(&mut self, item: Item) {
        let is_all = self.filter.is_empty();
        if let (Some(known), Some(at)) = (self.known, item.at) {
            if known.0 != at.0 {
                assert_eq!(self.missed, None, "new epoch without a gap");
            } else {
                assert!(known.1 < at.1, "{at:?} was delivered after {known:?}");
                let between = at.1 - known.1 - 1;
                let is_right = self.missed.is_none_or(|missed| missed == between);
                assert!(
                    is_right || !is_all,
                    "{between} missing, {:?} reported",
                    self.missed
                );
            }
        }
        self.known = item.at;
        self.missed = Some(0);
    }

    fn see_exactly(&mut self, ids: &[u64], channel: &Channel) {
        assert_eq!(self.next(channel), Next::Publications);
        let end = self.end(channel);
        for id in ids {
            let rest = channel.log[self.cursor..end].iter();
            let place = rest.clone().position(|item| item.matches(&self.filter));
            let place = self.cursor + place.expect("the model has this publication");
            assert_eq!(channel.log[place].id, *id);
            self.cursor = place + 1;
        }
    }

    /// Checks that a slow subscriber received the newest publication instead of all of them.
    fn see_newest(&mut self, ids: &[u64], channel: &Channel) {
        assert_eq!((self.options.slow, ids.len()), (SlowPolicy::Conflate, 1));
        if !self.is_exact {
            return;
        }
        assert!(matches!(self.next(channel), Next::Lost(_)));
        let place = channel.log.iter().position(|item| item.id == ids[0]);
        self.cursor = place.unwrap() + 1;
        assert!(self.cursor <= self.end(channel));
    }

    /// Checks that the newest publication of each key is there after conflation.
    fn check_newest(&self, channel: &Channel) {
        let Some(conflate) = &self.options.conflate else {
            return;
        };
        if self.has_missed || !self.is_exact {
            return;
        }
        let arrived = channel.log[self.joined..].iter();
        let mut newest = HashMap::new();
        for item in arrived.filter(|item| item.matches(&self.filter)) {
            newest.insert(item.key, item.id);
        }
        if *conflate == Conflate::Latest {
            assert_eq!(self.last, newest.values().copied().max());
        } else {
            assert_eq!(self.newest_of_key, newest);
        }
    }

    /// Returns the place of the next gap, or the end.
    fn end(&self, channel: &Channel) -> usize {
        let gap = channel.gaps.get(self.gaps_seen);
        gap.map_or(channel.log.len(), |(at, _)| *at)
    }

    fn count(&self, items: &[Item]) -> u64 {
        let matching = items.iter().filter(|item| item.matches(&self.filter));
        matching.count() as u64
    }

    fn next(&self, channel: &Channel) -> Next {
        let lost = self.count(&channel.log[self.cursor..channel.base.max(self.cursor)]);
        if lost > 0 {
            return Next::Lost(lost);
        }
        let behind = channel.gaps.len() - self.gaps_seen;
        if behind > MARKS_MAX {
            let (_, dropped) = channel.gaps[channel.gaps.len() - MARKS_MAX - 1];
            let missed = None;
            return Next::Gap(Gap { missed, ..dropped });
        }
        let end = self.end(channel);
        if self.count(&channel.log[self.cursor.min(end)..end]) > 0 {
            return Next::Publications;
        }
        match channel.gaps.get(self.gaps_seen) {
            Some((_, gap)) => Next::Gap(*gap),
            None => Next::Nothing,
        }
    }
}
