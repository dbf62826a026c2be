//! Clients in the form in which one process hands them to another.

use std::{net::IpAddr, sync::Arc, time::Duration};

use linerate_hub::ClientInfo;
use serde::{Deserialize, Serialize};

use crate::{
    node::{Connection, Worker},
    protocol::{self, Dialect},
    session::PortableSession,
};

/// A client: what is known of its connection, and its session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct PortableClient {
    pub(super) connection: PortableConnection,
    /// True if the client is told of gaps, where that is its choice.
    pub(super) wants_gaps: bool,
    pub(super) session: PortableSession,
}

impl PortableClient {
    /// Returns the address of the client.
    pub(crate) const fn address(&self) -> Option<IpAddr> {
        self.connection.peer
    }
}

/// The description of a connection.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct PortableConnection {
    client: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    user: String,
    protocol: String,
    transport: String,
    peer: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    agent: String,
    /// The time since 1970 when the connection was opened.
    since: Duration,
}

impl PortableConnection {
    pub(super) fn of(connection: &Connection) -> Self {
        let (protocol, transport) = connection.dialect;
        Self {
            client: connection.client().to_owned(),
            user: connection.user().to_owned(),
            protocol: (*protocol).to_owned(),
            transport: (*transport).to_owned(),
            peer: connection.peer,
            agent: connection.agent.to_string(),
            since: Duration::from_millis(connection.since_ms),
        }
    }

    /// Returns the dialect that the client uses, if this process has it.
    pub(super) fn dialect(&self) -> Option<&'static Dialect> {
        let name = (&*self.protocol, &*self.transport);
        protocol::dialects().find(|dialect| dialect.name == name)
    }

    /// Returns the description of a client of `worker` that uses `dialect`.
    pub(super) fn restore(self, worker: &Worker, dialect: &'static Dialect) -> Connection {
        Connection {
            who: Arc::new(ClientInfo {
                user: self.user.into(),
                client: self.client.into(),
                ..ClientInfo::default()
            }),
            dialect: &dialect.name,
            peer: self.peer,
            agent: worker.agent(&self.agent),
            since_ms: self.since.as_millis().try_into().unwrap_or_default(),
        }
    }
}
