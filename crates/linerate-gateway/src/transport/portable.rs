//! Clients in the form in which one process hands them to another.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

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
        let since = connection.since.duration_since(SystemTime::UNIX_EPOCH);
        Self {
            client: connection.client().to_owned(),
            user: connection.user().to_owned(),
            protocol: connection.protocol.to_owned(),
            transport: connection.transport.to_owned(),
            peer: connection.peer,
            agent: connection.agent.to_string(),
            since: since.unwrap_or_default(),
        }
    }

    /// Returns the dialect that the client uses, if this process has it.
    pub(super) fn dialect(&self) -> Option<&'static Dialect> {
        let name = (&*self.protocol, &*self.transport);
        protocol::dialects().find(|dialect| dialect.name() == name)
    }

    /// Returns the description of a client of `worker` that uses `dialect`.
    pub(super) fn restore(self, worker: &Worker, dialect: &Dialect) -> Connection {
        let (protocol, transport) = dialect.name();
        let since = SystemTime::UNIX_EPOCH.checked_add(self.since);
        Connection {
            who: Arc::new(ClientInfo {
                user: self.user.into(),
                client: self.client.into(),
                ..ClientInfo::default()
            }),
            protocol,
            transport,
            peer: self.peer,
            agent: worker.agent(&self.agent),
            since: since.unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }
}
