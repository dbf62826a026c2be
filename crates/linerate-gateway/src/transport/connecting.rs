//! How the request for a WebSocket connects a client that sends commands.

use std::sync::Arc;

use super::Admitted;
use crate::{
    node::Connection,
    protocol::{
        Dialect,
        codes::{Disconnect, Refusal},
        command::Connect,
        dialect::Opening,
    },
    session::{Authenticated, Visitor},
};

/// How the request for a connection connects the client.
pub(super) enum Connecting {
    /// It does not: the client sends a command.
    Later,
    /// It stands for this command, or the client is disconnected for this reason.
    Now(Result<Connect, Disconnect>),
    /// It has authenticated this client.
    Authenticated(Arc<Connection>, Box<Authenticated>),
}

impl Connecting {
    /// Reads a request. If the dialect does not admit everyone, authenticates the client.
    ///
    /// # Errors
    /// The client is to be refused with an HTTP status.
    pub(super) async fn of(
        admitted: &Admitted,
        dialect: &'static Dialect,
        opening: &Opening<'_>,
    ) -> Result<Self, Refusal> {
        let Some(request) = dialect.connects() else {
            return Ok(Self::Later);
        };
        let connect = (request.read)(opening, &admitted.settings.config);
        if request.admits {
            return Ok(Self::Now(connect));
        }
        let connect = connect.map_err(Refusal::Disconnect)?;
        let connection = admitted.connection(dialect);
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
        Ok(Self::Authenticated(connection, Box::new(client)))
    }
}
