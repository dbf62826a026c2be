//! Continues clients of another process.

use std::sync::Arc;

use super::{
    super::{
        ClientOutlet, drive::SessionRuntime, portable::PortableClient, running::RunningSession,
    },
    LocalClients, MovedClient, Running,
    table::ConnectionOptions,
};
use crate::{
    clock::now,
    node::{Notice, Outlet},
    protocol::{
        codes::Disconnect,
        dialect::{GapNotice, SessionKind, Transport},
    },
    server::ConnectionGuard,
    session::{Context, FixedSession, RestoreError, Session},
};

impl LocalClients {
    /// Continues a client of another process. Nothing is read and nothing is published until this
    /// is complete for all clients. A client that cannot be continued is asked to connect again.
    pub(crate) async fn restore(self: &Arc<Self>, moved: MovedClient, guard: ConnectionGuard) {
        let MovedClient { client, connection } = moved;
        let Some(dialect) = client.connection.dialect() else {
            return tracing::warn!("client of an unknown protocol lost in a takeover");
        };
        if let Transport::Stream(_) = dialect.transport {
            return tracing::warn!("client that has no WebSocket lost in a takeover");
        }
        let settings = self.environment.settings_full();
        let wire = self.wire(&dialect.transport);
        let key = wire.key();
        let gaps = match &dialect.gaps {
            GapNotice::OnRequest(_) if !client.wants_gaps => &GapNotice::None,
            gaps => gaps,
        };
        let accounts = self.worker.accounts();
        let bytes_max = settings.config.client.queue_bytes_max;
        let outlet = ClientOutlet::new(wire, gaps, bytes_max, &accounts.backlogs);
        let outlet = Arc::new(outlet.tracked_for(&self.worker.node().webhooks));
        let PortableClient {
            connection: description,
            session,
            ..
        } = client;
        let context = Context {
            gate: self.gate(dialect),
            outlet: outlet.clone(),
            connection: Arc::new(description.restore(&self.worker, dialect)),
            headers: None,
        };
        let options = ConnectionOptions::new(&settings, accounts, dialect.has_commands());
        let imported = self.table.borrow_mut().import(key, connection, &options);
        if let Err(error) = imported {
            return tracing::warn!(%error, "connection lost in a takeover");
        }
        self.counters.add_connection();
        let restored: Result<Running, RestoreError> = match &dialect.session {
            SessionKind::Commands(commands) => {
                let session = Session::restore(context, commands, now(), session).await;
                session.map(|session| {
                    let outlet = outlet.clone();
                    let runtime = SessionRuntime::restored(session, outlet);
                    Running::Commands(Box::new(runtime))
                })
            }
            SessionKind::Fixed(_) => {
                let session = FixedSession::restore(context, now(), session).await;
                session.map(|session| {
                    let running = RunningSession {
                        session,
                        outlet: outlet.clone(),
                    };
                    running.resume();
                    Running::Fixed(Box::new(running))
                })
            }
        };
        match restored {
            Ok(running) => {
                self.sessions.borrow_mut().insert(key, running, Some(guard));
                // Its tokens may have been revoked while it was on the way.
                outlet.notify(Notice::Revoked);
            }
            Err(error) => {
                tracing::warn!(%error, "client is asked to connect again after a takeover");
                outlet.close(&Disconnect::SHUTDOWN);
            }
        }
    }
}
