//! One client of an echo: sends windows of the script, checks the answers, closes and reconnects.

use std::io::{self, Read as _, Write as _};
use std::ops::ControlFlow;

use linerate_harness::socket::Socket;
use linerate_proto::{CloseCode, Opcode};

use super::Plan;
use crate::load::check::{Check, masked_frame};
use crate::load::opening::{self, Opening};
use crate::load::{LoadError, Wire};

/// A connection and the messages in flight on it.
#[derive(Debug)]
pub(super) struct Client {
    /// Number of this client among all clients.
    pub(super) number: usize,
    pub(super) socket: Socket,
    stage: Stage,
    pub(super) check: Check,
    /// Index in the cycle of the message that is sent next.
    next: usize,
    /// Position of the next unsent byte in the requests, and how many bytes to send from there.
    at: usize,
    unsent: usize,
    /// Number of messages still to be sent before the connection is closed.
    left: u64,
    /// Frames that are not part of a window: Pongs and Close.
    control: Vec<u8>,
    control_sent: usize,
    /// Time at which the window in flight was started, on the caller's clock.
    window_start: u64,
    /// Grows whenever the server does something. The server is silent while this does not change.
    pub(super) activity: u64,
    /// Number of bytes of frames that have arrived.
    pub(super) received: u64,
}

#[derive(Debug)]
enum Stage {
    Closing,
    Open,
    Opening(Box<Opening>),
}

impl Client {
    /// Opens a connection and waits until it is open.
    pub(super) fn open(plan: &Plan<'_>, number: usize) -> Result<Self, LoadError> {
        let opened = opening::open(plan.target, plan.echo.deflate, plan.budget.silence_max)?;
        let mut client = Self::new(plan, number, opened.socket, Stage::Open);
        client.check.take(&plan.script, &opened.leftover)?;
        Ok(client)
    }

    /// Begins to open a connection. The opening continues whenever the socket is ready.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is already known to refuse.
    pub(super) fn start(plan: &Plan<'_>, number: usize) -> Result<Self, LoadError> {
        let mut socket = opening::connect(plan.target)?;
        let mut opening = Opening::new(plan.target, plan.echo.deflate)?;
        if plan.target.wire == Wire::WebSocket && !socket.is_encrypted() {
            // On loopback the connection is established at once, so the request can be sent without
            // a wait.
            opening.drive(&mut socket)?;
        }
        let stage = Stage::Opening(Box::new(opening));
        Ok(Self::new(plan, number, socket, stage))
    }

    fn new(plan: &Plan<'_>, number: usize, socket: Socket, stage: Stage) -> Self {
        let first = plan.script.first(number);
        Self {
            number,
            socket,
            stage,
            check: Check::new(&plan.script, first),
            next: first,
            at: plan.script.request_start(first),
            unsent: 0,
            left: plan.echo.messages.map_or(u64::MAX, u64::from),
            control: Vec::new(),
            control_sent: 0,
            window_start: 0,
            activity: 0,
            received: 0,
        }
    }

    /// Queues `messages` more messages and sends what the socket accepts.
    pub(super) fn send(&mut self, plan: &Plan<'_>, messages: u64) -> Result<(), LoadError> {
        self.enqueue(plan, messages);
        self.transmit(plan)
    }

    /// Sends the first window.
    pub(super) fn begin(&mut self, plan: &Plan<'_>, now: u64) -> Result<(), LoadError> {
        self.next_window(plan, now)?;
        self.transmit(plan)
    }

    /// Does what the socket is ready for: sends, receives, checks, and sends the next window once
    /// the current one has been answered.
    ///
    /// Breaks when the connection has ended as it should.
    ///
    /// `ended` is true if the server will send no more. `now` returns the current time. `answered`
    /// is called with the time, the age of the window and the number of messages that were
    /// answered.
    pub(super) fn handle_ready(
        &mut self,
        plan: &Plan<'_>,
        ended: bool,
        buffer: &mut [u8],
        now: impl Fn() -> u64,
        mut answered: impl FnMut(u64, u64, u64),
    ) -> Result<ControlFlow<()>, LoadError> {
        if let Stage::Opening(opening) = &mut self.stage {
            let Some(leftover) = opening.drive(&mut self.socket)? else {
                return Ok(ControlFlow::Continue(()));
            };
            self.stage = Stage::Open;
            self.activity += 1;
            self.check.take(&plan.script, &leftover)?;
            self.begin(plan, now())?;
            if self.socket.drained() && !ended {
                return Ok(ControlFlow::Continue(()));
            }
        } else if ended && self.check.is_closed() {
            return Ok(ControlFlow::Break(()));
        } else {
            self.transmit(plan)?;
        }
        loop {
            let bytes = match self.socket.read(buffer) {
                Ok(0) => return self.handle_end(plan),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(ControlFlow::Continue(()));
                }
                // The server has answered the Close frame. How it ends the connection after that is
                // up to it.
                Err(_) if self.check.is_closed() => return Ok(ControlFlow::Break(())),
                Err(error) => return Err(LoadError::of_socket(error)),
            };
            self.activity += bytes as u64;
            self.received += bytes as u64;
            let before = self.check.answered();
            self.check.take(&plan.script, &buffer[..bytes])?;
            if let Some(pongs) = self.check.take_pongs() {
                self.control.extend(pongs);
                self.transmit(plan)?;
            }
            if ended && self.check.is_closed() && self.socket.drained() {
                // The server sends nothing after its Close frame, and another read would only
                // confirm that.
                return Ok(ControlFlow::Break(()));
            }
            let messages = self.check.answered() - before;
            if messages > 0 {
                let now = now();
                answered(now, now.saturating_sub(self.window_start), messages);
                if self.check.due() == 0 && plan.echo.rate.is_none() {
                    self.next_window(plan, now)?;
                }
            }
            self.transmit(plan)?;
            if self.socket.drained() && !ended {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    /// Closes the connection without a closing handshake.
    pub(super) fn abandon(self) -> Result<(), LoadError> {
        self.socket.abandon().map_err(LoadError::of_socket)
    }

    /// Returns whether the client waits for the server.
    pub(super) fn waits(&self) -> bool {
        self.check.due() > 0 || !matches!(self.stage, Stage::Open)
    }

    /// Begins the next window, or the closing handshake after the last one.
    fn next_window(&mut self, plan: &Plan<'_>, now: u64) -> Result<(), LoadError> {
        let window = u64::from(plan.echo.window).min(self.left);
        if window == 0 {
            return self.close(plan);
        }
        self.left -= window;
        self.window_start = now;
        self.enqueue(plan, window);
        Ok(())
    }

    fn close(&mut self, plan: &Plan<'_>) -> Result<(), LoadError> {
        self.stage = Stage::Closing;
        match plan.target.wire {
            Wire::Raw => self.socket.end().map_err(LoadError::of_socket),
            Wire::WebSocket => {
                let code = CloseCode::NORMAL.as_u16().to_be_bytes();
                self.control.extend(masked_frame(Opcode::Close, &code));
                self.check.expect_close();
                Ok(())
            }
        }
    }

    fn enqueue(&mut self, plan: &Plan<'_>, messages: u64) {
        let (bytes, next) = plan.script.request_span(self.next, messages as usize);
        self.next = next;
        self.unsent += bytes;
        self.check.expect(&plan.script, messages);
    }

    fn transmit(&mut self, plan: &Plan<'_>) -> Result<(), LoadError> {
        match self.write(plan) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            // The reason may be in a Close frame that has not been read yet.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(LoadError::of_socket(error)),
            Ok(()) => Ok(()),
        }
    }

    /// Writes everything that is queued. A control frame must not be sent within a request, so it
    /// waits until the requests are sent, unless part of it has been sent already.
    fn write(&mut self, plan: &Plan<'_>) -> io::Result<()> {
        self.socket.flush()?;
        if self.control_sent > 0 {
            self.write_control()?;
        }
        let requests = plan.script.requests();
        while self.unsent > 0 {
            let bytes = self
                .unsent
                .min(requests.len() - self.at)
                .min(plan.write_bytes_max);
            let written = self.socket.write(&requests[self.at..self.at + bytes])?;
            // Messages sent on a schedule say nothing about the server.
            if plan.echo.rate.is_none() {
                self.activity += written as u64;
            }
            self.unsent -= written;
            self.at += written;
            if self.at == requests.len() {
                self.at = 0;
            }
        }
        self.write_control()
    }

    fn write_control(&mut self) -> io::Result<()> {
        while self.control_sent < self.control.len() {
            self.control_sent += self.socket.write(&self.control[self.control_sent..])?;
        }
        self.control.clear();
        self.control_sent = 0;
        Ok(())
    }

    /// Decides whether the end of the stream was expected.
    fn handle_end(&self, plan: &Plan<'_>) -> Result<ControlFlow<()>, LoadError> {
        match (&self.stage, plan.target.wire) {
            (Stage::Closing, Wire::Raw) => Ok(ControlFlow::Break(())),
            (Stage::Closing, Wire::WebSocket) if self.check.is_closed() => {
                Ok(ControlFlow::Break(()))
            }
            (Stage::Closing, Wire::WebSocket) => Err(LoadError::CloseUnanswered),
            (Stage::Open | Stage::Opening(_), _) => Err(LoadError::Ended),
        }
    }
}
