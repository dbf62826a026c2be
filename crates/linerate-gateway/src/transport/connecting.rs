//! How the request that opens a session connects a client that sends commands.

use std::sync::Arc;

use super::Admitted;
use crate::{
    node::Connection,
    protocol::{
        Dialect,
        codes::{Disconnect, Refusal},
        command::Connect,
        dialect::{DialectName, Opening},
    },
    session::{Authenticated, Visitor},
};

/// A client whose request opens a session.
pub(super) struct Connecting {
    /// The description of the client for the node.
    pub(super) connection: Arc<Connection>,
    pub(super) stage: ConnectingStage,
}

/// How the request connects the client.
pub(super) enum ConnectingStage {
    /// It does not: the client sends a command.
    Later,
    /// It stands for this command, or the client is disconnected for this reason.
    Now(Result<Connect, Disconnect>),
    /// It has authenticated this client.
    Authenticated(Box<Authenticated>),
}

impl Connecting {
    /// Describes a client that sends a command to connect.
    pub(super) fn later(admitted: &Admitted, dialect: &'static Dialect) -> Self {
        Self {
            connection: admitted.connection(dialect, &dialect.name),
            stage: ConnectingStage::Later,
        }
    }

    /// Reads a request of a client that uses the transport with this name. If the dialect does not
    /// admit everyone, authenticates the client.
    ///
    /// # Errors
    /// The client is to be refused before it has a session.
    pub(super) async fn of(
        admitted: &Admitted,
        (dialect, name): (&'static Dialect, &'static DialectName),
        opening: &Opening<'_>,
    ) -> Result<Self, Refusal> {
        let connection = admitted.connection(dialect, name);
        let Some(request) = dialect.connects() else {
            let stage = ConnectingStage::Later;
            return Ok(Self { connection, stage });
        };
        let connect = (request.read)(opening, &admitted.settings.config);
        if request.admits {
            let stage = ConnectingStage::Now(connect);
            return Ok(Self { connection, stage });
        }
        let connect = connect.map_err(Refusal::Disconnect)?;
        let visitor = Visitor {
            gate: &admitted.endpoints.gate(dialect),
            connection: &connection,
            headers: admitted.headers.as_deref(),
        };
        let client = visitor.authenticate(&connect).await?;
        let client = Authenticated {
            connect,
            admitted: client,
        };
        let stage = ConnectingStage::Authenticated(Box::new(client));
        Ok(Self { connection, stage })
    }
}
