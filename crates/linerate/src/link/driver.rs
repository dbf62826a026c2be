//! The one task that is responsible for a connection: it runs the handler if there is one, writes
//! what was queued, reads while nobody receives, keeps the deadlines, and ends the connection.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
};

use linerate_proto::{
    CloseCode,
    engine::{State, Timeout},
};
use tokio::io::AsyncWrite;

use super::{Connection, Link, READS_IN_A_ROW_MAX, Receiver, Tick, Until, alarm::Alarm};
use crate::{Error, Result, clock};

pin_project_lite::pin_project! {
    /// Drives a connection to its end, and runs the application's handler if there is one.
    ///
    /// When the handler is done and has dropped its handles, the connection is closed: with 1000,
    /// or with 1011 if it failed or panicked.
    ///
    /// A future by hand, because it stays in memory for as long as its connection: an `async fn`
    /// keeps a second copy of the handler.
    pub(crate) struct Driver<H> {
        #[pin]
        handler: H,
        guard: Guard,
        alarm: Alarm,
    }
}

impl<H> Driver<H> {
    pub(crate) fn new(link: Arc<Link>, handler: H, alarm: Alarm) -> Self {
        Self {
            handler,
            guard: Guard(link),
            alarm,
        }
    }
}

impl Driver<std::future::Pending<Result<()>>> {
    /// Creates a driver for a connection whose application runs elsewhere.
    pub(crate) fn without_handler(link: Arc<Link>) -> Self {
        link.lock().handler_done = true;
        Self::new(link, std::future::pending(), Alarm::own())
    }
}

impl<H: Future<Output = Result<()>>> Future for Driver<H> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let link = &this.guard.0;
        let mut handler_done = link.lock().start_drive(cx);
        if !handler_done {
            link.driver_active.store(true, Ordering::Relaxed);
            if let Poll::Ready(code) = poll_handler(this.handler, cx) {
                handler_done = true;
                link.lock().finish_handler(code);
            }
        }
        let connection_over = link.poll_drive(cx, this.alarm).is_ready();
        if connection_over && handler_done {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// Ends the connection if the driver's task is dropped, at the shutdown of the runtime for instance.
struct Guard(Arc<Link>);

impl Drop for Guard {
    fn drop(&mut self) {
        let mut connection = self.0.lock();
        if connection.io.is_some() {
            connection.end(Some(Error::Abnormal));
        }
        connection.driver = None;
    }
}

/// Polls the handler; when it is done, says with which code its connection is to be closed.
fn poll_handler<H>(handler: Pin<&mut H>, cx: &mut Context<'_>) -> Poll<CloseCode>
where
    H: Future<Output = Result<()>>,
{
    match catch_unwind(AssertUnwindSafe(|| handler.poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(Ok(()))) => Poll::Ready(CloseCode::NORMAL),
        Ok(Poll::Ready(Err(error))) => {
            tracing::debug!(%error, "connection handler failed");
            Poll::Ready(CloseCode::INTERNAL_ERROR)
        }
        Err(_) => {
            tracing::error!("connection handler panicked");
            Poll::Ready(CloseCode::INTERNAL_ERROR)
        }
    }
}

impl Link {
    /// Tells the driver that the tick has come for which its alarm was set.
    pub(crate) fn ring(&self, tick: Tick) {
        let mut connection = self.lock();
        if connection.alarm_set == Some(tick) {
            connection.alarm_set = None;
            connection.alarm_rang = true;
            connection.wake_driver();
        }
    }

    /// Does what can be done for the connection now; ready when it is over.
    fn poll_drive(&self, cx: &mut Context<'_>, alarm: &mut Alarm) -> Poll<()> {
        let mut connection = self.lock();
        let over = connection.poll_drive(cx, alarm);
        self.driver_active.store(false, Ordering::Relaxed);
        connection.driver_notified = false;
        connection.count_memory();
        connection.update_readiness();
        over
    }
}

impl Connection {
    /// Takes note of who drives; returns whether the handler is done.
    fn start_drive(&mut self, cx: &Context<'_>) -> bool {
        self.inbox.let_time_pass();
        match &mut self.driver {
            Some(waker) => waker.clone_from(cx.waker()),
            driver => *driver = Some(cx.waker().clone()),
        }
        self.handler_done
    }

    fn poll_drive(&mut self, cx: &mut Context<'_>, alarm: &mut Alarm) -> Poll<()> {
        if self.io.is_none() {
            return Poll::Ready(());
        }
        self.close_if_abandoned();
        if self.receiver == Receiver::Absent {
            self.read_ahead(cx);
        }
        loop {
            match self.poll_write(cx) {
                Poll::Ready(Ok(())) => {
                    self.wake_waiting(|until| matches!(until, Until::Room | Until::Written));
                    self.poll_end_stream(cx);
                    // Not before our Close frame is written: behind a peer's end of the stream
                    // nothing more would be.
                    if self.engine.is_input_over() {
                        self.drain(cx);
                    }
                }
                Poll::Ready(Err(error)) => self.end(Some(error.into())),
                Poll::Pending if self.is_full() && self.engine.state() == State::Open => {}
                Poll::Pending => self.wake_waiting(|until| until == Until::Room),
            }
            if self.io.is_none() {
                return Poll::Ready(());
            }
            ready!(self.poll_alarm(cx, alarm));
        }
    }

    /// Starts the closing handshake when the application has dropped all of its handles.
    fn close_if_abandoned(&mut self) {
        if self.handles == 0 {
            self.close_now(CloseCode::GOING_AWAY);
        }
    }

    /// Takes note that the handler is done; closes with `code` if it has dropped its handles.
    fn finish_handler(&mut self, code: CloseCode) {
        self.handler_done = true;
        if self.handles == 0 {
            self.close_now(code);
        }
    }

    fn close_now(&mut self, code: CloseCode) {
        self.receiver_gone = true;
        // Closing can't fail without a reason, and does nothing if it has begun.
        _ = self.engine.close(code, "", clock::now());
    }

    /// Reads for the sake of control frames and of the end of the stream; messages are queued.
    fn read_ahead(&mut self, cx: &mut Context<'_>) {
        let mut reads = 0;
        while self.io.is_some() && self.is_reading() {
            match self.inbox.queue_next(&mut self.engine, &mut self.outbox) {
                Ok(true) => self.queued(),
                Ok(false) if self.engine.is_input_over() => {
                    return self.wake_receiver();
                }
                Ok(false) => {
                    if reads == READS_IN_A_ROW_MAX {
                        return cx.waker().wake_by_ref();
                    }
                    reads += 1;
                    if self.poll_read(cx).is_pending() {
                        return;
                    }
                }
                Err(error) => self.fail(error.into()),
            }
        }
        #[cfg(feature = "http2")]
        if let Some(io) = &mut self.io {
            io.rest(cx);
        }
    }

    /// Returns whether more is to be read while nobody receives; makes room if it must.
    fn is_reading(&mut self) -> bool {
        let is_full = self.inbox.is_full(self.options.recv_queue_bytes_max);
        if self.receiver_gone {
            self.inbox.discard_queued();
        }
        // While closing, the peer's Close frame must be reached even if nobody receives.
        if self.receiver_gone || is_full && self.engine.state() != State::Open {
            self.inbox.stop_listening();
            return true;
        }
        !is_full
    }

    /// Takes note that a message was queued ahead of the application.
    fn queued(&mut self) {
        self.count_messages();
        self.wake_receiver();
    }

    /// Reads and forgets what the peer sends after the end of all that matters, until it closes.
    fn drain(&mut self, cx: &mut Context<'_>) {
        for _ in 0..READS_IN_A_ROW_MAX {
            if self.io.is_none() || self.poll_read(cx).is_pending() {
                return;
            }
            self.inbox.discard_input();
        }
        cx.waker().wake_by_ref();
    }

    /// Ends our side of the stream once both sides have said all they will.
    fn poll_end_stream(&mut self, cx: &mut Context<'_>) {
        if self.engine.is_input_over() && self.engine.is_output_over() {
            self.note_closed();
        }
        if !self.engine.ends_stream() || self.stream_shut_down {
            return;
        }
        let Some(io) = &mut self.io else { return };
        match Pin::new(io).poll_shutdown(cx) {
            Poll::Pending => {}
            // The peer closes next; until then its last bytes are read, so that our Close frame is
            // not lost to a reset.
            Poll::Ready(Ok(())) => self.stream_shut_down = true,
            Poll::Ready(Err(error)) => self.end(Some(error.into())),
        }
    }

    /// Keeps the deadlines; pending means that there is nothing more to do now.
    fn poll_alarm(&mut self, cx: &mut Context<'_>, alarm: &mut Alarm) -> Poll<()> {
        loop {
            let Some(due) = self.engine.poll_timeout() else {
                return Poll::Pending;
            };
            if !std::mem::take(&mut self.alarm_rang) {
                ready!(alarm.poll(cx, due, &mut self.alarm_set));
            }
            let now = clock::now();
            if self.inbox.is_full(self.options.recv_queue_bytes_max) {
                // Reading is paused because of the application; the peer is not to blame.
                self.engine.handle_input(&mut [], now);
            }
            match self.engine.handle_timeout(now) {
                Ok(()) if self.engine.wants_transmit() => return Poll::Ready(()),
                Ok(()) => {}
                Err(Timeout::Close { budget }) => {
                    let unclean = self.closed().is_none();
                    self.end(unclean.then_some(Error::CloseTimeout { budget }));
                    return Poll::Ready(());
                }
                Err(Timeout::Keepalive(error)) => {
                    self.fail(error.into());
                    return Poll::Ready(());
                }
                Err(_) => return Poll::Ready(()),
            }
        }
    }
}
