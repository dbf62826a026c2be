//! What a server does with the requests that it receives: it accepts them all, or lets the
//! application decide about each.

use std::{
    future::{Future, ready},
    panic::{AssertUnwindSafe, catch_unwind},
};

use linerate_proto::handshake::Request;

use super::{
    incoming::Incoming,
    pending::{Choice, Pending},
};
use crate::{
    Error, Result, WebSocket,
    link::{Driver, OpeningDriver},
};

/// An application that is served.
pub(super) trait Application: Send + Sync + 'static {
    /// Answers a request, and starts the task of the connection if it opens.
    fn attend(&self, request: Request, pending: Pending) -> impl Future<Output = ()> + Send;
}

/// An application that accepts all valid requests.
pub(super) struct AcceptAll<H>(pub(super) H);

impl<H, F> Application for AcceptAll<H>
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    async fn attend(&self, request: Request, pending: Pending) {
        let upgrade = match pending.check(&request) {
            Ok(upgrade) => upgrade,
            Err(error) => {
                tracing::debug!(%error, "opening handshake failed");
                return pending.refuse(&request, error.into()).await;
            }
        };
        let server = pending.server.clone();
        let accepted = pending.accept(&upgrade, &Choice::default()).await;
        drop(upgrade);
        let (link, alarm) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => return tracing::debug!(%error, "opening handshake failed"),
        };
        let ws = WebSocket::new(link.clone());
        match catch_unwind(AssertUnwindSafe(|| (self.0)(ws, request))) {
            Ok(handler) => Driver::new(link, handler, alarm).spawn(&server.runtime),
            Err(_) => {
                tracing::error!("connection handler panicked");
                let failed = ready(Err(Error::Abnormal));
                Driver::new(link, failed, alarm).spawn(&server.runtime);
            }
        }
    }
}

/// An application that decides about each valid request.
pub(super) struct Decide<H>(pub(super) H);

impl<H, F> Application for Decide<H>
where
    H: Fn(Incoming) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    async fn attend(&self, request: Request, pending: Pending) {
        if let Err(error) = pending.check(&request) {
            tracing::debug!(%error, "opening handshake failed");
            return pending.refuse(&request, error.into()).await;
        }
        let server = pending.server.clone();
        let (incoming, answer) = Incoming::new(request, pending);
        match catch_unwind(AssertUnwindSafe(|| (self.0)(incoming))) {
            Ok(handler) => server.runtime.spawn(OpeningDriver::new(handler, answer)),
            Err(_) => {
                tracing::error!("connection handler panicked");
                server.runtime.spawn(OpeningDriver::without_handler(answer));
            }
        }
    }
}
