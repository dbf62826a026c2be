//! A request that has not been answered.

use std::sync::Arc;

use linerate_proto::{
    Role,
    handshake::{Acceptance, BuildError, HandshakeError, Refusal, Request, Scheme, Upgrade},
};
use tokio::{sync::oneshot, time::Instant};

use super::{Server, channel::Channel};
use crate::{
    Error, Result, WebSocket,
    link::{Alarm, Answered, HandshakeResult, Link},
};

/// What is needed to answer a request.
pub(super) struct Pending {
    pub(super) server: Arc<Server>,
    pub(super) channel: Channel,
    pub(super) scheme: Scheme,
    pub(super) alarm: Alarm,
    /// When the opening handshake must be complete.
    pub(super) deadline: Instant,
}

/// What the application adds to the response that opens a WebSocket.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) subprotocol: Option<String>,
    pub(super) headers: Vec<(String, String)>,
}

/// What the application decides about a request, with the sender of the outcome.
pub(super) enum Decision {
    Accept(
        Request,
        Choice,
        oneshot::Sender<Result<(WebSocket, Request)>>,
    ),
    Refuse(Request, Refusal, oneshot::Sender<()>),
}

impl Pending {
    /// Checks a request by the rules of the RFC and by the origins that the server allows.
    pub(super) fn check<'r>(&self, request: &'r Request) -> Result<Upgrade<'r>, HandshakeError> {
        let upgrade = request.websocket()?;
        self.server.origins.check(request, self.scheme)?;
        Ok(upgrade)
    }

    /// Sends the response that opens the WebSocket.
    pub(super) async fn accept(
        self,
        upgrade: &Upgrade<'_>,
        choice: &Choice,
    ) -> Result<(Arc<Link>, Alarm)> {
        let settings = &self.server.settings;
        let acceptance = match choice.apply(upgrade.accept()) {
            Ok(acceptance) => acceptance,
            Err(error) => {
                self.refuse(upgrade.request(), internal_error()).await;
                return Err(error.into());
            }
        };
        #[cfg(feature = "deflate")]
        let acceptance = match &settings.options.deflate {
            Some(deflate) => acceptance.with_deflate(deflate),
            None => acceptance,
        };
        let agreed = HandshakeResult::from(&acceptance);
        let runtime = &self.server.runtime;
        let accepted = self.channel.accept(&acceptance, self.deadline, runtime);
        let accepted = accepted.await;
        let (io, leftover) = accepted.map_err(|error| match error {
            Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                let budget = settings.options.handshake_timeout;
                Error::HandshakeTimeout { budget }
            }
            error => error,
        })?;
        let link = Link::new(io, Role::Server, settings, &leftover, agreed);
        self.alarm.enter(&link);
        Ok((link, self.alarm))
    }

    /// Refuses the request, and waits for a moment until the client has read the refusal.
    pub(super) async fn refuse(self, request: &Request, refusal: Refusal) {
        let refusal = match request.method() {
            "HEAD" => refusal.without_body(),
            _ => refusal,
        };
        self.channel.refuse(&refusal, &self.server.runtime).await;
    }

    /// Waits for the application's decision and answers the client.
    ///
    /// This ends early if the client disconnects, the time for the opening handshake is over, or
    /// the server shuts down.
    pub(super) async fn answer(mut self, decision: oneshot::Receiver<Decision>) -> Answered {
        let bytes_max = self.server.settings.options.recv_queue_bytes_max;
        let server = self.server.clone();
        let runtime = &server.runtime;
        let refusal = tokio::select! {
            biased;
            decision = decision => {
                return match decision {
                    Ok(decision) => self.carry_out(decision).await,
                    Err(_) => {
                        self.channel.refuse(&internal_error(), runtime).await;
                        Answered::Refused
                    }
                };
            }
            () = self.channel.gone(bytes_max) => {
                tracing::debug!("client disconnected before the application decided");
                return Answered::Lost;
            }
            () = self.alarm.shutdown() => "server shutting down",
            () = runtime.timer(self.deadline) => "server took too long to decide",
        };
        tracing::debug!("request refused with 503: {refusal}");
        self.channel.refuse(&unavailable(refusal), runtime).await;
        Answered::Lost
    }

    async fn carry_out(self, decision: Decision) -> Answered {
        match decision {
            Decision::Accept(request, choice, outcome) => {
                let accepted = match request.websocket() {
                    Ok(upgrade) => self.accept(&upgrade, &choice).await,
                    Err(error) => Err(error.into()),
                };
                match accepted {
                    Ok((link, alarm)) => {
                        // If `accept` was dropped, this drops the only handle, which closes the
                        // connection.
                        _ = outcome.send(Ok((WebSocket::new(link.clone()), request)));
                        Answered::Open(link, alarm)
                    }
                    Err(error) => {
                        _ = outcome.send(Err(error));
                        Answered::Refused
                    }
                }
            }
            Decision::Refuse(request, refusal, outcome) => {
                self.refuse(&request, refusal).await;
                _ = outcome.send(());
                Answered::Refused
            }
        }
    }
}

impl Choice {
    fn apply<'u>(&self, mut acceptance: Acceptance<'u>) -> Result<Acceptance<'u>, BuildError> {
        if let Some(subprotocol) = &self.subprotocol {
            acceptance = acceptance.with_subprotocol(subprotocol)?;
        }
        for (name, value) in &self.headers {
            acceptance = acceptance.with_header(name, value)?;
        }
        Ok(acceptance)
    }
}

/// The answer to a request that the application has not answered itself.
fn internal_error() -> Refusal {
    Refusal::new(500, "internal server error").expect("500 is the status of a refusal")
}

/// The answer to a request while the server cannot accept it.
pub(super) fn unavailable(text: &str) -> Refusal {
    Refusal::new(503, text).expect("503 is the status of a refusal")
}
