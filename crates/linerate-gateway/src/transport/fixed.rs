//! Clients that send no commands: their subscriptions are in the URL.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use linerate::{Options, Receiver, axum::WebSocketUpgrade};
use tokio::{sync::oneshot, time::timeout};

use super::{
    Admitted, ClientOutlet, DATA_BYTES_MAX,
    body::{body, head},
    local::{ConnectionOptions, Running},
    refusal,
    running::{PingedSession, RunningSession, late},
    wire::{PendingWire, WebSocketWire, Wire},
};
use crate::{
    node::Connection,
    protocol::{
        Dialect,
        codes::{Disconnect, Refusal},
        dialect::{Fixed, GapNotice, Opening, StreamTransport, WebSocketTransport},
    },
    server::continue_with,
    session::{AuthorizedRequest, Context, FixedSession, Gate, Visitor},
};

/// Serves a client on a WebSocket.
pub(super) async fn open_websocket(
    admitted: Admitted,
    dialect: &'static Dialect,
    websocket: &'static WebSocketTransport,
    fixed: &'static Fixed,
    opening: Opening<'_>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let client = &admitted.settings.config.client;
    let mut options = admitted.options();
    options.config.ping_interval = Some(client.ping_interval);
    options.config.ping_timeout = client.pong_timeout;
    let message_timeout = client.message_timeout;
    let (deflate, compressed) = (options.deflate, admitted.compressed());
    let request = match Request::read(&admitted, dialect, fixed, opening).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    if admitted.is_upgrade {
        return open_local(admitted, dialect, options, request, upgrade).await;
    }
    // Subscribe before the upgrade, so that an open connection misses nothing.
    let wire = PendingWire::default();
    let rounds = match request.start(wire.clone()).await {
        Ok(rounds) => rounds,
        Err(refused) => return refused.into_response(),
    };
    let guard = admitted.guard;
    upgrade
        .with_options(options)
        .on_upgrade(move |ws| async move {
            let (sender, receiver) = ws.split();
            let farewell = websocket.farewell;
            wire.open(WebSocketWire::new(sender, farewell, deflate, compressed));
            rounds.run(pin!(discard(receiver, message_timeout))).await;
            drop(guard);
            Ok(())
        })
}

/// Serves a client on a WebSocket whose connection becomes one of the reactor.
async fn open_local(
    admitted: Admitted,
    dialect: &'static Dialect,
    options: Options,
    request: Request,
    upgrade: WebSocketUpgrade,
) -> Response {
    let clients = admitted.endpoints.clients.clone();
    let accounts = admitted.endpoints.worker.accounts();
    let connection = ConnectionOptions::new(&admitted.settings, accounts, false);
    let wire = clients.wire(&dialect.transport);
    let key = wire.key();
    // Subscribe before the upgrade, so that an open connection misses nothing.
    let running = match request.start(wire).await {
        Ok(running) => running,
        Err(refused) => return refused.into_response(),
    };
    let guard = admitted.guard;
    let session = Running::Fixed(running);
    let open = move |upgrade| clients.open(key, upgrade, &connection, session, guard);
    upgrade.with_options(options).on_stream_upgrade(open)
}

/// Serves a client on a stream.
pub(super) async fn open_stream(
    admitted: Admitted,
    dialect: &'static Dialect,
    transport: &'static StreamTransport,
    fixed: &'static Fixed,
    opening: Opening<'_>,
) -> Response {
    if let Some(refused) = admitted.refuse_to_stay() {
        return refused;
    }
    let cors = admitted.cors.clone();
    let request = match Request::read(&admitted, dialect, fixed, opening).await {
        Ok(request) => request,
        Err(refused) => return cors.allow(refused),
    };
    if admitted.may_detach {
        return open_local_stream(admitted, dialect, transport, request).await;
    }
    let (still_there, gone) = oneshot::channel::<Infallible>();
    let (wire, stream) = body(DATA_BYTES_MAX, transport.farewell, still_there);
    let rounds = match request.start(wire).await {
        Ok(rounds) => rounds,
        Err(refused) => return cors.allow(refused.into_response()),
    };
    let guard = admitted.guard;
    tokio::spawn(async move {
        let gone = pin!(async move {
            _ = gone.await;
            None
        });
        rounds.run(gone).await;
        drop(guard);
    });
    cors.allow(stream.into_response(transport.content_type))
}

/// Serves a client on a stream of the reactor.
async fn open_local_stream(
    admitted: Admitted,
    dialect: &'static Dialect,
    transport: &'static StreamTransport,
    request: Request,
) -> Response {
    let clients = admitted.endpoints.clients.clone();
    let wire = clients.wire(&dialect.transport);
    let key = wire.key();
    let running = match request.start(wire).await {
        Ok(running) => running,
        Err(refused) => return admitted.cors.allow(refused.into_response()),
    };
    let guard = admitted.guard;
    let mut response = admitted.cors.allow(head(transport.content_type));
    continue_with(&mut response, move |detached| {
        let session = Running::Pinged(Box::new(PingedSession::new(*running)));
        clients.open_stream(key, detached, session, guard);
    });
    response
}

/// Discards the client's messages until it disconnects or takes too long to send one. The time
/// limit is needed because every received byte counts as a sign of life, so pings would never
/// detect a message that does not end.
async fn discard(mut receiver: Receiver, message_timeout: Duration) -> Option<Disconnect> {
    while let Ok(Some(mut message)) = receiver.reader().await {
        // Boxed, because most clients never send anything.
        let rest = Box::pin(timeout(message_timeout, async {
            while let Ok(Some(_)) = message.chunk().await {}
        }));
        if rest.await.is_err() {
            return Some(late(message_timeout));
        }
    }
    None
}

/// An authorized request.
struct Request {
    gate: Arc<Gate>,
    connection: Arc<Connection>,
    granted: AuthorizedRequest,
    gap_notice: &'static GapNotice,
    control_bytes_max: usize,
}

impl Request {
    /// Parses and authorizes a request.
    async fn read(
        admitted: &Admitted,
        dialect: &'static Dialect,
        fixed: &Fixed,
        opening: Opening<'_>,
    ) -> Result<Self, Response> {
        let request = (fixed.read)(opening.query, opening.headers)
            .map_err(|error| refusal(StatusCode::BAD_REQUEST, &error.to_string()))?;
        let gap_notice = match &dialect.gaps {
            GapNotice::OnRequest(_) if !request.wants_gaps => &GapNotice::None,
            gaps => gaps,
        };
        let connection = admitted.connection(dialect, &dialect.name);
        let gate = admitted.endpoints.gate(dialect);
        let visitor = Visitor {
            gate: &gate,
            connection: &connection,
            headers: admitted.headers.as_deref(),
        };
        let granted = request.grant(visitor).await;
        let granted = granted.map_err(IntoResponse::into_response)?;
        let client = &admitted.settings.config.client;
        Ok(Self {
            granted,
            gap_notice,
            control_bytes_max: client.queue_bytes_max,
            gate,
            connection,
        })
    }

    /// Subscribes the client.
    async fn start(self, wire: impl Wire) -> Result<Box<RunningSession>, Refusal> {
        let backlogs = &self.gate.worker.accounts().backlogs;
        let outlet = ClientOutlet::new(wire, self.gap_notice, self.control_bytes_max, backlogs);
        let webhooks = &self.gate.worker.node().webhooks;
        let outlet = Arc::new(outlet.tracked_for(webhooks));
        let context = Context {
            gate: self.gate,
            outlet: outlet.clone(),
            connection: self.connection,
            headers: None,
        };
        // Boxed, so that moving it into a task does not double the size of the task.
        Ok(Box::new(RunningSession {
            session: FixedSession::start(context, self.granted).await?,
            outlet,
        }))
    }
}
