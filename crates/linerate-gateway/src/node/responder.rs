//! Answers requests to this node, from itself and from other nodes.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use linerate_broker::{Event, Gap, GapReason, Ingest};
use linerate_hub::ChannelName;

use super::{
    Notice,
    cluster::message::{Answer, ConnectionSelector, NodeRequest},
    dispatch::Dispatcher,
    emulation::Emulations,
    inboxes::Inboxes,
    namespaces::NamespaceTable,
    polling::PolledSessions,
    shard::Shard,
    source_gaps::SourceGaps,
};
use crate::protocol::codes::{Disconnect, Unsubscribe};
use crate::{channel_pattern::matches, clock::now};

/// The maximum number of channels in one part of an answer, so that messages between nodes stay
/// small.
const PART_LEN: usize = 1_000;

/// Answers requests on behalf of this node.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) emulations: Emulations,
    pub(super) inboxes: Inboxes,
    pub(super) namespaces: Arc<NamespaceTable>,
    pub(super) polled: PolledSessions,
    pub(super) source_gaps: Arc<SourceGaps>,
}

impl Responder {
    /// Answers a request for this node, in parts.
    pub(crate) async fn answer(&self, ask: NodeRequest) -> Vec<Answer> {
        match ask {
            NodeRequest::Channels { pattern } => self.answer_channels(pattern).await,
            NodeRequest::Emulate { session, data } => {
                let data = BASE64_STANDARD.decode(data).unwrap_or_default();
                let is_taken = self.emulations.deliver(&session, data.into()).is_ok();
                vec![Answer::Count(u64::from(is_taken))]
            }
            NodeRequest::Fetch { session, hold_ms } => {
                let hold = hold_ms.map(Duration::from_millis);
                vec![self.polled.answer_fetch(&session, hold).await]
            }
            NodeRequest::Messages { session, data } => {
                vec![self.polled.answer_messages(&session, &data).await]
            }
            NodeRequest::Gap { patterns } => vec![Answer::Count(self.tell_gap(patterns).await)],
            _ => vec![Answer::Count(self.notify_all(ask).await)],
        }
    }

    /// Returns whether a request waits for a session of this node whose client polls. Sessions
    /// limit the number of such requests.
    pub(super) fn waits_for_session(&self, ask: &NodeRequest) -> bool {
        let session = ask.polled_session();
        session.is_some_and(|session| self.polled.named(session).is_ok())
    }

    async fn answer_channels(&self, pattern: String) -> Vec<Answer> {
        let mut channels = HashMap::new();
        for (channel, subscribers) in self.subscribers(pattern).await {
            *channels.entry(channel.to_string()).or_insert(0) += subscribers;
        }
        parts(channels.into_iter().collect(), Answer::Channels)
    }

    /// Returns the matching channels of this node, each with its number of subscribers on one
    /// worker. A channel with subscribers on several workers occurs several times.
    pub(crate) async fn subscribers(&self, pattern: String) -> Vec<(ChannelName, u64)> {
        let lists = self.inboxes.run(move |shard| shard.subscribers(&pattern));
        lists.await.into_iter().flatten().collect()
    }

    /// Tells the subscribers of the matching channels that publications may have been missed.
    /// Returns the number of channels.
    async fn tell_gap(&self, patterns: Vec<String>) -> u64 {
        let kept = self.namespaces.current().history_ttl_max();
        self.source_gaps.record(patterns.clone(), now(), kept);
        let mut channels = HashSet::new();
        for pattern in patterns {
            let matching = self.subscribers(pattern).await.into_iter();
            channels.extend(matching.map(|(channel, _)| channel));
        }
        let count = channels.len() as u64;
        if count > 0 {
            let gap = Gap {
                channels: Some(channels.into_iter().collect()),
                lasted: Duration::ZERO,
                reason: GapReason::Source,
            };
            self.dispatcher.ingest(vec![Event::Gap(gap)]).await;
        }
        count
    }

    /// Notifies the connections that a request is about. Returns how many.
    async fn notify_all(&self, ask: NodeRequest) -> u64 {
        let counts = self.inboxes.run(move |shard| shard.notify(&ask)).await;
        counts.into_iter().sum()
    }
}

impl Shard {
    /// Returns the matching channels, with their number of subscribers on this worker.
    fn subscribers(&self, pattern: &str) -> Vec<(ChannelName, u64)> {
        let channels = self.hub.channels();
        let matching = channels.filter(|(channel, _)| matches(pattern, channel.as_str()));
        let owned = |(channel, count): (&ChannelName, usize)| (channel.clone(), count as u64);
        matching.map(owned).collect()
    }

    /// Notifies the clients that a request is about. Returns how many.
    fn notify(&self, ask: &NodeRequest) -> u64 {
        let mut notified = 0;
        for client in self.clients.values() {
            let Some(whom) = ask.whom() else {
                return 0;
            };
            let connection = &client.connection;
            if !whom.matches(connection.user(), connection.client()) {
                continue;
            }
            let notices = ask.notices(client.channels.keys());
            notified += u64::from(!notices.is_empty());
            for notice in notices {
                client.outlet.notify(notice);
            }
        }
        notified
    }
}

impl NodeRequest {
    fn whom(&self) -> Option<&ConnectionSelector> {
        match self {
            Self::Disconnect { whom, .. }
            | Self::Refresh { whom, .. }
            | Self::Subscribe { whom, .. }
            | Self::Unsubscribe { whom, .. } => Some(whom),
            Self::Channels { .. }
            | Self::Emulate { .. }
            | Self::Fetch { .. }
            | Self::Gap { .. }
            | Self::Messages { .. } => None,
        }
    }

    /// Returns the notices for a connection that is subscribed to `channels`.
    fn notices<'a>(&self, channels: impl Iterator<Item = &'a ChannelName>) -> Vec<Notice> {
        match self {
            Self::Disconnect { code, reason, .. } => vec![Notice::Disconnect(Disconnect {
                code: *code,
                reason: reason.clone().into(),
            })],
            Self::Refresh {
                expires_s,
                is_expired,
                ..
            } => vec![Notice::Refresh {
                expires: expires_s.and_then(since_1970),
                is_expired: *is_expired,
            }],
            Self::Subscribe { channel, info, .. } => match ChannelName::new(channel) {
                Ok(channel) => vec![Notice::Subscribe {
                    channel,
                    info: info.clone().map(Bytes::from),
                }],
                Err(_) => Vec::new(),
            },
            Self::Unsubscribe {
                channel: which,
                code,
                reason,
                ..
            } => channels
                .filter(|channel| which.is_empty() || channel.as_str() == which)
                .map(|channel| Notice::Unsubscribe {
                    channel: channel.clone(),
                    why: Unsubscribe {
                        code: *code,
                        reason: reason.clone().into(),
                    },
                })
                .collect(),
            Self::Channels { .. }
            | Self::Emulate { .. }
            | Self::Fetch { .. }
            | Self::Gap { .. }
            | Self::Messages { .. } => Vec::new(),
        }
    }
}

/// Returns a time in seconds since the Unix epoch; `None` if the system clock cannot represent it.
fn since_1970(seconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Splits an answer into parts. An empty answer has one part.
fn parts<T>(items: Vec<T>, answer: impl Fn(Vec<T>) -> Answer) -> Vec<Answer> {
    let (mut items, mut parts) = (items.into_iter(), Vec::new());
    loop {
        let part: Vec<_> = items.by_ref().take(PART_LEN).collect();
        if part.is_empty() && !parts.is_empty() {
            return parts;
        }
        parts.push(answer(part));
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, PART_LEN, parts};

    #[test]
    fn long_answers_come_in_parts() {
        let channels = |count: usize| vec![Default::default(); count];
        assert_eq!(parts(channels(0), Answer::Channels).len(), 1);
        assert_eq!(parts(channels(PART_LEN), Answer::Channels).len(), 1);
        assert_eq!(parts(channels(PART_LEN + 1), Answer::Channels).len(), 2);
    }
}
