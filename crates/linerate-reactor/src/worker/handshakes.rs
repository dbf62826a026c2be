//! Opening handshakes with clients, and plain HTTP requests.

use linerate_proto::handshake::{
    BuildError, HandshakeError, HttpResponse, Refusal, Request, RequestReader, Scheme,
};

use crate::{
    connection::{Connection, Opening, Stage},
    core::Core,
    handler::Opened,
    route::routes::Routes,
    wheel::{TICK, Tick, tick_after, tick_at},
};

/// How long a client that is refused may take to read the refusal.
const REFUSAL_TICKS: Tick = (1_000 / TICK.as_millis()) as Tick;

/// Maximum number of connections that are being refused or that read the answer
/// to a plain request; further ones are dropped.
const REFUSED_MAX: usize = 1_024;

/// The opening handshakes with the clients of a worker.
#[derive(Default)]
pub(super) struct Handshakes {
    /// The number of connections that are being refused.
    refused: usize,
}

impl Handshakes {
    /// Returns the stage of a connection before the first byte of its request.
    pub(super) fn begin(core: &Core) -> Stage {
        let limits = core.reactor.options.handshake;
        Stage::Opening(Box::new(Opening {
            reader: RequestReader::new(limits),
            due: core.now + limits.time_max,
        }))
    }

    /// Handles input of the opening handshake; returns how many bytes belonged to it.
    pub(super) fn handle_input(
        &mut self,
        core: &mut Core,
        routes: &mut Routes,
        connection: &mut Connection,
        input: &[u8],
    ) -> usize {
        let Stage::Opening(opening) = &mut connection.stage else {
            return 0;
        };
        match opening.reader.handle_input(input) {
            Ok(None) => input.len(),
            Ok(Some((request, head_bytes))) => {
                let body_bytes_max = core.reactor.options.http_body_bytes_max;
                match routes.pages.answer(&request, body_bytes_max) {
                    Some(response) => {
                        self.answer_page(core, connection, response);
                        // Nothing that follows is another request: its sender may have meant it as
                        // a body, and another parser may have read it as such.
                        input.len()
                    }
                    None => {
                        let route = routes.find(request.path());
                        self.answer(core, routes, connection, route, &request);
                        head_bytes
                    }
                }
            }
            Err(error) => {
                self.refuse(core, connection, &error.into());
                input.len()
            }
        }
    }

    /// Answers a request.
    pub(super) fn answer(
        &mut self,
        core: &mut Core,
        routes: &mut Routes,
        connection: &mut Connection,
        route: Option<u16>,
        request: &Request,
    ) {
        let refusal = match route {
            Some(route) => match accept(core, routes, connection, route, request) {
                Ok(()) => return,
                Err(refusal) => Ok(refusal),
            },
            None => Refusal::new(404, "no such path"),
        };
        self.refuse_request(core, connection, request, refusal);
    }

    /// Refuses a connection because the connection limit is reached.
    pub(super) fn refuse_overload(&mut self, core: &mut Core, connection: &mut Connection) {
        match Refusal::new(503, "too many connections") {
            Ok(refusal) => self.refuse(core, connection, &refusal),
            Err(_) => connection.lost = true,
        }
    }

    /// Refuses a handshake that took too long.
    pub(super) fn refuse_late(&mut self, core: &mut Core, connection: &mut Connection) {
        let time_max = core.reactor.options.handshake.time_max;
        let refusal = HandshakeError::TimedOut { time_max }.into();
        self.refuse(core, connection, &refusal);
    }

    /// Waits until the peer has read the refusal or alert, or its time is over.
    pub(super) fn begin_refusal(&mut self, core: &mut Core, connection: &mut Connection) {
        if self.refused >= REFUSED_MAX {
            connection.lost = true;
            return;
        }
        self.refused += 1;
        core.reactor.count_closed();
        connection.stage = Stage::Refused {
            due: tick_at(core.now) + 1 + REFUSAL_TICKS,
        };
        connection.congested = false;
        // The deadline of the handshake no longer applies; the next one is sooner.
        core.deadlines.cancel(connection);
    }

    /// Records that a refused connection has ended.
    pub(super) const fn end_refusal(&mut self) {
        self.refused -= 1;
    }

    /// Sends the response to a plain HTTP request. A client that does not read all of it at once
    /// has as long as for a handshake.
    fn answer_page(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
        response: Result<HttpResponse, BuildError>,
    ) {
        let Ok(response) = response else {
            connection.lost = true;
            return;
        };
        response.encode(&mut core.io.cork.bytes);
        core.io.flush(connection, &[], &[]);
        let is_written = connection.backlog.is_empty();
        self.begin_refusal(core, connection);
        if let Stage::Refused { due } = &mut connection.stage
            && !is_written
        {
            *due = tick_after(core.now + core.reactor.options.handshake.time_max);
        }
    }

    fn refuse_request(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
        request: &Request,
        refusal: Result<Refusal, BuildError>,
    ) {
        match refusal {
            Ok(refusal) if request.method() == "HEAD" => {
                self.refuse(core, connection, &refusal.without_body());
            }
            Ok(refusal) => self.refuse(core, connection, &refusal),
            Err(_) => connection.lost = true,
        }
    }

    /// Sends a refusal. The connection ends when the client has read it, or its time is over.
    fn refuse(&mut self, core: &mut Core, connection: &mut Connection, refusal: &Refusal) {
        if connection.tls.as_ref().is_some_and(|tls| !tls.is_open()) {
            // Nothing can be sent before the TLS handshake is complete.
            connection.lost = true;
            return;
        }
        refusal.encode(&mut core.io.cork.bytes);
        core.io.flush(connection, &[], &[]);
        self.begin_refusal(core, connection);
    }
}

/// Accepts a request and opens the WebSocket.
///
/// # Errors
/// The refusal to send to the client.
fn accept(
    core: &mut Core,
    routes: &mut Routes,
    connection: &mut Connection,
    route: u16,
    request: &Request,
) -> Result<(), Refusal> {
    let upgrade = request.websocket()?;
    let scheme = match connection.tls {
        Some(_) => Scheme::Https,
        None => Scheme::Http,
    };
    core.reactor.options.origins.check(request, scheme)?;
    let acceptance = routes.accept(route, &upgrade)?;
    #[cfg(feature = "deflate")]
    let acceptance = match &core.reactor.options.deflate {
        Some(deflate) => acceptance.with_deflate(deflate),
        None => acceptance,
    };
    #[cfg(feature = "deflate")]
    let agreed = acceptance.deflate();
    acceptance.encode(&mut core.io.cork.bytes);
    // Written separately, so that a client does not see frames before it has seen the response.
    core.io.flush(connection, &[], &[]);
    core.io.write_queued(connection);
    core.renew_engine(connection);
    #[cfg(feature = "deflate")]
    core.set_deflate(connection, agreed);
    routes.open(core, connection, route, Opened::Accepted(request));
    Ok(())
}
