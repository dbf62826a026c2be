//! Checks subscription requests and decides how to serve them.

use std::{sync::Arc, time::Duration};

use linerate_hub::{ChannelName, Conflate, Filter, JsonPointer, SlowPolicy, SubscriptionOptions};

use super::{Identity, Settings, scope, tags};
use crate::{
    auth::SubscriptionClaims,
    config::{self, ChannelOptions, Conflation, Gaps, RecoveryMode},
    node::{self, Node, Recovery},
    protocol::{self, Dialect, codes::ClientError, command::Subscribe},
};

/// The client that asks, and the dialect that it uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) node: &'a Arc<Node>,
    pub(crate) identity: &'a Identity,
    pub(crate) dialect: &'static Dialect,
}

/// How a subscription will be served.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) subscribe: node::Subscribe,
    pub(crate) is_recoverable: bool,
    /// True if the client is told its position in the stream.
    pub(crate) is_positioned: bool,
    /// True if any node can deliver later what the client misses, as the client would have got it.
    pub(crate) is_replayable: bool,
    /// The information about the subscriber that others in the channel see.
    pub(crate) info: Option<bytes::Bytes>,
}

impl Requester<'_> {
    /// Checks a request and returns how to serve it. `claims` are those of the client's token for
    /// the channel, if it presented one.
    ///
    /// # Errors
    /// The subscription is not allowed, or an option of the request is invalid.
    pub(crate) fn plan(
        &self,
        channel: ChannelName,
        wanted: &Subscribe,
        claims: Option<&SubscriptionClaims>,
    ) -> Result<Plan, ClientError> {
        let options = self.settings.channel(&channel);
        self.check_allowed(&channel, options, claims.is_some())?;
        let overrides = claims.map(|claims| claims.overrides).unwrap_or_default();
        let has_stream = options.history_size > 0;
        let has_positions = self.dialect.has_positions();
        let is_recoverable = has_stream && overrides.recover.unwrap_or(options.recover);
        let is_pattern = self.node.broker.is_pattern(&channel);
        let scope =
            is_pattern.then(|| scope::of_pattern(self.node, self.identity, claims.is_some()));
        let delivery = self.delivery(options, wanted)?;
        let wants_positions = is_recoverable
            || wanted.is_positioned
            || overrides.positioned.unwrap_or(options.positioned);
        // Conflated streams have intended gaps.
        let is_positioned =
            has_stream && wants_positions && delivery.conflate.is_none() && has_positions;
        let ends_with_gap = match self.dialect.reports_gaps() {
            // A client without commands cannot resubscribe.
            _ if !self.dialect.has_commands() => false,
            true => is_positioned,
            false => wants_positions || options.gaps == Gaps::Told,
        };
        let has_presence = overrides.presence.unwrap_or(options.presence);
        let has_join_leave = overrides.join_leave.unwrap_or(options.join_leave);
        let info = claims.and_then(|claims| claims.info.clone());
        let mut trail = node::Trail::default();
        let from = match &wanted.recover {
            Some(position) if is_recoverable => {
                let (since, named) = node::Trail::split(position);
                // Other channels have epochs of each node, which no other node has.
                if options.durable {
                    trail = named;
                }
                match options.recovery {
                    RecoveryMode::Cache => node::StartPosition::Cached(since),
                    RecoveryMode::Stream => node::StartPosition::After(since),
                }
            }
            _ if is_positioned || is_recoverable => node::StartPosition::Newest,
            _ => node::StartPosition::Live,
        };
        let is_replayable = is_recoverable
            && options.durable
            && options.recovery == RecoveryMode::Stream
            && delivery.conflate.is_none()
            && !is_pattern;
        let subscribe = node::Subscribe {
            stream: options.stream(),
            ring: options.ring(),
            options: SubscriptionOptions {
                positioned: ends_with_gap,
                scope,
                // The channels of a pattern may have different options and different readers.
                is_sequenced: options.compression_takeover && !is_pattern,
                with_deltas: self.with_deltas(options, wanted) && !is_pattern,
                with_channel_id: options.allow_channel_compaction
                    && wanted.with_channel_id
                    && self.dialect.has_compaction(),
                ..delivery
            },
            from,
            trail,
            recovery: self.recovery(options),
            presence: has_presence.then(|| self.identity.to_info(info.clone())),
            is_announced: has_presence && has_join_leave,
            follows: has_join_leave && wanted.with_join_leave,
            channel,
        };
        Ok(Plan {
            subscribe,
            is_recoverable,
            is_positioned,
            is_replayable,
            info,
        })
    }

    fn check_allowed(
        &self,
        channel: &ChannelName,
        options: &ChannelOptions,
        has_token: bool,
    ) -> Result<(), ClientError> {
        let is_open = options.allow_subscribe && options.is_open_to(self.identity.is_anonymous());
        if !has_token && !is_open {
            return Err(ClientError::PERMISSION_DENIED);
        }
        if self.node.broker.is_pattern(channel) && !options.allow_pattern {
            let message = "permission denied: patterns are not allowed here";
            return Err(ClientError::PERMISSION_DENIED.with_message(message.into()));
        }
        Ok(())
    }

    /// Returns whether a subscriber receives deltas. SDKs cannot combine them with a filter.
    fn with_deltas(&self, options: &ChannelOptions, wanted: &Subscribe) -> bool {
        let has_filter = wanted.filter.is_some() || wanted.tags_filter.is_some();
        let is_possible = wanted.with_deltas && self.dialect.has_deltas();
        options.allow_delta && is_possible && !has_filter
    }

    fn recovery(&self, options: &ChannelOptions) -> Recovery {
        let publications_max = options.history_size;
        match self.dialect.has_commands() && !self.dialect.reports_gaps() {
            true => Recovery::Reply { publications_max },
            false => Recovery::Stream { publications_max },
        }
    }

    fn delivery(
        &self,
        options: &ChannelOptions,
        wanted: &Subscribe,
    ) -> Result<SubscriptionOptions, ClientError> {
        Ok(SubscriptionOptions {
            filter: self.filter(options, wanted)?,
            batch_interval: batch_interval(options, wanted.batch_interval)?,
            batch_bytes_max: options.batch_bytes_max,
            conflate: conflate(options, wanted.conflate.as_deref())?,
            slow: match options.slow {
                config::SlowPolicy::Conflate => SlowPolicy::Conflate,
                config::SlowPolicy::Disconnect => SlowPolicy::Disconnect,
                config::SlowPolicy::DropOldest => SlowPolicy::DropOldest,
            },
            ..SubscriptionOptions::new(protocol::encoding_id(self.dialect))
        })
    }

    fn filter(
        &self,
        options: &ChannelOptions,
        wanted: &Subscribe,
    ) -> Result<Option<Arc<dyn Filter>>, ClientError> {
        if wanted.filter.is_none() && wanted.tags_filter.is_none() {
            return Ok(None);
        }
        if !options.allow_filter {
            return Err(not_allowed("filters"));
        }
        let (payload, tags) = (wanted.filter.as_deref(), wanted.tags_filter.as_ref());
        tags::of_parts(&self.settings.filters, payload, tags).map_err(|error| bad_request(&error))
    }
}

fn batch_interval(
    options: &ChannelOptions,
    wanted: Option<Duration>,
) -> Result<Duration, ClientError> {
    let Some(interval) = wanted else {
        return Ok(options.batch_interval);
    };
    if !options.allow_batch_override && interval != options.batch_interval {
        return Err(not_allowed("batch intervals"));
    }
    let interval_max = SubscriptionOptions::BATCH_INTERVAL_MAX;
    if interval > interval_max {
        let message = format!(
            "batch interval of {} ms exceeds the limit of {} ms",
            interval.as_millis(),
            interval_max.as_millis()
        );
        return Err(ClientError::BAD_REQUEST.with_message(message));
    }
    Ok(interval)
}

fn conflate(
    options: &ChannelOptions,
    wanted: Option<&str>,
) -> Result<Option<Conflate>, ClientError> {
    let wanted = match wanted {
        None => options.conflate.clone(),
        Some("") => None,
        Some(text) => {
            let parsed = Conflation::try_from(text.to_owned());
            Some(parsed.map_err(|error| bad_request(&error))?)
        }
    };
    if wanted != options.conflate && !options.allow_conflate_override {
        return Err(not_allowed("other conflation settings"));
    }
    match wanted {
        None => Ok(None),
        Some(Conflation::LatestPerKey(pointer)) => match JsonPointer::new(&pointer) {
            Ok(pointer) => Ok(Some(Conflate::LatestPerKey(pointer))),
            Err(error) => Err(bad_request(&error)),
        },
        Some(_) => Ok(Some(Conflate::Latest)),
    }
}

fn bad_request(error: &dyn std::error::Error) -> ClientError {
    ClientError::BAD_REQUEST.with_message(format!("bad request: {error}"))
}

fn not_allowed(what: &str) -> ClientError {
    let message = format!("permission denied: {what} are not allowed in this channel");
    ClientError::PERMISSION_DENIED.with_message(message)
}
