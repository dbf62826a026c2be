//! One client of an echo: sends windows of the script, checks the answers, closes and begins anew.

use std::io;

use linerate_proto::{CloseCode, Opcode};

use super::Plan;
use crate::load::check::{Check, masked_frame};
use crate::load::opening::{self, Opening};
use crate::load::socket::Socket;
use crate::load::{LoadError, Wire};

/// A connection and what is in flight on it.
#[derive(Debug)]
pub(super) struct Client {
    /// Which of all clients this is.
    number: usize,
    socket: Socket,
    stage: Stage,
    check: Check,
    /// The message of the cycle that is sent next.
    next: usize,
    /// Where in the requests the next byte to be sent is, and how many are to be sent from there.
    at: usize,
    unsent: usize,
    /// Messages that are not sent yet before the connection is closed.
    left: u64,
    /// Frames that belong to no window: Pongs and Close.
    control: Vec<u8>,
    control_sent: usize,
    /// When the window in flight was begun, as the caller counts time.
    window_start: u64,
    /// Grows whenever the server does something; while it stands still, the server is silent.
    activity: u64,
    /// Bytes of frames that came.
    received: u64,
}

#[derive(Debug)]
enum Stage {
    Closing,
    Open,
    Opening(Box<Opening>),
}

/// What became of a client when its socket was ready.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// Its connection is over, as it should be.
    Done,
    /// It goes on.
    GoesOn,
}

impl Client {
    /// Opens a connection and waits for it.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub(super) fn open(plan: &Plan<'_>, number: usize) -> Result<Self, LoadError> {
        let opened = opening::open(plan.target, plan.echo.deflate, plan.budget.silence_max)?;
        let mut client = Self::new(plan, number, opened.socket, Stage::Open);
        client.check.take(&plan.script, &opened.leftover)?;
        Ok(client)
    }

    /// Begins to open a connection, which goes on whenever the socket is ready.
    ///
    /// # Errors
    ///
    /// The server refuses, as far as that is known at once.
    pub(super) fn start(plan: &Plan<'_>, number: usize) -> Result<Self, LoadError> {
        let mut socket = Socket::connect(plan.target)?;
        let mut opening = Opening::new(plan.target, plan.echo.deflate)?;
        if plan.target.wire == Wire::WebSocket && !socket.is_encrypted() {
            // On loopback the connection stands as soon as it is asked for, so that the request can go out without a wait.
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

    /// Takes so many more messages to be sent, and sends what the socket takes.
    ///
    /// # Errors
    ///
    /// The connection broke.
    pub(super) fn send(&mut self, plan: &Plan<'_>, messages: u64) -> Result<(), LoadError> {
        self.enqueue(plan, messages);
        self.transmit(plan)
    }

    /// Sends the first window.
    ///
    /// # Errors
    ///
    /// The connection broke.
    pub(super) fn begin(&mut self, plan: &Plan<'_>, now: u64) -> Result<(), LoadError> {
        self.next_window(plan, now)?;
        self.transmit(plan)
    }

    /// Does what the socket is ready for: sends, receives, checks, and sends the next window once
    /// one has been answered. `ended` tells that the server will send no more; `now` tells the time
    /// when messages were answered, and `answered` is told how many, and how long ago their window
    /// was begun.
    ///
    /// # Errors
    ///
    /// The server failed.
    pub(super) fn handle_ready(
        &mut self,
        plan: &Plan<'_>,
        ended: bool,
        buffer: &mut [u8],
        now: impl Fn() -> u64,
        mut answered: impl FnMut(u64, u64, u64),
    ) -> Result<Outcome, LoadError> {
        if let Stage::Opening(opening) = &mut self.stage {
            let Some(leftover) = opening.drive(&mut self.socket)? else {
                return Ok(Outcome::GoesOn);
            };
            self.stage = Stage::Open;
            self.activity += 1;
            self.check.take(&plan.script, &leftover)?;
            self.begin(plan, now())?;
            if self.socket.drained() && !ended {
                return Ok(Outcome::GoesOn);
            }
        } else if ended && self.check.is_closed() {
            return Ok(Outcome::Done);
        } else {
            self.transmit(plan)?;
        }
        loop {
            let bytes = match self.socket.read(buffer) {
                Ok(0) => return self.handle_end(plan),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Outcome::GoesOn);
                }
                // The server has answered the Close frame: how it ends the connection is its own.
                Err(_) if self.check.is_closed() => return Ok(Outcome::Done),
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
                // The server's Close frame was the last that it sent: a read would only say so again.
                return Ok(Outcome::Done);
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
                return Ok(Outcome::GoesOn);
            }
        }
    }

    /// Drops the connection without ceremony.
    ///
    /// # Errors
    ///
    /// The socket cannot be told to.
    pub(super) fn abandon(self) -> Result<(), LoadError> {
        self.socket.abandon()
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(super) fn check(&self) -> &Check {
        &self.check
    }

    /// Returns how many bytes of frames have come.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Returns a number that grows whenever the server does something.
    pub(super) fn activity(&self) -> u64 {
        self.activity
    }

    /// Returns whether it is the server's turn.
    pub(super) fn waits(&self) -> bool {
        self.check.due() > 0 || !matches!(self.stage, Stage::Open)
    }

    /// Begins the next window, or the closing handshake behind the last one.
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
            // The reason may be a Close frame that is yet to be read.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(LoadError::of_socket(error)),
            Ok(()) => Ok(()),
        }
    }

    /// Writes all there is. A control frame waits for the requests, since it must not come within
    /// one, unless it is begun.
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
            // What is sent on a schedule tells nothing about the server.
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

    /// Judges the end of the stream.
    fn handle_end(&self, plan: &Plan<'_>) -> Result<Outcome, LoadError> {
        match (&self.stage, plan.target.wire) {
            (Stage::Closing, Wire::Raw) => Ok(Outcome::Done),
            (Stage::Closing, Wire::WebSocket) if self.check.is_closed() => Ok(Outcome::Done),
            (Stage::Closing, Wire::WebSocket) => Err(LoadError::CloseUnanswered),
            (Stage::Open | Stage::Opening(_), _) => Err(LoadError::Ended),
        }
    }
}
