//! Clients that send no commands: `/raw` and `/sse`.

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::RawQuery,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use linerate::{CloseCode, OriginPolicy, Receiver, axum::WebSocketUpgrade};
use linerate_hub::{Gap, GapCause};
use tokio::sync::oneshot;

use super::{
    Admitted, ClientOutlet, DATA_BYTES_MAX,
    body::body,
    drive::now,
    outlet::GapNotice,
    query, refusal,
    wire::{PendingWire, WebSocketWire, Wire},
};
use crate::{
    node::{Connection, Worker},
    protocol::{Encoding, centrifuge::Disconnect, event_stream as events},
    session::{Context, FixedSession, Gate, Granted, Refusal},
};

/// The close code "Try Again Later" (registered with IANA), for an overloaded server.
const TRY_AGAIN_LATER: u16 = 1013;

/// The minimum delay before a browser reconnects; a random delay of up to the same length is added.
const RETRY: Duration = Duration::from_secs(1);

/// Handles `/raw`: each publication is a message.
pub(super) async fn raw(
    admitted: Admitted,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let connection = admitted.connection(Encoding::Raw);
    let client = &admitted.settings.config.client;
    let mut options = admitted.options();
    options.config.ping_interval = Some(client.ping_interval);
    options.config.ping_timeout = client.pong_timeout;
    let message_timeout = client.message_timeout;
    let (deflate, compressed) = (options.deflate, admitted.compressed());
    let request = match Request::read(&admitted, query, &headers, connection, Encoding::Raw).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let gap_notice = match request.wants_gaps {
        true => GapNotice::Raw,
        false => GapNotice::None,
    };
    // Subscribe before the upgrade, so that an open connection misses nothing.
    let wire = PendingWire::default();
    let rounds = match request.start(wire.clone(), gap_notice).await {
        Ok(rounds) => rounds,
        Err(refused) => return refused.into_response(),
    };
    upgrade
        .with_options(options)
        // `Admitted` has already checked the origin.
        .with_origin_policy(OriginPolicy::DangerAny)
        .on_upgrade(move |ws| async move {
            let (sender, receiver) = ws.split();
            wire.open(WebSocketWire::new(sender, deflate, compressed));
            rounds.run(discard(receiver, message_timeout)).await;
            drop(admitted);
            Ok(())
        })
}

/// Handles `GET /sse`: each publication is an event.
pub(super) async fn event_stream(
    admitted: Admitted,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    if let Some(refused) = admitted.refuse_to_stay() {
        return refused;
    }
    let cors = admitted.cors.clone();
    let connection = admitted.connection(Encoding::EventStream);
    let encoding = Encoding::EventStream;
    let request = match Request::read(&admitted, query, &headers, connection, encoding).await {
        Ok(request) => request,
        Err(refused) => return cors.allow(refused),
    };
    let (still_there, gone) = oneshot::channel::<Infallible>();
    let (wire, stream) = body(DATA_BYTES_MAX, farewell, still_there);
    let rounds = match request.start(wire, GapNotice::EventStream).await {
        Ok(rounds) => rounds,
        Err(refused) => return cors.allow(refused.into_response()),
    };
    tokio::spawn(async move {
        let gone = async move {
            _ = gone.await;
            None
        };
        rounds.run(gone).await;
        drop(admitted);
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store, no-transform"),
        // Otherwise nginx would buffer the response.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    cors.allow((headers, Body::from_stream(stream)).into_response())
}

/// Discards the client's messages until it disconnects or takes too long to send one. The time
/// limit is needed because every received byte counts as a sign of life, so pings would never
/// detect a message that does not end.
async fn discard(mut receiver: Receiver, message_timeout: Duration) -> Option<Disconnect> {
    while let Ok(Some(mut message)) = receiver.reader().await {
        let rest = async { while let Ok(Some(_)) = message.chunk().await {} };
        if tokio::time::timeout(message_timeout, rest).await.is_err() {
            let seconds = message_timeout.as_secs();
            let reason = format!("stale: a message took longer than {seconds} s");
            return Some(Disconnect::STALE.with_reason(reason));
        }
    }
    None
}

/// Returns the last event of a stream, with the reconnect delay if the client should reconnect.
fn farewell(disconnect: &Disconnect) -> Option<Bytes> {
    let mut bytes = Vec::new();
    if disconnect.is_reconnect() {
        events::append_retry(RETRY.mul_f32(1.0 + rand::random::<f32>()), &mut bytes);
    }
    events::append_disconnect(disconnect.code, &disconnect.reason, &mut bytes);
    Some(bytes.into())
}

/// An authorized request.
struct Request {
    gate: Gate,
    connection: Connection,
    granted: Granted,
    wants_gaps: bool,
    control_bytes_max: usize,
    ping_interval: Duration,
}

impl Request {
    /// Parses and authorizes a request.
    async fn read(
        admitted: &Admitted,
        query: Option<String>,
        headers: &HeaderMap,
        connection: Connection,
        encoding: Encoding,
    ) -> Result<Self, Response> {
        let asked = query::read(&query.unwrap_or_default(), headers)
            .map_err(|error| refusal(StatusCode::BAD_REQUEST, &error.to_string()))?;
        let gate = admitted.endpoints.gate(encoding);
        let granted = asked.wish.grant(&gate, &connection.client).await;
        let granted = granted.map_err(IntoResponse::into_response)?;
        let client = &admitted.settings.config.client;
        Ok(Self {
            granted,
            wants_gaps: asked.wants_gaps,
            control_bytes_max: client.queue_bytes_max,
            ping_interval: client.ping_interval,
            gate,
            connection,
        })
    }

    /// Subscribes the client.
    async fn start(self, wire: impl Wire, gap_notice: GapNotice) -> Result<Rounds, Refusal> {
        let backlogs = &self.gate.worker.accounts().backlogs;
        let control_bytes_max = self.control_bytes_max;
        let outlet = ClientOutlet::new(wire, gap_notice, control_bytes_max, backlogs);
        let outlet = Arc::new(outlet);
        let context = Context {
            gate: self.gate.clone(),
            outlet: outlet.clone(),
            connection: self.connection,
        };
        Ok(Rounds {
            session: FixedSession::start(context, self.granted).await?,
            outlet,
            ping: match self.gate.encoding {
                Encoding::EventStream => events::PING,
                // WebSocket pings are used instead.
                _ => b"",
            },
            encoding: self.gate.encoding,
            ping_interval: self.ping_interval,
            worker: self.gate.worker,
        })
    }
}

/// A running fixed session with everything it needs.
struct Rounds {
    session: FixedSession,
    worker: Arc<Worker>,
    outlet: Arc<ClientOutlet>,
    encoding: Encoding,
    ping: &'static [u8],
    ping_interval: Duration,
}

impl Rounds {
    /// Serves the client until it has to be disconnected, or until `gone` completes: with `None` if
    /// the client has disconnected, or with the reason to disconnect it.
    async fn run(mut self, gone: impl Future<Output = Option<Disconnect>>) {
        let mut gone = pin!(gone);
        self.begin();
        let mut pings = tokio::time::interval(self.ping_interval);
        pings.reset();
        // Tracks whether there was room since the last ping. A client that reads nothing between
        // two pings is considered gone, because event streams have no answer to pings.
        let mut had_room = true;
        loop {
            let over = tokio::select! {
                over = &mut gone => match over {
                    None => return,
                    over => over,
                },
                () = self.outlet.changed() => {
                    let mut events = self.outlet.take_events().into_iter();
                    events.find_map(|event| self.session.handle_event(event))
                }
                has_room = self.outlet.room(), if self.outlet.is_full() => {
                    had_room = true;
                    if has_room {
                        self.worker.writable(self.session.client());
                    }
                    None
                }
                _ = pings.tick() => {
                    let is_stuck = !had_room;
                    had_room = !self.outlet.is_full();
                    self.outlet.send(Bytes::from_static(self.ping));
                    is_stuck.then_some(Disconnect::WRITE_ERROR)
                }
                () = until(self.session.poll_timeout()) => self.session.handle_timeout(now()),
            };
            if let Some(disconnect) = over {
                return self.outlet.close(&self.farewell(disconnect));
            }
        }
    }

    /// Returns the disconnect to send. A raw WebSocket client gets standard WebSocket close codes
    /// where there is one, because it knows no higher-level protocol.
    ///
    /// RFC 6455 §7.4.1: "1001 indicates that an endpoint is "going away", such as a server going
    /// down".
    fn farewell(&self, disconnect: Disconnect) -> Disconnect {
        match (self.encoding, disconnect) {
            (Encoding::Raw, disconnect) if disconnect == Disconnect::OVERLOADED => Disconnect {
                code: TRY_AGAIN_LATER,
                ..disconnect
            },
            (Encoding::Raw, disconnect) if disconnect == Disconnect::SHUTDOWN => Disconnect {
                code: CloseCode::GOING_AWAY.as_u16(),
                reason: "server shutting down".into(),
            },
            (_, disconnect) => disconnect,
        }
    }

    /// Reports what the client missed before it reconnected, and releases data.
    fn begin(&self) {
        if !self.ping.is_empty() {
            // Sends the response head at once and shows proxies that the stream is alive.
            self.outlet.send(Bytes::from_static(self.ping));
        }
        for channel in self.session.unrecovered() {
            let gap = Gap {
                missed: None,
                cause: GapCause::EpochChanged,
            };
            self.outlet.tell_gap(channel, gap);
        }
        self.outlet.release();
        self.worker.writable(self.session.client());
    }
}

async fn until(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
