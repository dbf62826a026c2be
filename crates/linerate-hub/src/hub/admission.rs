//! Decides whether a client may subscribe.

use std::{collections::HashSet, sync::Arc, time::Duration};

use crate::{
    ChannelName, ClientId, EncodingId, Filter, HubOptions, SubscriptionOptions,
    hub::{channels::Channels, freeze::Freezer, members::Members},
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

/// What the limits on subscriptions depend on.
pub(crate) struct Admission<'h, B> {
    pub(crate) options: &'h HubOptions<B>,
    pub(crate) channels: &'h Channels<B>,
    pub(crate) members: &'h Members,
    pub(crate) freezer: &'h Freezer<B>,
}

impl<B> Admission<'_, B> {
    /// Checks a subscription, and returns the index of its client.
    pub(crate) fn check(
        &self,
        client: ClientId,
        channel: &ChannelName,
        options: &SubscriptionOptions,
    ) -> Result<u32, SubscribeError> {
        let index = self.members.find(client);
        let index = index.ok_or(SubscribeError::UnknownClient)?;
        let known = self
            .members
            .find_subscription(self.channels, index, channel);
        if known.is_some() {
            return Err(SubscribeError::AlreadySubscribed);
        }
        let subscriptions = self.members.clients[index].subscriptions.len();
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
        let stream = self.channels.find(channel.as_str());
        let stream = stream.map(|index| &self.channels.streams[index]);
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
        let subscriptions = self.members.clients[client].subscriptions.iter();
        let filters = subscriptions.filter_map(|index| {
            let group = &self.channels.groups[self.members.subscriptions[*index].group];
            self.channels.streams[group.channel].classes[group.class].filter()
        });
        filters.map(|filter| filter.expression()).collect()
    }
}

/// Returns how many searches through values of a payload a filter needs.
fn searches_of(filter: &Arc<dyn Filter>) -> usize {
    filter.payload().map_or(0, |filter| filter.searches())
}
