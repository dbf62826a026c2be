//! The channels that a hub continues from another one.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::{ChannelName, StreamPosition};

/// What a hub knows of a channel, apart from its subscriptions and their publications.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChannelState {
    /// The number of the channel in [`Batch::channel_id`](crate::Batch::channel_id).
    pub id: u32,
    /// The position of the newest publication.
    pub position: Option<StreamPosition>,
}

impl ChannelState {
    /// The largest [`id`](Self::id) that a hub continues. It leaves room for new channels.
    pub const ID_MAX: u32 = u32::MAX / 2;
}

/// The error for a channel whose number leaves no room for new channels.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "channel has the number {id}, and at most {} can be continued",
    ChannelState::ID_MAX
)]
pub struct ChannelIdTooLarge {
    /// The number.
    pub id: u32,
}

/// The channels that continue those of another hub and have no subscriptions yet.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    states: HashMap<ChannelName, ChannelState, RandomState>,
    /// All numbers of restored channels are smaller.
    first_id: u32,
}

impl Restored {
    /// Adds a channel.
    ///
    /// # Errors
    /// If the number of the channel is too large.
    pub(crate) fn add(
        &mut self,
        channel: ChannelName,
        state: ChannelState,
    ) -> Result<(), ChannelIdTooLarge> {
        let id = state.id;
        if id > ChannelState::ID_MAX {
            return Err(ChannelIdTooLarge { id });
        }
        self.first_id = self.first_id.max(id + 1);
        self.states.insert(channel, state);
        Ok(())
    }

    /// Forgets all channels, but not their numbers.
    pub(crate) fn forget_all(&mut self) {
        self.states = HashMap::default();
    }

    /// Removes and returns the state that a channel continues from.
    pub(crate) fn take(&mut self, channel: &ChannelName) -> Option<ChannelState> {
        self.states.remove(channel)
    }

    /// Returns a number that is greater than those of all restored channels.
    pub(crate) const fn first_id(&self) -> u32 {
        self.first_id
    }
}
