//! The one task that is responsible for a connection: it runs the handler if there is one, writes
//! what is queued, reads while the application does not receive, enforces the deadlines, and ends
//! the connection.

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

use super::{
    Connection, Link, Mode, Receiver, WaitReason, alarm::Alarm, inbox::Parsed, tick::Tick,
};
use crate::{Error, Result, clock, pool::ReadSize, runtime::RuntimeHandle};

pin_project_lite::pin_project! {
    /// Drives a connection to its end, and runs the application's handler if there is one.
    ///
    /// When the handler has completed and dropped its handles, the connection is closed: with code
    /// 1000, or with 1011 if the handler failed or panicked.
    ///
    /// This is a hand-written future because it stays in memory as long as its connection, and an
    /// `async fn` would keep a second copy of the handler.
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

/// The largest driver that fits in a task of 256 bytes, in bytes. Tokio rounds tasks up to
/// multiples of 128 bytes and adds 96 bytes to a future; mimalloc takes 512 bytes for 384 that are
/// aligned to 128.
const DRIVER_BYTES_MAX: usize = 160;

impl<H: Future<Output = Result<()>> + Send + 'static> Driver<H> {
    /// Starts the task of the driver.
    ///
    /// A large driver is allocated separately, because that wastes less memory than a large task.
    pub(crate) fn spawn(self, runtime: &RuntimeHandle) {
        if size_of::<Self>() > DRIVER_BYTES_MAX {
            runtime.spawn(Box::pin(self));
        } else {
            runtime.spawn(self);
        }
    }
}

impl Driver<std::future::Pending<Result<()>>> {
    /// Creates a driver for a connection whose application runs elsewhere.
    pub(crate) fn without_handler(link: Arc<Link>, runtime: &RuntimeHandle) -> Self {
        link.lock().driver.is_handler_done = true;
        Self::new(link, std::future::pending(), Alarm::own(runtime))
    }
}

impl<H: Future<Output = Result<()>>> Future for Driver<H> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        drive(this.handler, this.guard, this.alarm, cx)
    }
}

/// Runs the handler and does everything that can be done for the connection now; ready when both
/// are done.
pub(super) fn drive<H>(
    handler: Pin<&mut H>,
    guard: &Guard,
    alarm: &mut Alarm,
    cx: &mut Context<'_>,
) -> Poll<()>
where
    H: Future<Output = Result<()>>,
{
    let link = &guard.0;
    let mut is_handler_done = link.lock().start_drive(cx);
    if !is_handler_done {
        link.driver_active.store(true, Ordering::Relaxed);
        if let Poll::Ready(code) = poll_handler(handler, cx) {
            is_handler_done = true;
            link.lock().finish_handler(code);
        }
    }
    let connection_over = link.poll_drive(cx, alarm).is_ready();
    if connection_over && is_handler_done {
        return Poll::Ready(());
    }
    Poll::Pending
}

/// Ends the connection if the driver's task is dropped, for instance when the runtime shuts down.
pub(super) struct Guard(pub(super) Arc<Link>);

impl Drop for Guard {
    fn drop(&mut self) {
        let mut connection = self.0.lock();
        if connection.io.is_some() {
            connection.end(Some(Error::Abnormal));
        }
        connection.driver.end();
    }
}

/// Polls the handler; once it has completed, returns the code with which to close its connection.
pub(super) fn poll_handler<H>(handler: Pin<&mut H>, cx: &mut Context<'_>) -> Poll<CloseCode>
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
    /// Wakes the driver at `tick` if its alarm is set for that tick.
    pub(super) fn ring(&self, tick: Tick) {
        self.lock().driver.ring(tick);
    }

    /// Does everything that can be done for the connection now; ready when the connection is over.
    fn poll_drive(&self, cx: &mut Context<'_>, alarm: &mut Alarm) -> Poll<()> {
        let mut connection = self.lock();
        let over = connection.poll_drive(cx, alarm);
        self.driver_active.store(false, Ordering::Relaxed);
        connection.driver.end_turn();
        connection.release_queues();
        connection.count_memory();
        connection.update_readiness();
        over
    }
}

impl Connection {
    /// Stores the driver's waker; returns whether the handler has completed.
    fn start_drive(&mut self, cx: &Context<'_>) -> bool {
        self.inbox.let_time_pass();
        self.driver.start_turn(cx);
        self.driver.is_handler_done
    }

    fn poll_drive(&mut self, cx: &mut Context<'_>, alarm: &mut Alarm) -> Poll<()> {
        if self.io.is_none() {
            return Poll::Ready(());
        }
        self.close_if_abandoned();
        if matches!(self.receiver, Receiver::Absent | Receiver::Gone) {
            self.read_ahead(cx);
        }
        loop {
            match self.poll_write(cx) {
                Poll::Ready(Ok(())) => {
                    self.wake_waiting(|until| {
                        matches!(until, WaitReason::Room | WaitReason::Written)
                    });
                    self.poll_end_stream(cx);
                    // This must not happen before our Close frame is written, because the
                    // connection ends when the peer's stream does.
                    if self.engine.is_input_over() {
                        self.drain(cx);
                    }
                }
                Poll::Ready(Err(error)) => self.end(Some(error.into())),
                Poll::Pending if self.is_full() && self.engine.state() == State::Open => {}
                Poll::Pending => self.wake_waiting(|until| until == WaitReason::Room),
            }
            if self.io.is_none() {
                return Poll::Ready(());
            }
            ready!(self.poll_alarm(cx, alarm));
        }
    }

    /// Starts the closing handshake if the application has dropped all of its handles.
    fn close_if_abandoned(&mut self) {
        if self.handles == 0 {
            self.close_now(CloseCode::GOING_AWAY);
        }
    }

    /// Records that the handler has completed; closes the connection with `code` if all handles
    /// have been dropped.
    fn finish_handler(&mut self, code: CloseCode) {
        self.driver.is_handler_done = true;
        if self.handles == 0 {
            self.close_now(code);
        }
    }

    fn close_now(&mut self, code: CloseCode) {
        self.receiver = Receiver::Gone;
        // Closing without a reason cannot fail, and has no effect if closing has already begun.
        _ = self.engine.close(code, "", clock::now());
    }

    /// Reads in order to process control frames and the end of the stream; messages are queued.
    fn read_ahead(&mut self, cx: &mut Context<'_>) {
        while self.io.is_some() && self.is_reading() {
            if self.inbox.turn.is_over() {
                return self.inbox.turn.yield_to_others(cx);
            }
            match self.inbox.parse(&mut self.engine, Mode::Ahead) {
                Ok(Parsed::Item(chunk)) => {
                    self.inbox.queue(chunk);
                    self.count_messages();
                    self.wake_receiver();
                    continue;
                }
                Ok(Parsed::Nothing) => {}
                Ok(Parsed::Control(control)) => {
                    self.handle_control(control);
                    continue;
                }
                Err(error) => self.fail((*error).into()),
            }
            if self.engine.is_input_over() {
                return self.wake_receiver();
            }
            if self.inbox.turn.is_over() {
                continue;
            }
            // Not more at once, because the queue is limited.
            if self.poll_read(cx, ReadSize::Usual).is_pending() {
                return self.inbox.turn.restart();
            }
            self.inbox.turn.count_read(ReadSize::Usual);
        }
        #[cfg(feature = "http2")]
        if let Some(io) = &mut self.io {
            io.hold(cx);
        }
    }

    /// Returns whether to keep reading while the application does not receive; makes room if
    /// necessary.
    fn is_reading(&mut self) -> bool {
        let is_full = self.inbox.is_full(self.options.recv_queue_bytes_max);
        let is_gone = self.receiver == Receiver::Gone;
        if is_gone {
            self.inbox.discard_queued();
        }
        // While closing, we must reach the peer's Close frame even if the application does not
        // receive.
        if is_gone || is_full && self.engine.state() != State::Open {
            self.inbox.stop_listening();
            return true;
        }
        !is_full
    }

    /// Reads and discards what the peer sends after the closing handshake, until the peer closes
    /// the stream.
    fn drain(&mut self, cx: &mut Context<'_>) {
        while !self.inbox.turn.is_over() {
            if self.io.is_none() || self.poll_read(cx, ReadSize::Usual).is_pending() {
                return self.inbox.turn.restart();
            }
            self.inbox.turn.count_read(ReadSize::Usual);
            self.inbox.discard_input();
        }
        self.inbox.turn.yield_to_others(cx);
    }

    /// Ends our side of the stream once both sides have sent everything.
    fn poll_end_stream(&mut self, cx: &mut Context<'_>) {
        if self.engine.is_input_over() && self.engine.is_output_over() {
            self.note_closed();
        }
        if !self.engine.ends_stream() || self.is_shut_down {
            return;
        }
        let Some(io) = &mut self.io else { return };
        match Pin::new(io).poll_shutdown(cx) {
            Poll::Pending => {}
            // The peer closes next. Before that, its last bytes are read, so that our Close frame
            // is not lost to a reset.
            Poll::Ready(Ok(())) => self.is_shut_down = true,
            Poll::Ready(Err(error)) => self.end(Some(error.into())),
        }
    }

    /// Enforces the deadlines; pending means that there is nothing more to do now.
    fn poll_alarm(&mut self, cx: &mut Context<'_>, alarm: &mut Alarm) -> Poll<()> {
        loop {
            let Some(due) = self.engine.poll_timeout() else {
                return Poll::Pending;
            };
            ready!(self.driver.poll_alarm(cx, alarm, due));
            let now = clock::now();
            if self.inbox.is_full(self.options.recv_queue_bytes_max) {
                // Reading is paused because of the application, so the peer must not be timed out.
                self.engine.handle_input(&mut [], now);
            }
            match self.engine.handle_timeout(now) {
                Ok(()) if self.engine.wants_transmit() => return Poll::Ready(()),
                Ok(()) => {}
                Err(Timeout::Close { budget }) => {
                    let unclean = !self.has_ended();
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
