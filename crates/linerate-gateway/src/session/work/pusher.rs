//! Asynchronous operations of the sessions of Pusher clients.

use std::sync::Arc;

use linerate_broker::{HistoryRequest, StreamOptions};
use linerate_hub::{ChannelName, ClientId, ClientInfo, Publication};

use super::{Candidate, Context, of_broker};
use crate::{
    auth::SubscriptionClaims,
    config::{PusherAccess, PusherKind},
    node::StartPosition,
    protocol::{codes::ClientError, command, pusher},
    session::{Gate, Identity, Refusal},
};

/// The result of an operation.
#[derive(Debug)]
pub(crate) enum PusherCompletion {
    Published(Result<(), Refusal>),
    Subscribed(ChannelName, Result<Box<PusherCandidate>, Refusal>),
}

/// A subscription that can become active.
#[derive(Debug)]
pub(crate) struct PusherCandidate {
    pub(in crate::session) candidate: Candidate,
    pub(in crate::session) who: Arc<ClientInfo>,
    /// The clients in a presence channel.
    pub(in crate::session) clients: Option<Vec<ClientInfo>>,
    /// The last event of a cache channel, if there is one.
    pub(in crate::session) last: Option<Option<Publication>>,
}

impl Gate {
    /// Refuses a client of Pusher if this node has too many, including the new one.
    pub(super) fn check_app(&self) -> Result<(), Refusal> {
        if !self.dialect.admits() {
            return Ok(());
        }
        let settings = self.shared.settings();
        let connections_max = settings.config.pusher.connections_max as u64;
        let connections = self.worker.node().counts.clients_of(self.dialect.name);
        match connections > connections_max {
            true => Err(Refusal::Disconnect(pusher::CONNECTIONS)),
            false => Ok(()),
        }
    }
}

impl Context {
    /// Prepares a subscription, and reads what the client is told about the channel.
    pub(in crate::session) async fn prepare_pusher(
        &self,
        id: ClientId,
        channel: ChannelName,
        (kind, who): (PusherKind, Arc<ClientInfo>),
    ) -> Result<PusherCandidate, Refusal> {
        let identity = Identity {
            who: who.clone(),
            credentials: None,
        };
        let (candidate, stream) = self.candidate(&identity, id, &channel, kind).await?;
        let clients = match kind.access {
            PusherAccess::Presence => {
                // Before the list is read, so that no client is missed that joins later.
                self.gate.worker.follow(id, &channel);
                let clients = self.gate.worker.node().all_nodes.presence(&channel).await;
                Some(clients.map_err(of_broker)?)
            }
            _ => None,
        };
        let last = match kind.is_cached {
            true => Some(self.last(&channel, stream).await?),
            false => None,
        };
        Ok(PusherCandidate {
            candidate,
            who,
            clients,
            last,
        })
    }

    async fn candidate(
        &self,
        identity: &Identity,
        id: ClientId,
        channel: &ChannelName,
        kind: PusherKind,
    ) -> Result<(Candidate, StreamOptions), Refusal> {
        let settings = self.gate.shared.settings_full();
        let wanted = command::Subscribe {
            channel: channel.to_string(),
            with_join_leave: kind.access == PusherAccess::Presence,
            ..command::Subscribe::default()
        };
        // A signature has already granted what is guarded.
        let claims = match kind.is_guarded() {
            true => Some(SubscriptionClaims::default()),
            false => {
                let visitor = self.visitor();
                visitor
                    .judge_subscription(identity, channel, &wanted)
                    .await?
            }
        };
        let mut plan = self.gate.plan(
            &settings,
            identity,
            channel.clone(),
            &wanted,
            claims.as_ref(),
        )?;
        plan.subscribe.from = match kind.is_cached {
            true => StartPosition::Newest,
            false => StartPosition::Live,
        };
        let stream = plan.subscribe.stream;
        let candidate = self.prepare_plan(identity, id, plan, claims).await?;
        Ok((candidate, stream))
    }

    /// Returns the last event of a channel.
    async fn last(
        &self,
        channel: &ChannelName,
        stream: StreamOptions,
    ) -> Result<Option<Publication>, ClientError> {
        let request = HistoryRequest {
            since: None,
            limit: Some(1),
            is_reverse: true,
        };
        let histories = &self.gate.worker.node().histories;
        let history = histories.read(channel, stream, request).await;
        let history = history.map_err(of_broker)?;
        Ok(history.publications.into_iter().next())
    }
}
