//! The opening handshake of a connection.

#[cfg(feature = "deflate")]
use linerate_proto::deflate::{Agreement, ThreadPool};
use linerate_proto::{
    Engine,
    handshake::{BuildError, HandshakeError, Refusal, Request, Scheme},
};

use super::Worker;
use crate::{
    Opened,
    connection::{Stage, side::Side},
    worker::wheel::{TICK, Tick, tick_at},
};

/// How long a client that is refused may take to read the refusal.
const REFUSAL_TICKS: Tick = (1_000 / TICK.as_millis()) as Tick;

/// Maximum number of connections that are being refused; further ones are dropped.
const REFUSED_MAX: usize = 1_024;

impl Worker {
    /// Handles input of the opening handshake; returns how many bytes belonged to it.
    pub(super) fn take_opening(&mut self, key: usize, input: &[u8]) -> usize {
        let Stage::Opening(opening) = &mut self.connections[key].stage else {
            return 0;
        };
        match opening.reader.handle_input(input) {
            Ok(None) => input.len(),
            Ok(Some((request, head_bytes))) => {
                let route = self.route(request.path());
                self.answer(key, route, &request);
                head_bytes
            }
            Err(error) => {
                self.refuse(key, &error.into());
                input.len()
            }
        }
    }

    /// Refuses a connection because the connection limit is reached.
    pub(super) fn refuse_overload(&mut self, key: usize) {
        self.refuse_with(key, 503, "too many connections");
    }

    /// Refuses a handshake that took too long.
    pub(super) fn refuse_late(&mut self, key: usize) {
        let time_max = self.core.shared.options.handshake.time_max;
        self.refuse(key, &HandshakeError::TimedOut { time_max }.into());
    }

    /// Returns the route of a path, if it has one.
    pub(super) fn route(&self, path: &str) -> Option<u16> {
        let found = self.routes.by_path.get(path).copied();
        found.or(self.routes.fallback)
    }

    /// Answers a request.
    pub(super) fn answer(&mut self, key: usize, route: Option<u16>, request: &Request) {
        let Some(route) = route else {
            return self.refuse_request(key, request, Refusal::new(404, "no such path"));
        };
        if let Err(refusal) = self.accept_request(key, route, request) {
            self.refuse_request(key, request, Ok(refusal));
        }
    }

    fn accept_request(&mut self, key: usize, route: u16, request: &Request) -> Result<(), Refusal> {
        let upgrade = request.websocket()?;
        let core = &mut self.core;
        let scheme = match self.connections[key].tls {
            Some(_) => Scheme::Https,
            None => Scheme::Http,
        };
        core.shared.options.origins.check(request, scheme)?;
        let handler = &mut self.routes.handlers[usize::from(route)];
        let acceptance = handler.accept(&upgrade)?;
        #[cfg(feature = "deflate")]
        let acceptance = match &core.shared.options.deflate {
            Some(deflate) => acceptance.with_deflate(deflate),
            None => acceptance,
        };
        #[cfg(feature = "deflate")]
        let agreed = acceptance.deflate();
        let connection = &mut self.connections[key];
        acceptance.encode(&mut core.output.cork);
        // Written separately, so that a client does not see frames before it has seen the response.
        core.flush(connection, &[], &[]);
        core.write_queued(connection);
        self.begin(key);
        #[cfg(feature = "deflate")]
        self.compress(key, agreed);
        self.open(key, route, Opened::Accepted(request));
        Ok(())
    }

    /// Replaces the engine with a new one, for the frames that follow the opening handshake.
    pub(super) fn begin(&mut self, key: usize) {
        let core = &self.core;
        let connection = &mut self.connections[key];
        let side = Side(connection.role());
        connection.engine = Engine::new(side, core.shared.config.clone(), core.now);
    }

    /// Sets up compression as negotiated in the opening handshake.
    #[cfg(feature = "deflate")]
    pub(super) fn compress(&mut self, key: usize, agreed: Option<Agreement>) {
        let Some(agreement) = agreed else {
            return;
        };
        // A handler may have negotiated compression even if the options do not enable it.
        let options = self.core.shared.options.deflate.unwrap_or_default();
        let engine = &mut self.connections[key].engine;
        engine.set_deflate(agreement, &options, &ThreadPool);
    }

    /// Opens the WebSocket. Its engine must be new; see [`begin`](Self::begin).
    pub(super) fn open(&mut self, key: usize, route: u16, opened: Opened<'_>) {
        let core = &mut self.core;
        let connection = &mut self.connections[key];
        // The handler may already send in `open`, before its data exists.
        connection.stage = Stage::Open {
            route,
            data: u32::MAX,
        };
        let data = self.routes.handlers[usize::from(route)].open(core, connection, opened);
        connection.stage = Stage::Open { route, data };
        // The deadline of the handshake no longer applies; that of an open connection does.
        self.drop_alarm(key);
    }

    fn refuse_request(
        &mut self,
        key: usize,
        request: &Request,
        refusal: Result<Refusal, BuildError>,
    ) {
        match refusal {
            Ok(refusal) if request.method() == "HEAD" => self.refuse(key, &refusal.without_body()),
            Ok(refusal) => self.refuse(key, &refusal),
            Err(_) => self.connections[key].lost = true,
        }
    }

    fn refuse_with(&mut self, key: usize, status: u16, text: &str) {
        match Refusal::new(status, text) {
            Ok(refusal) => self.refuse(key, &refusal),
            Err(_) => self.connections[key].lost = true,
        }
    }

    /// Sends a refusal. The connection ends when the client has read it, or its time is over.
    fn refuse(&mut self, key: usize, refusal: &Refusal) {
        let connection = &mut self.connections[key];
        if connection.tls.as_ref().is_some_and(|tls| !tls.is_open()) {
            // Nothing can be sent before the TLS handshake is complete.
            connection.lost = true;
            return;
        }
        refusal.encode(&mut self.core.output.cork);
        self.core.flush(connection, &[], &[]);
        self.begin_refusal(key);
    }

    /// Waits until the peer has read the refusal or alert, or its time is over.
    pub(super) fn begin_refusal(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if self.refused >= REFUSED_MAX {
            connection.lost = true;
            return;
        }
        self.refused += 1;
        self.core.count_closed();
        connection.stage = Stage::Refused {
            due: tick_at(self.core.now) + 1 + REFUSAL_TICKS,
        };
        connection.congested = false;
        // The deadline of the handshake no longer applies; the next one is sooner.
        self.drop_alarm(key);
    }
}
