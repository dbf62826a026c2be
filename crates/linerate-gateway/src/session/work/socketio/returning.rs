//! Clients that return to their sessions.

use std::sync::Arc;

use linerate_hub::{ChannelName, ClientId};
use serde::Deserialize;

use super::{Context, PrivateId, Rooms, Wanted};
use crate::{
    auth::SubscriptionClaims,
    backend::Admitted,
    node::client_with_id,
    protocol::{
        codes::Disconnect,
        command::{Connect, Subscribe},
        event_offset::EventOffset,
    },
    session::{
        Authenticated, Identity, Refusal,
        journal::{DetachedSession, ReturnedRoom},
        work::{Candidate, ConnectedClient},
    },
};

/// What a client presents to return to its session.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Returning {
    pub(super) pid: PrivateId,
    /// The offset of the last event that it has received; `None` if it has received none.
    last: Option<EventOffset>,
}

/// The same as the client sends it.
#[derive(Deserialize)]
struct Presented {
    pid: String,
    offset: Option<String>,
}

/// A session that was found, with the rooms that the client returns to.
struct Found {
    wanted: Vec<Wanted>,
    rooms: Vec<ReturnedRoom>,
}

impl Returning {
    /// Reads the data with which a client connects. Returns `None` if it has no session to return
    /// to.
    pub(in crate::session) fn read(auth: &[u8]) -> Option<Self> {
        let presented: Presented = serde_json::from_slice(auth).ok()?;
        let last = match presented.offset {
            // A text that is not an offset can be of an event of another server.
            Some(offset) => Some(EventOffset::parse(&offset)?),
            None => None,
        };
        Some(Self {
            pid: PrivateId::parse(&presented.pid)?,
            last,
        })
    }
}

impl Context {
    /// Connects a client to its first namespace: to the session that it returns to, if everything
    /// that it has missed can be delivered, otherwise to a new one.
    pub(in crate::session) async fn connect_or_return(
        self,
        connect: Connect,
        returning: Option<Returning>,
    ) -> Result<(ConnectedClient, Option<PrivateId>), Refusal> {
        let admitted = self.visitor().authenticate(&connect).await?;
        if let Some(returning) = returning {
            let returned = self.return_to_session(&connect, admitted.as_ref(), &returning);
            if let Some(client) = returned.await? {
                return Ok((client, Some(returning.pid)));
            }
        }
        let client = self.connect_as(Authenticated { connect, admitted }).await?;
        Ok((client, None))
    }

    /// Connects a client that returns to its session. Returns `None` if it begins a new one.
    async fn return_to_session(
        &self,
        connect: &Connect,
        admitted: Option<&Admitted>,
        returning: &Returning,
    ) -> Result<Option<ConnectedClient>, Refusal> {
        let claims = admitted.map(|admitted| &admitted.claims);
        let user = claims.map_or("", |claims| &claims.user);
        let namespace = connect.namespace.as_deref().unwrap_or_default();
        let Some(session) = self.find_session(returning, user, namespace).await else {
            return Ok(None);
        };
        let mut context = self.clone();
        let connection = Arc::make_mut(&mut context.connection);
        connection.who = client_with_id(session.client.clone());
        let granted = claims.into_iter().flat_map(|claims| &claims.subscriptions);
        let granted = context.of_namespace(connect, granted.cloned());
        let Some(found) = Found::of(session, &granted, returning) else {
            return Ok(None);
        };
        let identity = Arc::new(Identity::new(&context.connection.who, claims));
        let member = context.join_unrevoked(&identity)?;
        let Some(prepared) = context
            .prepare_return(&identity, member.id(), &found)
            .await?
        else {
            return Ok(None);
        };
        context.gate.worker.tell_connected(member.id());
        Ok(Some(ConnectedClient {
            standings: context.finish_return(prepared, found)?,
            connection: context.connection,
            identity,
            member,
            data: admitted.and_then(|admitted| admitted.data.clone()),
        }))
    }

    /// Makes the subscriptions of a client that returns to a further namespace. Returns `None` if
    /// it begins a new session there.
    pub(super) async fn return_to_namespace(
        &self,
        (identity, id): (&Identity, ClientId),
        (namespace, granted): (&str, &[(ChannelName, SubscriptionClaims)]),
        returning: &Returning,
        channels_left: usize,
    ) -> Result<Option<Rooms>, Refusal> {
        let session = self.find_session(returning, identity.user(), namespace);
        // All namespaces of a connection have the same ID.
        let is_same = |session: &DetachedSession| *session.client == *identity.who.client;
        let session = session.await.filter(is_same);
        let found = session.and_then(|session| Found::of(session, granted, returning));
        let Some(found) = found.filter(|found| found.rooms.len() <= channels_left) else {
            return Ok(None);
        };
        let Some(prepared) = self.prepare_return(identity, id, &found).await? else {
            return Ok(None);
        };
        let channels: Vec<_> = prepared
            .iter()
            .map(|(channel, _)| channel.clone())
            .collect();
        let entered = self.finish_return(prepared, found);
        if entered.is_err() {
            self.leave_all(id, &channels);
        }
        entered.map(Some)
    }

    /// Takes the session of a client from where it is stored, so that no other connection can
    /// return to it.
    async fn find_session(
        &self,
        returning: &Returning,
        user: &str,
        namespace: &str,
    ) -> Option<DetachedSession> {
        self.outlet.journal()?;
        let (pid, detached) = (&returning.pid, &self.gate.worker.node().detached);
        let state = pid.open(&detached.take(*pid, user).await?)?;
        let session: DetachedSession = serde_json::from_slice(&state).ok()?;
        let is_own = session.user == user && session.namespace == namespace;
        is_own.then_some(session)
    }

    /// Prepares the subscriptions of a client that returns. Returns `None` if something that it has
    /// missed cannot be delivered.
    async fn prepare_return(
        &self,
        identity: &Identity,
        id: ClientId,
        found: &Found,
    ) -> Result<Option<Vec<(ChannelName, Candidate)>>, Refusal> {
        let prepared = self.prepare_all(identity, id, found.wanted.clone()).await?;
        let is_exact = |candidate: &Candidate| candidate.is_replayable && candidate.recovers();
        let are_exact = prepared.iter().all(|(_, candidate)| is_exact(candidate));
        Ok(are_exact.then_some(prepared))
    }

    /// Activates the subscriptions of a client that returns.
    fn finish_return(
        &self,
        prepared: Vec<(ChannelName, Candidate)>,
        found: Found,
    ) -> Result<Rooms, Refusal> {
        let rooms = self.finish_all(prepared)?;
        let is_recovered = |(_, room): &(_, super::ActiveSubscription)| {
            let recovery = room.subscribed.recovery.as_ref();
            recovery.is_some_and(|recovery| recovery.is_recovered)
        };
        if !rooms.iter().all(is_recovered) {
            // A source has just reported a gap. The client must not take part of it for all.
            return Err(Refusal::Disconnect(Disconnect::INSUFFICIENT_STATE));
        }
        for room in found.rooms {
            if let (Some(journal), Some(joined)) = (self.outlet.journal(), room.joined) {
                journal.set_joined(&room.channel, joined);
            }
        }
        Ok(rooms)
    }
}

impl Found {
    /// Returns what a client returns to; `None` if it is not granted the rooms that it was in, or
    /// others as well, or if it cannot be told what it has received.
    fn of(
        session: DetachedSession,
        granted: &[(ChannelName, SubscriptionClaims)],
        returning: &Returning,
    ) -> Option<Self> {
        let rooms = session.journal.rooms_after(returning.last)?;
        let is_room = |channel: &ChannelName| rooms.iter().any(|room| room.channel == *channel);
        if !granted.iter().all(|(channel, _)| is_room(channel)) {
            return None;
        }
        let wanted = rooms.iter().map(|room| {
            let granted = granted.iter().find(|(channel, _)| *channel == room.channel);
            let claims = match (granted, &room.joined) {
                (Some((_, claims)), _) => claims.clone(),
                (None, Some(joined)) => SubscriptionClaims {
                    info: joined.clone().into_info(),
                    ..SubscriptionClaims::default()
                },
                (None, None) => return None,
            };
            let subscribe = Subscribe {
                recover: Some(room.position.clone()),
                ..Subscribe::default()
            };
            Some((room.channel.clone(), subscribe, Some(claims)))
        });
        Some(Self {
            wanted: wanted.collect::<Option<_>>()?,
            rooms,
        })
    }
}
