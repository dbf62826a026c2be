//! Continues in one process where another one stopped passing on the events of the broker.
//!
//! Both processes subscribe to the same channels for a while, and both note the fingerprints of the
//! publications that they receive. A message that both receive marks a place in both trails. What
//! the first process had passed on when it stopped is then what the second one has to skip.
//!
//! Brokers whose messages have one order, such as a Redis server, show both processes the same
//! publications after the mark, so that counting suffices. NATS keeps only the order of each
//! publisher; where the trails differ, fingerprints tell what was passed on.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use linerate_hub::{ChannelName, Publication, channel::NAME_BYTES_MAX};
use linerate_proto::portable::{ImportError, Reader, Writer};
use ring::digest::{SHA256, digest};

/// How many fingerprints before the mark are remembered for each channel. Processes of one machine
/// receive a message within far fewer.
const EARLY_MAX: usize = 64;

/// The maximum number of fingerprints after the mark, in all channels.
pub(crate) const LATE_MAX: usize = 1 << 20;

/// The fingerprint of a publication.
type Fingerprint = u64;

/// The publications that a process has received.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    channels: HashMap<ChannelName, ChannelTrail, RandomState>,
    /// The messages of other nodes.
    control: ChannelTrail,
    is_marked: bool,
    late: usize,
}

#[derive(Debug, Default)]
struct ChannelTrail {
    /// Before the mark.
    early: VecDeque<Fingerprint>,
    /// After the mark.
    late: Vec<Fingerprint>,
}

/// Decides which publications were passed on by another process.
#[derive(Debug)]
pub(crate) struct Splice {
    channels: HashMap<ChannelName, Skip, RandomState>,
    control: Skip,
}

/// What is to be skipped in a channel.
#[derive(Debug, Eq, PartialEq)]
enum Skip {
    /// This number of publications after the mark, and everything before it.
    Count(usize),
    /// The publications with these fingerprints, each as often as its number says.
    Found(HashMap<Fingerprint, u32, RandomState>),
}

impl Trail {
    /// Adds a publication.
    pub(crate) fn note(&mut self, channel: &ChannelName, publication: &Publication) {
        if !self.channels.contains_key(channel) {
            self.channels
                .insert(channel.clone(), ChannelTrail::default());
        }
        if let Some(trail) = self.channels.get_mut(channel) {
            trail.note(fingerprint(publication), self.is_marked);
            self.late += usize::from(self.is_marked);
        }
    }

    /// Adds a message of another node.
    pub(crate) fn note_control(&mut self, message: &[u8]) {
        self.control.note(hash(message), self.is_marked);
        self.late += usize::from(self.is_marked);
    }

    /// Marks the place that the trail has reached.
    pub(crate) const fn mark(&mut self) {
        self.is_marked = true;
    }

    pub(crate) const fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Returns whether there are too many publications after the mark to continue.
    pub(crate) const fn is_full(&self) -> bool {
        self.late >= LATE_MAX
    }

    /// Splits the trail into parts, each of which takes about `bytes_max` bytes or less.
    pub(crate) fn split(self, bytes_max: usize) -> Vec<Self> {
        let mut parts = vec![Self {
            channels: HashMap::default(),
            ..self
        }];
        let mut bytes = 0;
        for (channel, trail) in self.channels {
            let own = channel.as_str().len() + 8 * (trail.early.len() + trail.late.len()) + 12;
            if bytes + own > bytes_max && bytes > 0 {
                parts.push(Self::default());
                bytes = 0;
            }
            bytes += own;
            if let Some(part) = parts.last_mut() {
                part.channels.insert(channel, trail);
            }
        }
        parts
    }

    /// Adds another part.
    pub(crate) fn join(&mut self, part: Self) {
        self.channels.extend(part.channels);
        if self.control.late.is_empty() && self.control.early.is_empty() {
            self.control = part.control;
        }
        self.late += part.late;
        self.is_marked |= part.is_marked;
    }

    /// Appends the trail to the state of a process.
    pub(crate) fn export(&self, state: &mut Writer) {
        self.control.export(state);
        state.u32(u32::try_from(self.channels.len()).unwrap_or(u32::MAX));
        for (channel, trail) in &self.channels {
            write_name(channel, state);
            trail.export(state);
        }
    }

    /// Reads the trail of another process.
    ///
    /// # Errors
    /// The state is not one that [`export`](Self::export) has written.
    pub(crate) fn import(state: &mut Reader<'_>) -> Result<Self, ImportError> {
        let mut trail = Self {
            is_marked: true,
            control: ChannelTrail::import(state)?,
            ..Self::default()
        };
        for _ in 0..state.u32("channels of the trail")? {
            let channel = read_name(state)?;
            let of_channel = ChannelTrail::import(state)?;
            trail.late += of_channel.late.len();
            trail.channels.insert(channel, of_channel);
        }
        Ok(trail)
    }
}

impl ChannelTrail {
    fn note(&mut self, found: Fingerprint, is_marked: bool) {
        if is_marked {
            return self.late.push(found);
        }
        if self.early.len() == EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back(found);
    }

    fn export(&self, state: &mut Writer) {
        state.bytes(&bytes_of(&self.early));
        state.bytes(&bytes_of(&self.late));
    }

    fn import(state: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self {
            early: prints(state.bytes("early publications", EARLY_MAX * 8)?).collect(),
            late: prints(state.bytes("late publications", LATE_MAX * 8)?).collect(),
        })
    }
}

impl Skip {
    /// Compares what another process has passed on with what this one has received.
    fn new(passed: &ChannelTrail, received: &ChannelTrail) -> Self {
        let last = passed.early.back().zip(received.early.back());
        let is_same_before = last.is_none_or(|(a, b)| a == b);
        let is_same_after = passed.late.iter().zip(&received.late).all(|(a, b)| a == b);
        if is_same_before && is_same_after {
            return Self::Count(passed.late.len());
        }
        let mut found = HashMap::default();
        for print in passed.early.iter().chain(&passed.late) {
            *found.entry(*print).or_default() += 1;
        }
        Self::Found(found)
    }

    /// Returns whether something with this fingerprint was not passed on by the other process.
    fn is_new(&mut self, found: impl FnOnce() -> Fingerprint, is_early: bool) -> bool {
        match self {
            Self::Count(_) if is_early => false,
            Self::Count(0) => true,
            Self::Count(left) => {
                *left -= 1;
                false
            }
            Self::Found(passed) => match passed.get_mut(&found()) {
                None | Some(0) => true,
                Some(count) => {
                    *count -= 1;
                    false
                }
            },
        }
    }
}

impl Splice {
    /// Compares what another process has passed on with what this one has received.
    pub(crate) fn new(passed: Trail, received: &Trail) -> Self {
        let none = ChannelTrail::default();
        let channels = passed.channels.into_iter().map(|(channel, passed)| {
            let received = received.channels.get(&channel).unwrap_or(&none);
            let skip = Skip::new(&passed, received);
            (channel, skip)
        });
        Self {
            channels: channels.collect(),
            control: Skip::new(&passed.control, &received.control),
        }
    }

    /// Returns whether a publication is new, and not one that the other process has passed on.
    /// Publications must be given in the order in which they arrived; `is_early` tells whether this
    /// was before the mark.
    pub(crate) fn is_new(
        &mut self,
        channel: &ChannelName,
        publication: &Publication,
        is_early: bool,
    ) -> bool {
        match self.channels.get_mut(channel) {
            // The other process received everything that came before the mark.
            None => !is_early,
            Some(skip) => skip.is_new(|| fingerprint(publication), is_early),
        }
    }

    /// Returns whether everything that the other process has passed on has arrived.
    pub(crate) fn is_over(&self) -> bool {
        let mut all = self.channels.values().chain([&self.control]);
        all.all(|skip| *skip == Skip::Count(0))
    }

    /// Like [`is_new`](Self::is_new) for a message of another node.
    pub(crate) fn is_new_control(&mut self, message: &[u8], is_early: bool) -> bool {
        self.control.is_new(|| hash(message), is_early)
    }
}

/// Appends the name of a channel.
pub(crate) fn write_name(channel: &ChannelName, parcel: &mut Writer) {
    parcel.bytes(channel.as_str().as_bytes());
}

/// Reads the name of a channel.
///
/// # Errors
/// It is not a valid name.
pub(crate) fn read_name(parcel: &mut Reader<'_>) -> Result<ChannelName, ImportError> {
    let name = parcel.bytes("channel", NAME_BYTES_MAX)?;
    let text = std::str::from_utf8(name).ok();
    let channel = text.and_then(|text| ChannelName::new(text).ok());
    channel.ok_or(ImportError::Invalid {
        field: "channel",
        value: name.len() as u64,
    })
}

/// Returns the fingerprint of a publication. Each node numbers the publications of channels that
/// are not durable by itself, so the number is not a part of it.
fn fingerprint(publication: &Publication) -> Fingerprint {
    hash(publication.payload())
}

/// Returns the first bytes of a hash that does not depend on the build of the process.
fn hash(bytes: &[u8]) -> Fingerprint {
    let hash = digest(&SHA256, bytes);
    let first = hash.as_ref().first_chunk().copied().unwrap_or_default();
    u64::from_le_bytes(first)
}

fn bytes_of<'a>(prints: impl IntoIterator<Item = &'a Fingerprint>) -> Vec<u8> {
    let bytes = prints.into_iter().flat_map(|print| print.to_le_bytes());
    bytes.collect()
}

fn prints(bytes: &[u8]) -> impl Iterator<Item = Fingerprint> {
    let (chunks, _) = bytes.as_chunks();
    chunks.iter().map(|chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use linerate_proto::portable::Version;
    use proptest::prelude::*;

    use super::*;

    fn news() -> ChannelName {
        ChannelName::new("news").unwrap()
    }

    fn publication(text: &str) -> Publication {
        Publication::new(text.to_owned().into())
    }

    /// The trail of a process that received `early`, the mark and `late`.
    fn trail(early: &[&str], late: &[&str]) -> Trail {
        let mut trail = Trail::default();
        for text in early {
            trail.note(&news(), &publication(text));
        }
        trail.mark();
        for text in late {
            trail.note(&news(), &publication(text));
        }
        trail
    }

    /// Hands a trail to another process.
    fn moved(trail: &Trail) -> Trail {
        let mut state = Writer::new(Version::NEWEST);
        trail.export(&mut state);
        let state = state.finish();
        let (mut state, _) = Reader::new(&state).unwrap();
        let trail = Trail::import(&mut state).unwrap();
        state.finish().unwrap();
        trail
    }

    /// What the second process passes on, if the first one had received `passed` when it stopped,
    /// and the second one had received `held` and receives `live` later.
    fn delivered(
        passed: (&[&str], &[&str]),
        held: (&[&str], &[&str]),
        live: &[&str],
    ) -> Vec<String> {
        let passed = moved(&trail(passed.0, passed.1));
        let mut splice = Splice::new(passed, &trail(held.0, held.1));
        let early = held.0.iter().map(|text| (text, true));
        let late = held.1.iter().chain(live).map(|text| (text, false));
        let is_new = |(text, is_early): &(&&str, bool)| {
            splice.is_new(&news(), &publication(text), *is_early)
        };
        let new = early.chain(late).filter(is_new);
        new.map(|(text, _)| (*text).to_owned()).collect()
    }

    #[test]
    fn what_was_passed_on_is_skipped() {
        let passed: (&[&str], &[&str]) = (&["1", "2"], &["3", "4"]);
        assert_eq!(
            delivered(passed, (&["2"], &["3", "4", "5"]), &["6"]),
            ["5", "6"]
        );
        assert_eq!(delivered(passed, (&[], &["3"]), &["4", "5"]), ["5"]);
        assert_eq!(delivered(passed, (&[], &[]), &["3", "4", "5"]), ["5"]);
        assert_eq!(delivered((&[], &[]), (&["1"], &["2"]), &["3"]), ["2", "3"]);
    }

    #[test]
    fn equal_publications_are_counted() {
        let passed: (&[&str], &[&str]) = (&["t", "t", "t", "t"], &["t", "t"]);
        assert_eq!(
            delivered(passed, (&["t"], &["t", "t", "t"]), &["t"]),
            ["t", "t"]
        );
        assert_eq!(delivered(passed, (&[], &["t"]), &["t", "t"]), ["t"]);
    }

    #[test]
    fn publications_on_the_other_side_of_the_mark_are_found() {
        // The first process received 2 before the mark, the second one after it.
        let passed: (&[&str], &[&str]) = (&["1", "2"], &["3"]);
        assert_eq!(delivered(passed, (&["1"], &["2", "3", "4"]), &[]), ["4"]);
        // The first process received 2 after the mark, the second one before it.
        let passed: (&[&str], &[&str]) = (&["1"], &["2", "3"]);
        assert_eq!(delivered(passed, (&["1", "2"], &["3", "4"]), &[]), ["4"]);
        // Publishers overtake each other.
        let passed: (&[&str], &[&str]) = (&[], &["a1", "b1", "a2"]);
        assert_eq!(
            delivered(passed, (&[], &["b1", "a1", "b2"]), &["a2", "b3"]),
            ["b2", "b3"]
        );
    }

    #[test]
    fn an_invalid_trail_is_refused() {
        let mut state = Writer::new(Version::NEWEST);
        trail(&["1"], &["2"]).export(&mut state);
        let state = state.finish();
        for len in 2..state.len() {
            let (mut reader, _) = Reader::new(&state[..len]).unwrap();
            assert!(Trail::import(&mut reader).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_repeated_wherever_the_cut_is(
            count in 1_usize..40,
            mark in 0_usize..40,
            cut in 0_usize..40,
            seen in 0_usize..40,
            start in 0_usize..40,
            distinct in 1_usize..5,
        ) {
            // One order of messages; the second process subscribes before the mark, and both have
            // received the mark.
            let texts: Vec<String> = (0..count).map(|n| (n % distinct).to_string()).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let mark = mark.min(count);
            let cut = cut.clamp(mark, count);
            let seen = seen.clamp(mark, count);
            let start = start.min(mark);
            let new = delivered(
                (&texts[..mark], &texts[mark..cut]),
                (&texts[start..mark], &texts[mark..seen]),
                &texts[seen..],
            );
            prop_assert_eq!(new, &texts[cut..]);
        }
    }
}
