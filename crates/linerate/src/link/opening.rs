//! The driver of a connection whose handler decides whether the connection opens.

use std::{
    future::{Future, Pending, pending},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::{
    Link,
    alarm::Alarm,
    driver::{Guard, drive, poll_handler},
};
use crate::Result;

/// How the opening handshake of a connection ended.
pub(crate) enum Answered {
    /// The client disconnected, or did not get an answer in time.
    Lost,
    Open(Arc<Link>, Alarm),
    /// The application has refused the request.
    Refused,
}

/// What answers the client as soon as the application has decided.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Answered> + Send>>;

pin_project_lite::pin_project! {
    /// Runs a handler that decides about a request, answers the client, and then drives the
    /// connection on the same task, so that a reply does not have to hop to another one.
    ///
    /// If there is no longer a client to answer, the handler is dropped at its next await point.
    pub(crate) struct OpeningDriver<H> {
        #[pin]
        handler: H,
        phase: Phase,
    }
}

enum Phase {
    Answering {
        answer: Answer,
        is_handler_done: bool,
    },
    Open {
        guard: Guard,
        alarm: Alarm,
    },
    Refused,
}

impl<H> OpeningDriver<H> {
    pub(crate) fn new(handler: H, answer: Answer) -> Self {
        let phase = Phase::Answering {
            answer,
            is_handler_done: false,
        };
        Self { handler, phase }
    }
}

impl OpeningDriver<Pending<Result<()>>> {
    /// Creates a driver for a connection whose application runs elsewhere.
    pub(crate) fn without_handler(answer: Answer) -> Self {
        let phase = Phase::Answering {
            answer,
            is_handler_done: true,
        };
        Self {
            handler: pending(),
            phase,
        }
    }
}

impl<H: Future<Output = Result<()>>> Future for OpeningDriver<H> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if let Phase::Answering {
            answer,
            is_handler_done,
        } = this.phase
        {
            if !*is_handler_done {
                *is_handler_done = poll_handler(this.handler.as_mut(), cx).is_ready();
            }
            let is_handler_done = *is_handler_done;
            *this.phase = match ready!(answer.as_mut().poll(cx)) {
                Answered::Open(link, alarm) => {
                    link.lock().driver.is_handler_done = is_handler_done;
                    let guard = Guard(link);
                    Phase::Open { guard, alarm }
                }
                Answered::Refused if !is_handler_done => Phase::Refused,
                Answered::Refused | Answered::Lost => return Poll::Ready(()),
            };
        }
        match this.phase {
            Phase::Open { guard, alarm } => drive(this.handler, guard, alarm, cx),
            _ => poll_handler(this.handler, cx).map(drop),
        }
    }
}
