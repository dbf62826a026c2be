//! Requests that concern all nodes, and how their answers are combined.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use linerate_broker::BrokerError;
use linerate_hub::{ChannelName, ClientInfo, presence::Counts};

use super::{
    cluster::{
        Cluster,
        message::{Answer, ConnectionSelector, NodeRequest},
    },
    emulation::EmulateError,
    namespaces::NamespaceTable,
    presence::Presence,
    responder::Responder,
};
use crate::protocol::codes::{Disconnect, Unsubscribe};

/// Asks all nodes.
#[derive(Debug)]
pub(crate) struct AllNodes {
    pub(super) cluster: Arc<Cluster>,
    pub(super) namespaces: Arc<NamespaceTable>,
    pub(super) presence: Arc<Presence>,
    pub(super) responder: Arc<Responder>,
}

impl AllNodes {
    /// Returns the clients present in a channel, on all nodes.
    ///
    /// # Errors
    /// The answer would exceed the channel's `presence_bytes_max`, or the broker is unavailable.
    pub(crate) async fn presence(
        &self,
        channel: &ChannelName,
    ) -> Result<Vec<ClientInfo>, BrokerError> {
        let namespaces = self.namespaces.current();
        let bytes_max = namespaces.options(channel).presence_bytes_max;
        self.presence.clients(channel, bytes_max).await
    }

    /// Returns how many clients and users are present in a channel, on all nodes.
    ///
    /// # Errors
    /// The broker is unavailable.
    pub(crate) async fn presence_stats(
        &self,
        channel: &ChannelName,
    ) -> Result<Counts, BrokerError> {
        self.presence.counts(channel).await
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

    /// Tells the subscribers of all channels that match one of `patterns` that publications may
    /// have been missed. `*` stands for any text. Returns the number of such channels, each counted
    /// once per node.
    pub(crate) async fn report_gap(&self, patterns: Vec<String>) -> u64 {
        self.count(NodeRequest::Gap { patterns }).await
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
        if !self.cluster.finds(node).await {
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
