//! What one hub tells another one that takes over its clients.

use std::time::Instant;

use crate::{
    ChannelName, ClientId, SubscriptionOptions,
    hub::{
        Hub,
        flush::Release,
        restored::{ChannelIdTooLarge, ChannelState},
    },
};

impl<B: Clone> Hub<B> {
    /// Returns what another hub needs to continue a channel, or `None` if it has no subscription.
    pub fn channel_state(&self, channel: &str) -> Option<ChannelState> {
        let index = self.channels.find(channel)?;
        let stream = &self.channels.streams[index];
        Some(ChannelState {
            id: stream.id,
            position: stream.position.clone(),
        })
    }

    /// Lets a channel that gets its first subscription continue one of another hub: it has the
    /// number of that one, and the next publication is expected to follow the position. Call this
    /// before the first client connects, and then [`end_restoring`](Self::end_restoring).
    ///
    /// # Errors
    /// If the number of the channel is too large.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use bytes::Bytes;
    /// use linerate_hub::{ChannelName, Hub, HubOptions, hub::ChannelState};
    ///
    /// let mut hub = Hub::<Bytes>::new(HubOptions::default());
    /// let state = ChannelState { id: 7, position: None };
    /// hub.restore(ChannelName::new("news")?, state)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restore(
        &mut self,
        channel: ChannelName,
        state: ChannelState,
    ) -> Result<(), ChannelIdTooLarge> {
        self.channels.restored.add(channel, state)
    }

    /// Forgets the restored channels that have not got a subscription.
    pub fn end_restoring(&mut self) {
        self.channels.restored.forget_all();
    }

    /// Releases all batches before they are due.
    pub fn release_all(&mut self, now: Instant) {
        self.changes.flush(&mut self.channels, &mut self.members);
        let groups: Vec<u32> = self
            .channels
            .groups
            .iter()
            .map(|(index, _)| index)
            .collect();
        let mut release = Release {
            channels: &mut self.channels,
            members: &mut self.members,
        };
        for group in groups {
            release.now(group);
        }
        self.changes.note(now);
    }

    /// Returns the options of a client's subscription to a channel, or `None` if there is none.
    pub fn subscription_options(
        &self,
        client: ClientId,
        channel: &ChannelName,
    ) -> Option<SubscriptionOptions> {
        let client = self.members.find(client)?;
        let index = self
            .members
            .find_subscription(&self.channels, client, channel)?;
        let subscription = &self.members.subscriptions[index];
        let group = &self.channels.groups[subscription.group];
        let class = &self.channels.streams[group.channel].classes[group.class];
        let kind = group.kind.clone();
        Some(SubscriptionOptions {
            encoding: kind.encoding,
            scope: class.scope().cloned(),
            filter: class.filter().cloned(),
            batch_interval: kind.batch_interval,
            batch_bytes_max: kind.batch_bytes_max,
            conflate: kind.conflate,
            slow: kind.slow,
            positioned: subscription.is_positioned,
            is_sequenced: kind.is_sequenced,
            with_deltas: kind.with_deltas,
            with_channel_id: kind.with_channel_id,
            with_positions: kind.with_positions,
            label: kind.label,
        })
    }
}
