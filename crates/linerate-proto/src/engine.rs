//! The connection after the opening handshake, as a state machine (RFC 6455 §5–§7).
//!
//! [`Engine`] has roughly four kinds of methods, in the order of use:
//!
//! - Input: [`Engine::handle_input`] takes the bytes of a read and yields [`Event`]s that borrow
//!   from them; [`Engine::handle_eof`] takes the end of the stream.
//! - Output: the `send_*` methods append messages to the caller's buffer, and
//!   [`Engine::poll_transmit`] the control frames that are due.
//! - Time: [`Engine::poll_timeout`] returns when to call [`Engine::handle_timeout`]. Times are
//!   `Duration`s since a fixed moment that the caller chooses.
//! - The closing handshake: [`Engine::close`] begins it, and [`Engine::state`] returns how far it
//!   is.
//!
//! [`Engine::export`] and [`Importer`] move the connection to another process.

mod closing;
#[cfg(feature = "deflate")]
mod deflated;
mod event;
mod framing;
mod keepalive;
mod lazy_state;
mod payload;
mod portable;
mod receive;
mod send;
mod unread;

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use linerate_simd::utf8::InPlacePayloads;

#[cfg(feature = "deflate")]
use crate::deflate::{Agreement, Codec, Context, Deflate, Pool};
use crate::{
    close::{CloseFrame, ControlPayload},
    close_code::CloseCode,
    config::Config,
    error::{ProtocolError, SendError},
    opcode::Opcode,
    role::{Endpoint, Role},
};

use closing::Closing;
use framing::{Arriving, Receiving, WholeMessage};
use keepalive::{Keepalive, Time, time};
use lazy_state::LazyState;
use send::Sending;

pub use crate::opcode::MessageKind;
pub use closing::{Closed, Initiator, State};
pub use event::{Chunk, Data, Event, InPlaceMessage, Message, RawEvent};
pub use keepalive::Timeout;
pub use portable::Importer;
pub use receive::Events;

/// One end of an open WebSocket connection, without I/O.
#[derive(Debug)]
pub struct Engine<E> {
    config: Arc<Config>,
    receiving: Receiving,
    sending: Sending<E>,
    closing: Closing,
    keepalive: Keepalive,
    /// The opcode of the queued answer, until [`Engine::poll_transmit`] appends it.
    answer_due: Option<Opcode>,
    lazy: LazyState,
}

impl<E: Endpoint> Engine<E> {
    /// Creates an engine for a connection whose opening handshake ended at `now`.
    ///
    /// Any number of engines can share one `Config` through clones of the `Arc`.
    pub fn new(endpoint: E, config: Arc<Config>, now: Duration) -> Self {
        Self {
            config,
            receiving: Receiving::default(),
            sending: Sending::new(endpoint),
            closing: Closing::new(),
            keepalive: Keepalive::new(time(now)),
            answer_due: None,
            lazy: LazyState::default(),
        }
    }

    /// Enables compression with the parameters that the opening handshake negotiated, taking
    /// compression states from `pool`.
    ///
    /// Messages that are not worth compressing are sent uncompressed; `options` holds the remaining
    /// settings. Call this before passing any input.
    #[cfg(feature = "deflate")]
    pub fn with_deflate(
        mut self,
        agreement: Agreement,
        options: &Deflate,
        pool: &'static dyn Pool,
    ) -> Self {
        self.lazy.set_codec(Codec::new(agreement, options, pool));
        self.receiving.rsv_known = deflated::RSV1;
        self
    }

    /// Exchanges the settings, for a caller whose limits depend on how it receives a message.
    ///
    /// # Errors
    /// The message that is arriving exceeds the new limits already. The connection has then failed,
    /// as in [`Events::next`]. Limits on decompressed bytes apply when more of them arrive.
    pub fn swap_config(&mut self, other: &mut Arc<Config>) -> Result<(), ProtocolError> {
        core::mem::swap(&mut self.config, other);
        let checked = self.receiving.check_message(&self.config.limits);
        if let Err(error) = &checked {
            self.fail(error);
        }
        checked
    }

    /// Processes the bytes of a read and yields the events that they contain.
    ///
    /// The input is unmasked in place. Pass each byte only once: iterate until `None`, or keep the
    /// bytes after [`Events::consumed`] and pass them again before any new ones.
    #[inline]
    pub fn handle_input<'e, 'i>(
        &'e mut self,
        input: &'i mut [u8],
        now: Duration,
    ) -> Events<'e, 'i, E> {
        let in_frame = !matches!(self.receiving.frame, Arriving::Nothing);
        self.keepalive
            .handle_input(input.len(), in_frame, time(now));
        Events::new(self, input)
    }

    /// Takes the message at `at` in `input` if it is complete and in one frame: unmasks it in place
    /// and validates it if it is text.
    ///
    /// Returns `None` and changes nothing in all other cases; call
    /// [`handle_input`](Self::handle_input) then.
    ///
    /// This is for callers that use the engine, or inspect the whole input, while they hold a
    /// message. This method does not learn the time, so call [`handle_input`](Self::handle_input)
    /// once for each read, with empty input if nothing is left.
    ///
    /// `role` must be the endpoint's. If the endpoint chooses its role at run time, passing a
    /// constant here avoids the branches for the other role.
    ///
    /// # Errors
    /// Fails if a text message is not UTF-8. The connection has then failed, as in
    /// [`Events::next`].
    ///
    /// # Panics
    /// Panics if `at` is greater than the length of `input`.
    #[inline(always)]
    pub fn take_message<'i>(
        &mut self,
        role: Role,
        input: &'i mut [u8],
        at: usize,
    ) -> Option<Result<InPlaceMessage<'i>, ProtocolError>> {
        let whole = self.whole_message(&input[at..], role)?;
        Some(match whole.take(input, at) {
            Ok(taken) => Ok(taken),
            Err(valid_up_to) => Err(self.fail_text(0, valid_up_to)),
        })
    }

    /// Takes the message at `at` in the input of `payloads` like
    /// [`take_message`](Self::take_message), and lists its payload there; returns where it ends.
    ///
    /// This is for callers that collect all messages of a read before they process any of them.
    ///
    /// # Errors
    /// A text message is not UTF-8. Unlike [`take_message`](Self::take_message), this does not fail
    /// the connection yet, because the messages before may still be answered: call
    /// [`fail`](Self::fail) afterwards.
    ///
    /// # Panics
    /// Panics if `at` is not within the input, or before the end of the last payload.
    #[inline(always)]
    pub fn list_message(
        &mut self,
        role: Role,
        payloads: &mut InPlacePayloads,
        at: usize,
    ) -> Option<Result<usize, ProtocolError>> {
        let whole = self.whole_message(&payloads.input()[at..], role)?;
        let listed = whole.list(payloads, at);
        Some(listed.map_err(|valid_up_to| ProtocolError::InvalidUtf8 {
            offset: valid_up_to as u64,
        }))
    }

    /// Returns whether `input` begins with a frame after which no more messages follow: a Close
    /// frame, or one whose header violates the protocol.
    ///
    /// A caller that collects messages with [`list_message`](Self::list_message) stops there, so
    /// that it can answer them before the connection starts to close.
    pub fn is_end_of_messages(&self, input: &[u8]) -> bool {
        let role = self.endpoint().role();
        let limits = &self.config.limits;
        self.receiving.is_end_of_messages(input, role, limits)
    }

    /// Returns how many bytes of the payload that is arriving are still to come; 0 if none is, or
    /// if it belongs to a control frame or a compressed message.
    ///
    /// Up to this many bytes can be read into the memory in which the message stays, and unmasked
    /// there: pass them to [`handle_input`](Self::handle_input), which then yields one
    /// [`RawEvent::Data`].
    pub fn payload_bytes_left(&self) -> u64 {
        self.receiving.payload_bytes_left()
    }

    /// Records that the stream ended and returns how the connection ended.
    pub fn handle_eof(&mut self) -> Closed {
        let clean = self.state() == State::Closed;
        if self.closing.is_input_open() {
            self.stop_input();
        }
        if self.closing.is_output_open() {
            self.closing.fail_output();
        }
        self.answer_due = None;
        self.keepalive.cancel_ping();
        self.closing.ended(clean)
    }

    /// Returns bytes that are equivalent to the input that was taken but not reported in any event.
    ///
    /// Another reader of the connection must read them before the input that follows. They are the
    /// beginning of a header, a header for the remaining payload of a data frame, or the beginning
    /// of a control frame.
    ///
    /// Returns `None` if messages may be compressed: another reader could not continue, because
    /// later messages refer back to earlier ones.
    pub fn unread(&self) -> Option<Vec<u8>> {
        #[cfg(feature = "deflate")]
        if self.lazy.codec().is_some() {
            return None;
        }
        Some(self.receiving.unread())
    }

    /// Appends the control frames that are due to `out`: the answer to the newest Ping, a keepalive
    /// Ping, our Close frame. Returns whether there were any.
    ///
    /// Call this whenever your output is at a frame boundary and earlier control frames have been
    /// written. A flood of Pings then costs only one Pong per call (§5.5.3: "MAY elect to send a
    /// Pong frame for only the most recently processed Ping frame").
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        if let Some(ping) = self.keepalive.take_ping() {
            self.sending.append_frame(out, true, Opcode::Ping, &ping);
        }
        if let Some(opcode) = self.answer_due.take() {
            let payload = self.lazy.answer();
            self.sending.append_frame(out, true, opcode, payload);
        }
        out.len() > before
    }

    /// Returns whether [`poll_transmit`](Self::poll_transmit) has anything to append.
    pub fn wants_transmit(&self) -> bool {
        self.answer_due.is_some() || self.keepalive.is_ping_due()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, `None` if not at all.
    ///
    /// Input can only move this deadline to a later time. A caller may therefore keep its timer and
    /// call this again when the timer fires too early.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let is_closing = !self.closing.is_output_open();
        let deadline = self.keepalive.deadline(&self.config, is_closing);
        deadline.map(Duration::from_nanos)
    }

    /// Does what is due at `now`: queues a keepalive Ping for
    /// [`poll_transmit`](Self::poll_transmit), or reports that the peer exceeded a deadline.
    ///
    /// # Errors
    /// Fails if the peer did not answer a keepalive Ping (a Close frame is then queued and the
    /// timeout of the closing handshake starts), or if the closing handshake took too long and the
    /// caller must drop the connection.
    pub fn handle_timeout(&mut self, now: Duration) -> Result<(), Timeout> {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return Ok(());
        }
        let now = time(now);
        let is_closing = !self.closing.is_output_open();
        let handled = self.keepalive.handle_timeout(now, &self.config, is_closing);
        if let Err(Timeout::Keepalive(error)) = &handled {
            self.fail_at(error, now);
        }
        #[cfg(feature = "deflate")]
        if handled.is_ok()
            && let Some(codec) = self.lazy.codec_mut()
        {
            codec.tick();
        }
        handled
    }

    /// Starts the closing handshake: queues a Close frame for
    /// [`poll_transmit`](Self::poll_transmit).
    ///
    /// Messages keep arriving until the peer's Close frame; nothing more can be sent. Does nothing
    /// if the connection is already closing.
    ///
    /// # Errors
    /// Fails if `reason` has more than 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str, now: Duration) -> Result<(), SendError> {
        let payload = ControlPayload::close(Some(code), reason)?;
        if self.closing.is_output_open() {
            self.queue_close(payload.as_slice(), time(now));
        }
        Ok(())
    }

    /// Fails the connection (§7.1.7): queues a Close frame with the error's code and ignores all
    /// further input.
    ///
    /// The engine does this itself for the errors that it finds. Call it only for an error that
    /// the caller finds in the data of [`Events::next_raw`].
    pub fn fail(&mut self, error: &ProtocolError) {
        self.fail_at(error, self.keepalive.last_input());
    }

    /// Returns the state.
    #[inline]
    pub fn state(&self) -> State {
        self.closing.state(self.answer_due.is_some())
    }

    /// Returns whether further input is ignored: the peer's Close frame has arrived, or the
    /// connection failed.
    #[inline]
    pub fn is_input_over(&self) -> bool {
        !self.closing.is_input_open()
    }

    /// Returns whether [`poll_transmit`](Self::poll_transmit) has appended our Close frame, after
    /// which there is never any output.
    pub fn is_output_over(&self) -> bool {
        !self.closing.is_output_open() && self.answer_due.is_none()
    }

    /// Returns our Close frame, even if it could not be delivered, and which side sent the first
    /// one; `None` if we have not sent any.
    pub fn sent_close(&self) -> Option<(CloseFrame<'_>, Initiator)> {
        let initiator = self.closing.initiator()?;
        let frame = CloseFrame::decode(self.lazy.answer()).ok()?;
        Some((frame, initiator))
    }

    /// Returns whether our side should end the stream once the output is written.
    ///
    /// §7.1.1: the server closes the TCP connection first. A client waits for that until the
    /// closing handshake times out, unless the peer violated the protocol.
    pub fn ends_stream(&self) -> bool {
        self.is_output_over()
            && self.is_input_over()
            && (self.endpoint().role() == Role::Server || self.closing.has_input_failed())
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the endpoint: the role and the source of masking keys.
    #[inline]
    pub const fn endpoint(&self) -> &E {
        &self.sending.endpoint
    }

    /// Returns the time between the most recent answered keepalive Ping and its Pong.
    pub fn latency(&self) -> Option<Duration> {
        self.keepalive.latency()
    }

    /// Returns how this side compresses its messages; `None` if it does not compress them.
    #[cfg(feature = "deflate")]
    pub fn compression(&self) -> Option<Context> {
        self.lazy.codec().map(Codec::sending)
    }

    /// Returns whether [`send`](Self::send) would try to compress this payload.
    #[cfg(feature = "deflate")]
    #[inline]
    pub fn would_deflate(&self, payload: &[u8]) -> bool {
        let codec = self.lazy.codec();
        codec.is_some_and(|codec| codec.is_worth(payload))
    }

    /// Returns the message at the start of `input` if it is complete, in one frame and valid.
    #[inline(always)]
    fn whole_message(&self, input: &[u8], role: Role) -> Option<WholeMessage> {
        if !self.closing.is_input_open() {
            return None;
        }
        self.receiving
            .whole_message(input, role, &self.config.limits)
    }

    /// Answers the peer's Close frame.
    fn answer_close(&mut self, code: Option<CloseCode>) {
        self.closing.handle_close(code);
        if self.closing.is_output_open() {
            // §5.5.1: "the endpoint MUST send a Close frame in response". We echo the code only,
            // because the reason is text that the peer controls.
            let code = code.map(|code| code.as_u16().to_be_bytes());
            let payload = code.as_ref().map_or(&[][..], |code| code);
            self.queue_close(payload, self.keepalive.last_input());
        }
    }

    // Never inlined: a loop over events would then keep each event in memory (15 instructions more
    // per read of one byte, see `tests/it/feed_cost.rs`).
    #[cold]
    #[inline(never)]
    fn fail_at(&mut self, error: &ProtocolError, now: Time) {
        self.stop_input();
        if self.closing.is_output_open() {
            self.queue_close(&error.close_code().as_u16().to_be_bytes(), now);
        }
    }

    /// Ignores all input from now on.
    fn stop_input(&mut self) {
        self.closing.fail_input();
        self.receiving.frame = Arriving::Nothing;
        #[cfg(feature = "deflate")]
        if let Some(codec) = self.lazy.codec_mut() {
            codec.stop();
        }
    }

    /// Queues our Close frame, in place of an answer to a Ping, and starts the timeout of the
    /// closing handshake.
    fn queue_close(&mut self, payload: &[u8], now: Time) {
        self.lazy.set_answer(payload);
        self.answer_due = Some(Opcode::Close);
        self.closing.close_output();
        self.keepalive.handle_close(now);
    }
}
