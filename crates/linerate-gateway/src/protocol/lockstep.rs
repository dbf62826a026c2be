//! Blocks that refer back to earlier blocks of their channel, compressed once for all clients that
//! received the same ones (RFC 7692 §7.1.1).
//!
//! The peer of a compressed WebSocket has one window, over everything that it received in
//! compressed form. A [`Follower`] knows which part of a [`Lockstep`] is in the window of its
//! client: the blocks that it received one after the other, with no other compressed message in
//! between. A block is compressed for the followers that have everything, and again for those that
//! began one, two, four or eight blocks ago, or begin now, if there are any.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use linerate::{Deflate, Frames};
use linerate_budget::{Account, Share};
use linerate_hub::Place;
use linerate_proto::deflate::{Context, Lockstep as Stream, ThreadPool};
use parking_lot::Mutex;

/// Messages of at least this many bytes are compressed, because they usually resemble the messages
/// before them. `compression.message_bytes_min` may be less.
const MESSAGE_BYTES_MIN: usize = 64;

/// The numbers of blocks before a block that a form of it may refer to, besides everything.
const BLOCKS: [usize; 5] = [0, 1, 2, 4, 8];

/// The number of forms of a block; the last one may refer to everything.
const FORMS: usize = BLOCKS.len() + 1;

/// The stream of blocks for the subscriptions of a worker that receive the same blocks.
#[derive(Debug)]
pub(crate) struct Lockstep {
    id: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` until the first block is compressed.
    stream: Option<Stream>,
    /// The number of the publication after those of the last block.
    next: u64,
    /// Where the blocks before the next one start, the newest first.
    starts: VecDeque<u64>,
}

/// The part of a client's window that belongs to a [`Lockstep`].
#[derive(Debug, Default)]
pub(crate) struct Follower(Option<Following>);

/// The window of a client ends with these bytes of a stream.
#[derive(Clone, Debug)]
struct Following {
    lockstep: u64,
    held: Range<u64>,
}

/// A block in a [`Lockstep`], and its compressed forms.
#[derive(Debug)]
pub(crate) struct Member {
    lockstep: Arc<Lockstep>,
    /// The numbers of its publications.
    publications: Range<u64>,
    /// `None` inside if the block is not part of the stream.
    appended: OnceLock<Option<Appended>>,
    forms: [OnceLock<Form>; FORMS],
}

/// Where a block is in the stream.
#[derive(Clone, Debug)]
struct Appended {
    positions: Range<u64>,
    /// The first position that each form may refer to, in descending order.
    oldest: [u64; FORMS],
}

#[derive(Debug)]
struct Form {
    frames: Frames,
    _share: Share,
}

impl Lockstep {
    pub(crate) fn new() -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        Self {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            state: Mutex::default(),
        }
    }

    /// Appends a block; returns `None` if it cannot be part of the stream. Blocks must be appended
    /// in the order of their publications; one that was skipped, or overlaps with others, cannot be
    /// appended any more.
    fn append(
        &self,
        block: &[u8],
        publications: &Range<u64>,
        deflate: &Deflate,
    ) -> Option<Appended> {
        let state = &mut *self.state.lock();
        if publications.start < state.next {
            return None;
        }
        state.next = publications.end;
        let stream = state.stream.get_or_insert_with(|| {
            let mut deflate = *deflate;
            deflate.message_bytes_min = deflate.message_bytes_min.min(MESSAGE_BYTES_MIN);
            Stream::new(&deflate)
        });
        let positions = stream.append(block)?;
        let everything = positions.start.saturating_sub(1 << Stream::WINDOW_BITS);
        let mut oldest = [everything; FORMS];
        for (oldest, blocks) in oldest.iter_mut().zip(BLOCKS) {
            let start = match blocks.checked_sub(1) {
                None => Some(&positions.start),
                Some(before) => state.starts.get(before),
            };
            *oldest = start.map_or(everything, |start| everything.max(*start));
        }
        state.starts.truncate(BLOCKS[BLOCKS.len() - 1] - 1);
        state.starts.push_front(positions.start);
        Some(Appended { positions, oldest })
    }
}

impl Follower {
    /// Returns whether the peer of a connection can follow, given what was agreed on for messages
    /// to it.
    pub(crate) fn is_possible(agreed: Context) -> bool {
        agreed.takeover && agreed.window_bits >= Stream::WINDOW_BITS
    }

    /// Records that something else was sent in compressed form, or that it is not known what was
    /// sent.
    pub(crate) fn leave(&mut self) {
        self.0 = None;
    }

    /// Returns the first position of a stream that the window of the client holds, if it holds
    /// everything from there up to `position`.
    fn held_before(&self, lockstep: u64, position: u64) -> u64 {
        let following = self.0.as_ref();
        let following = following
            .filter(|following| following.lockstep == lockstep && following.held.end == position);
        following.map_or(position, |following| following.held.start)
    }
}

impl Member {
    /// Returns the member for a block of a sequence of blocks, if the sequence is a [`Lockstep`].
    pub(super) fn new(place: &Place<'_>) -> Option<Self> {
        let lockstep = Arc::clone(place.sequence).downcast().ok()?;
        Some(Self {
            lockstep,
            publications: place.from..place.to,
            appended: OnceLock::new(),
            forms: Default::default(),
        })
    }

    /// Returns the frames of the block, which is given as bytes and number of messages, in the
    /// shortest form that the follower's client can inflate, and records that they are sent.
    /// Returns `None` if the client can inflate none of them. Forms are charged to `account` as
    /// long as the block lasts.
    pub(super) fn frames(
        &self,
        block: (&[u8], u64),
        follower: &mut Follower,
        deflate: &Deflate,
        account: &Account,
    ) -> Option<Frames> {
        let appended = self.appended.get_or_init(|| {
            let (bytes, _) = block;
            self.lockstep.append(bytes, &self.publications, deflate)
        });
        let Appended { positions, oldest } = appended.as_ref()?;
        let held = follower.held_before(self.lockstep.id, positions.start);
        let shortest = oldest.iter().rposition(|&oldest| oldest >= held)?;
        let form = self.form(block, shortest, (positions, oldest[shortest]), account);
        // A block that can no longer be compressed may have a longer form that suits.
        let mut others = self.forms[..shortest].iter().rev();
        let form = form.or_else(|| others.find_map(OnceLock::get))?;
        follower.0 = Some(Following {
            lockstep: self.lockstep.id,
            held: held..positions.end,
        });
        Some(form.frames.clone())
    }

    /// Returns a form of the block. Only the last block of the stream can be compressed.
    fn form(
        &self,
        (block, messages): (&[u8], u64),
        form: usize,
        (positions, oldest): (&Range<u64>, u64),
        account: &Account,
    ) -> Option<&Form> {
        if let Some(form) = self.forms[form].get() {
            return Some(form);
        }
        let state = self.lockstep.state.lock();
        if state.next != self.publications.end {
            return None;
        }
        let (mut wire, reach) = (Vec::new(), positions.start - oldest);
        let stream = state.stream.as_ref()?;
        stream.compress(block, reach, &ThreadPool, &mut wire);
        drop(state);
        Some(self.forms[form].get_or_init(|| Form {
            _share: account.share(wire.len() as u64),
            frames: Frames::danger_from_compressed(wire, messages),
        }))
    }
}

#[cfg(test)]
mod tests;
