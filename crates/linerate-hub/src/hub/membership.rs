//! Clients and their subscriptions.

use std::time::{Duration, Instant};

use crate::{
    ChannelName, ChannelOptions, ClientId, Publication, Start, SubscribeError, SubscriptionId,
    SubscriptionOptions,
    hub::{
        Deliveries, Hub, Lag, MemoryUse, Totals,
        admission::Admission,
        group::Kind,
        subscription::{Arrival, State, Subscription},
    },
};

/// True if a channel has lost its last subscription in this hub.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IsChannelEmpty(pub bool);

impl<B: Clone> Hub<B> {
    /// Subscribes a client to a channel. Publications are collected for it from now on, and
    /// delivered once it is [activated](Self::activate).
    ///
    /// The first subscription of a channel sets the channel's options.
    ///
    /// # Errors
    /// Returns an error if the client is no longer connected, is already subscribed to the channel
    /// or has too many subscriptions; if the encoding does not exist; if the batch interval is too
    /// long; or if the channel or the client has too many filters.
    pub fn subscribe(
        &mut self,
        now: Instant,
        client: ClientId,
        channel: ChannelName,
        channel_options: ChannelOptions,
        options: SubscriptionOptions,
    ) -> Result<SubscriptionId, SubscribeError> {
        let admission = Admission {
            options: &self.options,
            channels: &self.channels,
            members: &self.members,
            freezer: &self.delivery.freezer,
        };
        let client_index = admission.check(client, &channel, &options)?;
        let index = self.channels.find_or_add(now, channel, channel_options);
        let class = self.channels.streams[index].find_or_add_class(&options);
        let meters = &mut self.delivery.meters;
        let kind = Kind::new(&options);
        let group = self.channels.find_or_add_group(index, class, kind, meters);
        let stream = &mut self.channels.streams[index];
        stream.subscriptions += 1;
        stream.busy += 1;
        let class = &stream.classes[class];
        let key = self.members.subscriptions.insert(Subscription {
            client: client_index,
            group,
            place: 0,
            cursor: class.head(),
            marks_seen: class.marks.head(),
            state: State::Joining,
            is_positioned: options.positioned,
            has_previous: false,
            is_queued: false,
            next: None,
            arrival: Some(Box::new(Arrival::new(
                stream.ring.head(),
                stream.position.clone(),
            ))),
        });
        self.channels.groups[group].join(key.index, &mut self.members.subscriptions);
        self.delivery
            .meters
            .joined(self.channels.groups[group].meter);
        let subscriptions = &mut self.members.clients[client_index].subscriptions;
        subscriptions.push(key.index);
        Ok(SubscriptionId(key))
    }

    /// Adds history, oldest first, to be delivered before the live publications. The scope, the
    /// filter and the conflation of the subscription apply to it.
    ///
    /// Call this before [`activate`](Self::activate), which takes the position of the last of these
    /// publications.
    pub fn replay(
        &mut self,
        subscription: SubscriptionId,
        history: impl IntoIterator<Item = Publication>,
    ) {
        let Some(index) = self.members.subscriptions.find(subscription.0) else {
            return;
        };
        let subscription = &mut self.members.subscriptions[index];
        let Some(arrival) = &mut subscription.arrival else {
            return;
        };
        let group = &self.channels.groups[subscription.group];
        let class = &self.channels.streams[group.channel].classes[group.class];
        let mut seen = history
            .into_iter()
            .filter(|found| class.sees(found))
            .peekable();
        if seen.peek().is_none() {
            return;
        }
        let backlog = arrival.backlog.get_or_insert_default();
        backlog.replay.extend(seen);
        if let Some(conflate) = &group.kind.conflate {
            let newest = conflate.newest(&backlog.replay);
            backlog.conflated += (backlog.replay.len() - newest.len()) as u64;
            backlog.replay = newest.into();
        }
    }

    /// Starts the delivery of publications that arrived after the subscription was made, except for
    /// those already known. No publication between history and live delivery is missing or
    /// delivered twice.
    pub fn activate(&mut self, now: Instant, subscription: SubscriptionId, start: Start) {
        let Some(index) = self.members.subscriptions.find(subscription.0) else {
            return;
        };
        let subscription = &mut self.members.subscriptions[index];
        if subscription.state != State::Joining {
            return;
        }
        subscription.state = State::Live;
        // The client is not to blame for publications that the ring lost before activation.
        let group = &mut self.channels.groups[subscription.group];
        let class = &self.channels.streams[group.channel].classes[group.class];
        let late_before = group.late_before(class);
        let missed = late_before.saturating_sub(subscription.cursor);
        subscription.skip_to(late_before);
        group.slowest = group.slowest.min(subscription.cursor);
        if let Some(arrival) = &mut subscription.arrival {
            arrival.start(start, missed);
        }
        self.members.enqueue(index);
        self.changes.note(now);
    }

    /// Ends a client's subscription to a channel; returns `None` if there is none.
    pub fn unsubscribe(
        &mut self,
        client: ClientId,
        channel: &ChannelName,
    ) -> Option<IsChannelEmpty> {
        let client = self.members.find(client)?;
        let subscription = self
            .members
            .find_subscription(&self.channels, client, channel)?;
        self.members.clients[client].forget(subscription, &mut self.members.subscriptions);
        let is_empty = self.end(subscription);
        Some(IsChannelEmpty(is_empty.is_some()))
    }

    /// Removes a client; returns the channels that have lost their last subscription in this hub.
    pub fn disconnect(&mut self, client: ClientId) -> Vec<ChannelName> {
        let Some(index) = self.members.find(client) else {
            return Vec::new();
        };
        let subscriptions = self.members.disconnect(index).into_iter();
        subscriptions
            .filter_map(|subscription| self.end(subscription))
            .collect()
    }

    /// Returns whether a channel has a subscription in this hub.
    pub fn has_channel(&self, channel: &str) -> bool {
        self.channels.find(channel).is_some()
    }

    /// Returns the number of a channel in [`Batch::channel_id`](crate::Batch::channel_id), or
    /// `None` if the channel has no subscription.
    pub fn channel_id(&self, channel: &str) -> Option<u32> {
        let index = self.channels.find(channel)?;
        Some(self.channels.streams[index].id)
    }

    /// Returns how many subscriptions a channel has.
    pub fn subscribers(&self, channel: &str) -> usize {
        let index = self.channels.find(channel);
        index.map_or(0, |index| self.channels.streams[index].subscriptions)
    }

    /// Returns the clients with a subscription to a channel, in no particular order.
    pub fn subscribed_clients(&self, channel: &str) -> impl Iterator<Item = ClientId> {
        let index = self.channels.find(channel);
        let stream = index.map(|index| &self.channels.streams[index]);
        let classes = stream.into_iter().flat_map(|stream| stream.classes.iter());
        let groups = classes.flat_map(|(_, class)| &class.groups);
        let members = groups.flat_map(|group| self.channels.groups[*group].members());
        members.map(|member| {
            let client = self.members.subscriptions[*member].client;
            ClientId(self.members.clients.key(client))
        })
    }

    /// Returns the channels and the number of subscriptions of each.
    pub fn channels(&self) -> impl Iterator<Item = (&ChannelName, usize)> {
        let streams = self.channels.streams.iter();
        streams.map(|(_, stream)| (&stream.name, stream.subscriptions))
    }

    /// Returns how many clients there are.
    pub fn clients(&self) -> usize {
        self.members.clients.len()
    }

    /// Returns whether a client has fallen so far behind that its connection is to be closed.
    /// [`poll_transmit`](Self::poll_transmit) then returns
    /// [`Transmit::Slow`](crate::Transmit::Slow) next, and the caller should ask for it even if the
    /// client cannot take anything else.
    pub fn is_slow(&self, client: ClientId) -> bool {
        let index = self.members.find(client);
        index.is_some_and(|index| self.members.clients[index].slow.is_some())
    }

    /// Returns how many subscriptions there are.
    pub fn subscriptions(&self) -> usize {
        self.members.subscriptions.len()
    }

    /// Returns the shortest batch interval of all subscriptions, which is 0 if one does not batch,
    /// or `None` if there are no subscriptions.
    pub fn batch_interval_min(&self) -> Option<Duration> {
        self.channels.batch_interval_min()
    }

    /// Returns how far behind a client is; `None` if it is not connected.
    pub fn lag(&self, now: Instant, client: ClientId) -> Option<Lag> {
        let index = self.members.find(client)?;
        Some(Lag::of(now, &self.channels, &self.members, index))
    }

    /// Returns what all channels hold at the moment. The cost is proportional to the number of
    /// channels.
    pub fn memory_use(&self) -> MemoryUse {
        self.channels.memory_use()
    }

    /// Returns the counters of this hub.
    pub fn totals(&self) -> Totals {
        let mut totals = self.delivery.totals;
        for meter in self.delivery.meters.list() {
            totals.delivered_messages += meter.messages;
            totals.delivered_bytes += meter.bytes;
            totals.delivered_blocks += meter.blocks;
            totals.delivered_delay = totals.delivered_delay.saturating_add(meter.delay);
        }
        totals
    }

    /// Returns the counters of deliveries for each label and encoding that was ever used.
    pub fn deliveries(&self) -> Vec<Deliveries> {
        self.delivery.meters.list()
    }

    /// Ends a subscription that its client no longer lists; returns its channel if that was its
    /// last.
    fn end(&mut self, index: u32) -> Option<ChannelName> {
        let group_index = self.members.subscriptions[index].group;
        let group = &mut self.channels.groups[group_index];
        let channel = group.channel;
        let was_busy = group.leave(index, &mut self.members.subscriptions);
        self.delivery.meters.left(group.meter);
        let is_last_of_group = group.len() == 0;
        self.members.subscriptions.remove(index);
        let stream = &mut self.channels.streams[channel];
        stream.subscriptions -= 1;
        stream.busy -= usize::from(was_busy);
        if is_last_of_group {
            self.channels.end_group(group_index);
        }
        let stream = &self.channels.streams[channel];
        if stream.subscriptions == 0 {
            return Some(self.channels.remove(channel));
        }
        if stream.busy == 0 {
            self.channels.trim(channel);
        }
        None
    }
}
