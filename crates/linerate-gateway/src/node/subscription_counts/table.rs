//! The numbers of subscriptions of channels that have some on this node, and when which of them are
//! told.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use linerate_hub::ChannelName;

/// A channel with more subscriptions than this is large: its number is told less often, because
/// each change concerns more clients.
pub(super) const SMALL_MAX: u64 = 100;

/// The minimum time between two numbers that the subscribers of a large channel are told.
pub(super) const PAUSE_LARGE: Duration = Duration::from_secs(5);

/// The minimum time between two numbers of any other channel, and between two numbers of any
/// channel that other nodes are told.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// How long to wait for the numbers of other nodes before the first number of a channel is told.
pub(super) const SETTLE: Duration = Duration::from_millis(100);

/// How often the number of this node is announced again, because messages between nodes can be
/// lost.
pub(super) const REFRESH: Duration = Duration::from_secs(30);

/// How long the number of another node is valid. It misses one announcement at least.
pub(super) const HEARD_MAX: Duration = Duration::from_secs(75);

/// The approximate memory of a channel without its name, in bytes.
const CHANNEL_BYTES: usize = 256;

/// The approximate memory of the number of another node, in bytes.
const NODE_BYTES: usize = 64;

/// The channels with subscriptions on this node.
#[derive(Debug)]
pub(super) struct Table {
    /// The ID of this node.
    node: Box<str>,
    entries: HashMap<ChannelName, Entry, RandomState>,
    /// When to look at each channel next, as in [`Entry::due`].
    due: BTreeSet<(Instant, ChannelName)>,
    /// The approximate memory of the entries, in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// The number of subscriptions on each worker that has some.
    here: Vec<(u16, u64)>,
    /// The numbers of other nodes that have some.
    elsewhere: Vec<Elsewhere>,
    /// The number of this node that the other nodes know.
    announced: u64,
    /// When the number may be announced next.
    announce_next: Instant,
    /// When the number is announced again if it does not change.
    refresh_at: Instant,
    /// True if a node was heard that may not know the number of this one.
    must_announce: bool,
    /// The number that subscribers and webhooks know; `None` before the first one.
    told: Option<u64>,
    /// When a number may be told next.
    tell_next: Instant,
    /// True if there are subscribers that know no number yet.
    must_tell: bool,
    /// When to look at the channel.
    due: Option<Instant>,
}

/// The number of subscriptions on another node.
#[derive(Debug)]
struct Elsewhere {
    node: Box<str>,
    count: u64,
    heard: Instant,
}

/// What is to be done about a channel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::node) struct Due {
    pub(in crate::node) channel: ChannelName,
    /// The number of this node, if other nodes are to be told.
    pub(in crate::node) announced: Option<u64>,
    /// The number of all nodes, if the subscribers of this node are to be told.
    pub(in crate::node) told: Option<u64>,
    /// True if this node is the one that tells webhooks, to which only changes matter.
    pub(in crate::node) is_reporter: bool,
}

impl Entry {
    fn new(now: Instant) -> Self {
        Self {
            here: Vec::new(),
            elsewhere: Vec::new(),
            announced: 0,
            announce_next: now,
            refresh_at: now + REFRESH,
            must_announce: false,
            told: None,
            tell_next: now + SETTLE,
            must_tell: false,
            due: None,
        }
    }

    /// Returns the number of subscriptions on this node.
    fn count(&self) -> u64 {
        self.here.iter().map(|(_, count)| count).sum()
    }

    /// Returns the number of subscriptions on all nodes.
    fn total(&self) -> u64 {
        let elsewhere = self.elsewhere.iter().map(|other| other.count);
        self.count() + elsewhere.sum::<u64>()
    }

    /// Returns whether this node has no subscriptions, and has said so.
    fn is_over(&self) -> bool {
        self.here.is_empty() && !self.is_announcement_due() && !self.is_telling_due()
    }

    fn is_announcement_due(&self) -> bool {
        self.must_announce || self.count() != self.announced
    }

    /// Returns whether subscribers and webhooks are to be told a number. While only other nodes
    /// have subscriptions, they do it.
    fn is_telling_due(&self) -> bool {
        let total = self.total();
        match self.here.is_empty() {
            true => total == 0 && self.told.is_some_and(|told| told > 0),
            false => self.must_tell || self.told != Some(total),
        }
    }

    /// Returns when to look at the channel next.
    fn next(&self) -> Instant {
        let announce = self.is_announcement_due().then_some(self.announce_next);
        let tell = self.is_telling_due().then_some(self.tell_next);
        match announce.into_iter().chain(tell).min() {
            Some(next) => next,
            // The times that limit the rate are kept until then.
            None if self.is_over() => self.announce_next.max(self.tell_next),
            None => self.refresh_at,
        }
    }

    /// Returns whether this node tells webhooks: the first of those with subscriptions, or the last
    /// one that had any.
    fn is_reporter(&self, node: &str) -> bool {
        let mut others = self.elsewhere.iter();
        match self.here.is_empty() {
            true => self.elsewhere.is_empty(),
            false => others.all(|other| *node < *other.node),
        }
    }

    /// Returns the number of this node if it may be announced now, and records that it is.
    fn announce(&mut self, now: Instant) -> Option<u64> {
        if !self.is_announcement_due() || now < self.announce_next {
            return None;
        }
        self.must_announce = false;
        self.announced = self.count();
        self.announce_next = now + PAUSE;
        Some(self.announced)
    }

    /// Returns the number of all nodes if it may be told now, and records that it is.
    fn tell(&mut self, now: Instant) -> Option<u64> {
        if !self.is_telling_due() || now < self.tell_next {
            return None;
        }
        let total = self.total();
        self.must_tell = false;
        self.told = Some(total);
        self.tell_next = now + pause(total);
        Some(total)
    }

    /// Announces the number again, and removes those of nodes that have not done so for too long.
    /// Returns how many were removed.
    fn refresh(&mut self, now: Instant) -> usize {
        self.refresh_at = now + REFRESH;
        self.must_announce = !self.here.is_empty();
        self.retain_elsewhere(|other| now.saturating_duration_since(other.heard) < HEARD_MAX)
    }

    /// Removes the numbers of the nodes for which `is_kept` returns false. Returns how many.
    fn retain_elsewhere(&mut self, is_kept: impl Fn(&Elsewhere) -> bool) -> usize {
        let before = self.elsewhere.len();
        self.elsewhere.retain(is_kept);
        before - self.elsewhere.len()
    }

    fn bytes(&self, channel: &ChannelName) -> usize {
        CHANNEL_BYTES + channel.as_str().len() + self.elsewhere.len() * NODE_BYTES
    }
}

impl Table {
    /// Creates the table of this node.
    pub(super) fn new(node: &str) -> Self {
        Self {
            node: node.into(),
            entries: HashMap::default(),
            due: BTreeSet::new(),
            bytes: 0,
        }
    }

    /// Records how many subscriptions a channel has on a worker. `is_new` is true if one was added,
    /// whose client knows no number yet.
    pub(super) fn set(
        &mut self,
        now: Instant,
        channel: &ChannelName,
        (worker, count): (u16, u64),
        is_new: bool,
    ) {
        if count == 0 && !self.entries.contains_key(channel) {
            return;
        }
        let entry = self.entries.entry_ref(channel).or_insert_with(|| {
            self.bytes += CHANNEL_BYTES + channel.as_str().len();
            Entry::new(now)
        });
        entry.here.retain(|(known, _)| *known != worker);
        if count > 0 {
            entry.here.push((worker, count));
        }
        entry.must_tell |= is_new;
        self.schedule(channel);
    }

    /// Records how many subscriptions a channel has on another node.
    pub(super) fn hear(&mut self, now: Instant, node: &str, channel: &ChannelName, count: u64) {
        let Some(entry) = self.entries.get_mut(channel) else {
            return;
        };
        let heard = Elsewhere {
            node: node.into(),
            count,
            heard: now,
        };
        let known = entry
            .elsewhere
            .iter()
            .position(|other| *other.node == *node);
        match known {
            Some(place) if count == 0 => {
                entry.elsewhere.swap_remove(place);
                self.bytes -= NODE_BYTES;
            }
            Some(place) => entry.elsewhere[place] = heard,
            None if count == 0 => return,
            None => {
                entry.elsewhere.push(heard);
                entry.must_announce = !entry.here.is_empty();
                self.bytes += NODE_BYTES;
            }
        }
        self.schedule(channel);
    }

    /// Records that other nodes have ended.
    pub(super) fn forget_nodes(&mut self, nodes: &[String]) {
        let has_ended = |other: &Elsewhere| nodes.iter().any(|node| **node == *other.node);
        let mut changed = Vec::new();
        for (channel, entry) in &mut self.entries {
            let removed = entry.retain_elsewhere(|other| !has_ended(other));
            self.bytes -= NODE_BYTES * removed;
            if removed > 0 {
                changed.push(channel.clone());
            }
        }
        for channel in changed {
            self.schedule(&channel);
        }
    }

    /// Removes all channels.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.due.clear();
        self.bytes = 0;
    }

    /// Returns when something may be due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns what is due, up to `limit` channels, and records that it is done.
    pub(super) fn take(&mut self, now: Instant, limit: usize) -> Vec<Due> {
        let mut taken = Vec::new();
        while taken.len() < limit
            && self.next().is_some_and(|at| at <= now)
            && let Some((_, channel)) = self.due.pop_first()
        {
            taken.extend(self.look(now, channel));
        }
        taken
    }

    /// Returns what is due about a channel, and records that it is done.
    fn look(&mut self, now: Instant, channel: ChannelName) -> Option<Due> {
        let entry = self.entries.get_mut(&channel)?;
        entry.due = None;
        if entry.refresh_at <= now {
            self.bytes -= NODE_BYTES * entry.refresh(now);
        }
        let announced = entry.announce(now);
        let known = entry.told;
        let told = entry.tell(now);
        let is_reporter = told != known && entry.is_reporter(&self.node);
        if entry.is_over() && entry.next() <= now {
            self.remove(&channel);
        } else {
            self.schedule(&channel);
        }
        (announced.is_some() || told.is_some()).then_some(Due {
            channel,
            announced,
            told,
            is_reporter,
        })
    }

    /// Sets when to look at a channel.
    fn schedule(&mut self, channel: &ChannelName) {
        let Some(entry) = self.entries.get_mut(channel) else {
            return;
        };
        let next = entry.next();
        if let Some(before) = entry.due.replace(next) {
            self.due.remove(&(before, channel.clone()));
        }
        self.due.insert((next, channel.clone()));
    }

    fn remove(&mut self, channel: &ChannelName) {
        if let Some(entry) = self.entries.remove(channel) {
            self.bytes -= entry.bytes(channel);
        }
    }

    /// Returns the approximate memory of the channels, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Returns the minimum time between two numbers that the subscribers of a channel are told.
const fn pause(count: u64) -> Duration {
    match count > SMALL_MAX {
        true => PAUSE_LARGE,
        false => PAUSE,
    }
}

#[cfg(test)]
mod tests;
