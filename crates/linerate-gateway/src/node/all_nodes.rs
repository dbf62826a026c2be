//! Requests to all nodes, including this one, and how their answers are combined.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::SystemTime,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use linerate_hub::{ChannelName, ClientInfo};

use super::{
    cluster::{
        Cluster,
        message::{Answer, ConnectionSelector, NodeRequest},
    },
    emulation::EmulateError,
    namespaces::NamespaceTable,
    presence::weight,
    responder::Responder,
};
use crate::protocol::codes::{Disconnect, Unsubscribe};

/// Asks all nodes.
#[derive(Debug)]
pub(crate) struct AllNodes {
    pub(super) cluster: Arc<Cluster>,
    pub(super) namespaces: Arc<NamespaceTable>,
    pub(super) responder: Arc<Responder>,
}

/// The presence information of a channel does not fit into an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "limit exceeded: presence information is larger than {bytes_max} bytes (presence_bytes_max); use presence_stats for the counts"
)]
pub(crate) struct PresenceTooLarge {
    /// The maximum number of bytes.
    pub bytes_max: usize,
}

/// The number of clients present in a channel, in the whole cluster.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct PresenceStats {
    /// The number of connections.
    pub clients: u64,
    /// The number of distinct users.
    pub users: u64,
}

impl AllNodes {
    /// Returns the clients present in a channel, on all nodes.
    ///
    /// # Errors
    /// The answer would exceed the channel's `presence_bytes_max`.
    pub(crate) async fn presence(
        &self,
        channel: &ChannelName,
    ) -> Result<Vec<ClientInfo>, PresenceTooLarge> {
        let bytes_max = self
            .namespaces
            .current()
            .options(channel)
            .presence_bytes_max;
        let ask = NodeRequest::Presence {
            channel: channel.to_string(),
            bytes_max,
        };
        let (mut people, mut bytes_left) = (Vec::new(), bytes_max);
        for answer in self.survey(ask).await {
            let part = match answer {
                Answer::Presence(part) => part,
                Answer::PresenceTooLarge => return Err(PresenceTooLarge { bytes_max }),
                _ => continue,
            };
            for info in part.into_iter().map(ClientInfo::from) {
                let left = bytes_left.checked_sub(weight(&info));
                bytes_left = left.ok_or(PresenceTooLarge { bytes_max })?;
                people.push(info);
            }
        }
        Ok(people)
    }

    /// Returns how many clients and users are present in a channel, on all nodes.
    pub(crate) async fn presence_stats(&self, channel: &ChannelName) -> PresenceStats {
        let channel = channel.to_string();
        let (mut stats, mut hashes) = (PresenceStats::default(), HashSet::new());
        for answer in self.survey(NodeRequest::PresenceStats { channel }).await {
            if let Answer::PresenceStats { clients, users } = answer {
                stats.clients += clients;
                hashes.extend(users);
            }
        }
        stats.users = hashes.len() as u64;
        stats
    }

    /// Returns the channels with subscribers on any node, sorted by name, with their number of
    /// subscribers. `*` in `pattern` matches any text; an empty pattern matches all channels.
    pub(crate) async fn channels(&self, pattern: &str) -> Vec<(String, u64)> {
        let pattern = pattern.to_owned();
        let mut channels = HashMap::new();
        for answer in self.survey(NodeRequest::Channels { pattern }).await {
            if let Answer::Channels(part) = answer {
                for (channel, subscribers) in part {
                    *channels.entry(channel).or_insert(0) += subscribers;
                }
            }
        }
        let mut channels: Vec<_> = channels.into_iter().collect();
        channels.sort_unstable();
        channels
    }

    /// Closes connections on all nodes. Returns how many.
    pub(crate) async fn disconnect(&self, whom: ConnectionSelector, why: Disconnect) -> u64 {
        let (code, reason) = (why.code, why.reason.into_owned());
        self.count(NodeRequest::Disconnect { whom, code, reason })
            .await
    }

    /// Ends subscriptions on all nodes, to all channels if `channel` is `None`. Returns the number
    /// of affected connections.
    pub(crate) async fn unsubscribe(
        &self,
        whom: ConnectionSelector,
        channel: Option<&ChannelName>,
        why: Unsubscribe,
    ) -> u64 {
        let ask = NodeRequest::Unsubscribe {
            whom,
            channel: channel.map_or(String::new(), ToString::to_string),
            code: why.code,
            reason: why.reason.into_owned(),
        };
        self.count(ask).await
    }

    /// Subscribes connections on all nodes. Returns how many.
    pub(crate) async fn subscribe(
        &self,
        whom: ConnectionSelector,
        channel: &ChannelName,
        info: Option<String>,
    ) -> u64 {
        let channel = channel.to_string();
        let ask = NodeRequest::Subscribe {
            whom,
            channel,
            info,
        };
        self.count(ask).await
    }

    /// Changes the expiry of connections on all nodes. Returns how many.
    pub(crate) async fn refresh(
        &self,
        whom: ConnectionSelector,
        expires: Option<SystemTime>,
        is_expired: bool,
    ) -> u64 {
        let since = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH);
        let expires_s = expires.map(|at| since(at).map_or(0, |since| since.as_secs()));
        let ask = NodeRequest::Refresh {
            whom,
            expires_s,
            is_expired,
        };
        self.count(ask).await
    }

    async fn count(&self, ask: NodeRequest) -> u64 {
        let count = |answer| match answer {
            Answer::Count(count) => count,
            _ => 0,
        };
        self.survey(ask).await.into_iter().map(count).sum()
    }

    /// Delivers a body of commands to a session on any node. Completes when the session's node has
    /// accepted it.
    ///
    /// # Errors
    /// The session does not exist, or it has too many queued commands.
    pub(crate) async fn emulate(
        &self,
        node: &str,
        session: &str,
        data: Bytes,
    ) -> Result<(), EmulateError> {
        if node == self.cluster.this_id() {
            return self.responder.emulations.deliver(session, data);
        }
        if !self.cluster.knows(node) {
            return Err(EmulateError::Unknown);
        }
        let ask = NodeRequest::Emulate {
            session: session.to_owned(),
            data: BASE64_STANDARD.encode(data),
        };
        match self.cluster.ask_one(node, ask).await {
            Some(Answer::Count(1)) => Ok(()),
            _ => Err(EmulateError::Unknown),
        }
    }

    /// Asks all nodes. Returns the answers that arrived in time.
    async fn survey(&self, ask: NodeRequest) -> Vec<Answer> {
        let (mut answers, theirs) = tokio::join!(
            self.responder.answer(ask.clone()),
            self.cluster.ask_others(ask)
        );
        answers.extend(theirs);
        answers
    }
}
