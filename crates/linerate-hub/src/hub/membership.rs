//! Clients and their subscriptions.

use std::{
    collections::{HashSet, btree_map::Entry},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    ChannelName, ChannelOptions, ClientId, EncodingId, Filter, SubscriptionId, SubscriptionOptions,
    hub::{
        Deliveries, Hub, Totals,
        group::{Group, Kind},
        room,
        stream::{ALL, Stream},
        subscription::{Arrival, State, Subscription},
    },
};

/// The reason why a subscription was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The client is already subscribed to the channel.
    #[error("client is already subscribed to this channel")]
    AlreadySubscribed,
    /// The batch interval is too long.
    #[error("batch interval of {interval:?} exceeds the limit of {interval_max:?}")]
    BatchIntervalTooLong {
        /// The requested interval.
        interval: Duration,
        /// The longest interval that is allowed.
        interval_max: Duration,
    },
    /// The channel has reached its limit of distinct filters, and this filter is a new one.
    #[error("channel has {filters} filters, and at most {channel_filters_max} are allowed")]
    TooManyChannelFilters {
        /// The number of distinct filters of the channel.
        filters: usize,
        /// The limit.
        channel_filters_max: usize,
    },
    /// The filters of the channel would need more searches of a payload than allowed.
    #[error(
        "channel would have {searches} searches (contains, endsWith and comparing two fields count 1 each, size and in 4 each), \
         and at most {channel_searches_max} are allowed"
    )]
    TooManyChannelSearches {
        /// The number of searches with this filter.
        searches: usize,
        /// The limit.
        channel_searches_max: usize,
    },
    /// The client has reached its limit of distinct filters, and this filter is a new one.
    #[error("client has {filters} filters, and at most {client_filters_max} are allowed")]
    TooManyClientFilters {
        /// The number of distinct filters of the client.
        filters: usize,
        /// The limit.
        client_filters_max: usize,
    },
    /// The client has reached its limit of subscriptions.
    #[error(
        "client has {subscriptions} subscriptions, and at most {subscriptions_max} are allowed"
    )]
    TooManySubscriptions {
        /// The number of subscriptions of the client.
        subscriptions: usize,
        /// The limit.
        subscriptions_max: usize,
    },
    /// The client is not connected.
    #[error("client is not connected")]
    UnknownClient,
    /// The hub does not have this encoding.
    #[error("hub has no encoding {}", .encoding.0)]
    UnknownEncoding {
        /// The encoding.
        encoding: EncodingId,
    },
}

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
        let client_index = self.check(client, &channel, &options)?;
        let stream = self.find_or_add_stream(now, channel, channel_options);
        let class = self.find_or_add_class(stream, &options);
        let group = self.find_or_add_group(stream, class, Kind::new(&options));
        let stream = &mut self.streams[stream];
        stream.subscriptions += 1;
        stream.busy += 1;
        let class = &stream.classes[class];
        let key = self.subscriptions.insert(Subscription {
            client: client_index,
            group,
            place: 0,
            cursor: class.head(),
            marks_seen: class.marks.head(),
            state: State::Joining,
            is_positioned: options.positioned,
            is_queued: false,
            next: None,
            arrival: Some(Box::new(Arrival::new(
                stream.ring.head(),
                stream.position.clone(),
            ))),
        });
        self.groups[group].join(key.index, &mut self.subscriptions);
        self.meters.joined(self.groups[group].meter);
        self.clients[client_index].subscriptions.push(key.index);
        Ok(SubscriptionId(key))
    }

    /// Ends a client's subscription to a channel; returns `None` if there is none.
    pub fn unsubscribe(
        &mut self,
        client: ClientId,
        channel: &ChannelName,
    ) -> Option<IsChannelEmpty> {
        let client = self.clients.find(client.0)?;
        let subscription = self.find_subscription(client, channel)?;
        self.clients[client].forget(subscription, &mut self.subscriptions);
        let is_empty = self.end(subscription);
        Some(IsChannelEmpty(is_empty.is_some()))
    }

    /// Removes a client; returns the channels that have lost their last subscription in this hub.
    pub fn disconnect(&mut self, client: ClientId) -> Vec<ChannelName> {
        let Some(index) = self.clients.find(client.0) else {
            return Vec::new();
        };
        let client = self.clients.remove(index);
        let room = room::reduced(self.ready.capacity(), self.clients.len());
        if let Some(room) = room {
            self.ready.shrink_to(room);
        }
        let subscriptions = client.subscriptions.into_iter();
        subscriptions
            .filter_map(|subscription| self.end(subscription))
            .collect()
    }

    /// Returns whether a channel has a subscription in this hub.
    pub fn has_channel(&self, channel: &str) -> bool {
        self.names.contains_key(channel)
    }

    /// Returns the number of a channel in [`Batch::channel_id`](crate::Batch::channel_id), or
    /// `None` if the channel has no subscription.
    pub fn channel_id(&self, channel: &str) -> Option<u32> {
        self.names.get(channel).copied()
    }

    /// Returns how many subscriptions a channel has.
    pub fn subscribers(&self, channel: &str) -> usize {
        let index = self.names.get(channel);
        index.map_or(0, |index| self.streams[*index].subscriptions)
    }

    /// Returns the channels and the number of subscriptions of each.
    pub fn channels(&self) -> impl Iterator<Item = (&ChannelName, usize)> {
        let streams = self.streams.iter();
        streams.map(|(_, stream)| (&stream.name, stream.subscriptions))
    }

    /// Returns how many clients there are.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Returns whether a client has fallen so far behind that its connection is to be closed.
    /// [`poll_transmit`](Self::poll_transmit) then returns
    /// [`Transmit::Slow`](crate::Transmit::Slow) next, and the caller should ask for it even if the
    /// client cannot take anything else.
    pub fn is_slow(&self, client: ClientId) -> bool {
        let index = self.clients.find(client.0);
        index.is_some_and(|index| self.clients[index].slow.is_some())
    }

    /// Returns how many subscriptions there are.
    pub fn subscriptions(&self) -> usize {
        self.subscriptions.len()
    }

    /// Returns the shortest batch interval of all subscriptions, which is 0 if one does not batch,
    /// or `None` if there are no subscriptions.
    pub fn batch_interval_min(&self) -> Option<Duration> {
        self.intervals.keys().next().copied()
    }

    /// Returns the counters of this hub.
    pub fn totals(&self) -> Totals {
        let mut totals = self.totals;
        for meter in self.meters.list() {
            totals.delivered_messages += meter.messages;
            totals.delivered_bytes += meter.bytes;
            totals.delivered_blocks += meter.blocks;
            totals.delivered_delay = totals.delivered_delay.saturating_add(meter.delay);
        }
        totals
    }

    /// Returns the counters of deliveries for each label and encoding that was ever used.
    pub fn deliveries(&self) -> Vec<Deliveries> {
        self.meters.list()
    }

    fn check(
        &self,
        client: ClientId,
        channel: &ChannelName,
        options: &SubscriptionOptions,
    ) -> Result<u32, SubscribeError> {
        let index = self.clients.find(client.0);
        let index = index.ok_or(SubscribeError::UnknownClient)?;
        if self.find_subscription(index, channel).is_some() {
            return Err(SubscribeError::AlreadySubscribed);
        }
        let subscriptions = self.clients[index].subscriptions.len();
        let subscriptions_max = self.options.subscriptions_max;
        if subscriptions >= subscriptions_max {
            return Err(SubscribeError::TooManySubscriptions {
                subscriptions,
                subscriptions_max,
            });
        }
        let encoding = options.encoding;
        if !self.freezer.has(encoding) {
            return Err(SubscribeError::UnknownEncoding { encoding });
        }
        let interval = options.batch_interval;
        let interval_max = SubscriptionOptions::BATCH_INTERVAL_MAX;
        if interval > interval_max {
            return Err(SubscribeError::BatchIntervalTooLong {
                interval,
                interval_max,
            });
        }
        self.check_filters(index, channel, options)?;
        Ok(index)
    }

    fn check_filters(
        &self,
        client: u32,
        channel: &ChannelName,
        options: &SubscriptionOptions,
    ) -> Result<(), SubscribeError> {
        let Some(filter) = &options.filter else {
            return Ok(());
        };
        let own = self.filters_of(client);
        let (filters, client_filters_max) = (own.len(), self.options.client_filters_max);
        if filters >= client_filters_max && !own.contains(filter.expression()) {
            return Err(SubscribeError::TooManyClientFilters {
                filters,
                client_filters_max,
            });
        }
        let stream = self.names.get(channel.as_str());
        let stream = stream.map(|index| &self.streams[*index]);
        if stream.is_some_and(|stream| stream.find_class(options).is_some()) {
            return Ok(());
        }
        let classes = stream.iter().flat_map(|stream| stream.classes.iter());
        let known = classes.filter_map(|(_, class)| class.filter());
        let (filters, searches) = known.fold((0, 0), |(filters, searches), filter| {
            (filters + 1, searches + searches_of(filter))
        });
        let channel_filters_max = self.options.channel_filters_max;
        if filters >= channel_filters_max {
            return Err(SubscribeError::TooManyChannelFilters {
                filters,
                channel_filters_max,
            });
        }
        let (own, channel_searches_max) = (searches_of(filter), self.options.channel_searches_max);
        let searches = searches + own;
        if own > 0 && searches > channel_searches_max {
            return Err(SubscribeError::TooManyChannelSearches {
                searches,
                channel_searches_max,
            });
        }
        Ok(())
    }

    /// Returns the distinct filters of a client.
    fn filters_of(&self, client: u32) -> HashSet<&str> {
        let subscriptions = self.clients[client].subscriptions.iter();
        let filters = subscriptions.filter_map(|index| {
            let group = &self.groups[self.subscriptions[*index].group];
            self.streams[group.channel].classes[group.class].filter()
        });
        filters.map(|filter| filter.expression()).collect()
    }

    fn find_subscription(&self, client: u32, channel: &ChannelName) -> Option<u32> {
        let channel = *self.names.get(channel.as_str())?;
        let mut subscriptions = self.clients[client].subscriptions.iter().copied();
        subscriptions.find(|index| {
            let group = self.subscriptions[*index].group;
            self.groups[group].channel == channel
        })
    }

    fn find_or_add_stream(
        &mut self,
        now: Instant,
        channel: ChannelName,
        options: ChannelOptions,
    ) -> u32 {
        if let Some(index) = self.names.get(channel.as_str()) {
            return *index;
        }
        let phase = self.ticks.new_phase(now);
        let stream = Stream::new(channel.clone(), options, phase);
        let index = self.streams.insert(stream).index;
        self.names.insert(channel, index);
        index
    }

    fn find_or_add_class(&mut self, stream: u32, options: &SubscriptionOptions) -> usize {
        let stream = &mut self.streams[stream];
        let found = stream.find_class(options);
        found.unwrap_or_else(|| stream.add_class(options))
    }

    fn find_or_add_group(&mut self, stream_index: u32, class_index: usize, kind: Kind) -> u32 {
        let stream = &mut self.streams[stream_index];
        let groups = &stream.classes[class_index].groups;
        let is_same = |index: &&u32| self.groups[**index].kind == kind;
        if let Some(index) = groups.iter().find(is_same) {
            return *index;
        }
        *self.intervals.entry(kind.batch_interval).or_default() += 1;
        let meter = self.meters.find_or_add(kind.label, kind.encoding);
        let group = Group::new(stream_index, stream, class_index, (kind, meter));
        stream.ticking += usize::from(group.is_ticking());
        let index = self.groups.insert(group).index;
        stream.classes[class_index].groups.push(index);
        index
    }

    /// Ends a subscription that its client no longer lists; returns its channel if that was its
    /// last.
    fn end(&mut self, index: u32) -> Option<ChannelName> {
        let group_index = self.subscriptions[index].group;
        let group = &mut self.groups[group_index];
        let channel = group.channel;
        let was_busy = group.leave(index, &mut self.subscriptions);
        self.meters.left(group.meter);
        let is_last_of_group = group.len() == 0;
        self.subscriptions.remove(index);
        let stream = &mut self.streams[channel];
        stream.subscriptions -= 1;
        stream.busy -= usize::from(was_busy);
        if is_last_of_group {
            self.end_group(group_index);
        }
        let stream = &self.streams[channel];
        if stream.subscriptions == 0 {
            let stream = self.streams.remove(channel);
            self.names.remove(stream.name.as_str());
            let room = room::reduced(self.names.capacity(), self.names.len());
            if let Some(room) = room {
                self.names.shrink_to(room);
            }
            return Some(stream.name);
        }
        if stream.busy == 0 {
            self.trim(channel);
        }
        None
    }

    fn end_group(&mut self, index: u32) {
        let group = self.groups.remove(index);
        if let Entry::Occupied(mut count) = self.intervals.entry(group.kind.batch_interval) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        let stream = &mut self.streams[group.channel];
        stream.ticking -= usize::from(group.is_ticking());
        let class = &mut stream.classes[group.class];
        class.groups.retain(|other| *other != index);
        if class.groups.is_empty() && group.class != ALL {
            stream.remove_class(group.class);
        }
        let groups = &self.groups;
        let is_valid = |at, index| groups.contains(index) && groups[index].tick == Some(at);
        self.ticks.tidy(groups.len(), is_valid);
    }
}

/// Returns how many searches through values of a payload a filter needs.
fn searches_of(filter: &Arc<dyn Filter>) -> usize {
    filter.payload().map_or(0, |filter| filter.searches())
}
