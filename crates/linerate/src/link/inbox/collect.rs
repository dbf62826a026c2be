//! Collecting all messages of a read at once.

use linerate_proto::{Endpoint, Engine, ProtocolError, Role, engine::RawEvent};

use super::{
    Chunk, Control, EngineLimits, Inbox, Incoming, Mode, Parsed, Parsing, PongMark, Side, Unparsed,
};
use crate::batch::{Batch, Collected, MessageCow};

/// What comes after a part of the input.
enum Next {
    /// The input at this offset.
    At(usize),
    /// Nothing, because the connection fails.
    Error(Box<ProtocolError>),
}

impl Inbox {
    /// Collects the messages in the queue or, if that is empty, all messages in the input. Control
    /// frames are passed to `handle_control`.
    ///
    /// Input is left if the turn is over.
    ///
    /// A batch ends before a frame that starts the end of the connection, so that its messages can
    /// still be answered. It also ends when messages that do not lie in the input take `bytes_max`
    /// bytes, because a compressed message can be a thousand times as long as its input.
    ///
    /// # Errors
    /// The peer violated the protocol; the engine has failed the connection.
    pub(in crate::link) fn next_batch(
        &mut self,
        engine: &mut Engine<Side>,
        bytes_max: usize,
        mut handle_control: impl FnMut(&mut Engine<Side>, Control),
    ) -> Result<Parsed<Batch>, Box<ProtocolError>> {
        let is_plain =
            self.held.ahead.is_none() && self.parsing == Parsing::AsAsked && !self.is_mid_message;
        if !is_plain {
            return self.next_queued(engine);
        }
        if self.held.unparsed.is_empty() {
            return Ok(Parsed::Nothing);
        }
        self.set_limits(engine, EngineLimits::Messages)?;
        // `list_message` does not learn the time.
        _ = engine.handle_input(&mut [], self.held.engine_time.tell());
        let mut batch = Batch::new();
        let collected = batch.collected_mut();
        let (buffer, input) = self.held.unparsed.take();
        collected.in_place.start(buffer, input.end);
        // The loop is compiled once for each role, so that a server's loop does not check the role.
        let next = match engine.endpoint().role() {
            Role::Client => {
                let role = Role::Client;
                self.collect(
                    role,
                    engine,
                    collected,
                    input.start,
                    bytes_max,
                    &mut handle_control,
                )
            }
            Role::Server => {
                let role = Role::Server;
                self.collect(
                    role,
                    engine,
                    collected,
                    input.start,
                    bytes_max,
                    &mut handle_control,
                )
            }
        };
        match next {
            Next::At(at) => {
                let rest = collected.in_place.rest_mut(at);
                if !rest.is_empty() && !engine.is_input_over() {
                    self.held.unparsed = Unparsed::new(rest);
                }
            }
            Next::Error(error) if collected.is_empty() => {
                engine.fail(&error);
                return Err(error);
            }
            Next::Error(error) => self.queue_error(error),
        }
        if collected.is_empty() {
            return Ok(Parsed::Nothing);
        }
        Ok(Parsed::Item(batch))
    }

    /// Puts the messages back that were not taken from a batch.
    pub(in crate::link) fn put_back(&mut self, batch: &mut Batch) {
        let messages: Vec<_> = batch.drain().map(MessageCow::into_message).collect();
        for message in messages.into_iter().rev() {
            self.ahead_mut().push_front(Chunk::whole(message));
        }
    }

    /// Returns the messages in the queue as a batch; without any, the next message.
    fn next_queued(
        &mut self,
        engine: &mut Engine<Side>,
    ) -> Result<Parsed<Batch>, Box<ProtocolError>> {
        let mut batch = Batch::new();
        loop {
            match self.next(engine, Mode::Messages) {
                Ok(Parsed::Item(chunk)) => batch.collected_mut().push(chunk.message),
                Ok(Parsed::Control(control)) => return Ok(Parsed::Control(control)),
                Ok(Parsed::Nothing) => return Ok(Parsed::Nothing),
                Err(error) if batch.is_empty() => return Err(error),
                Err(error) => {
                    self.queue_error(error);
                    return Ok(Parsed::Item(batch));
                }
            }
            if self
                .held
                .ahead
                .as_ref()
                .is_none_or(|ahead| ahead.has_no_messages())
            {
                return Ok(Parsed::Item(batch));
            }
        }
    }

    /// Collects messages from `at` on.
    #[inline(always)]
    fn collect(
        &mut self,
        role: Role,
        engine: &mut Engine<Side>,
        collected: &mut Collected,
        mut at: usize,
        bytes_max: usize,
        handle_control: &mut dyn FnMut(&mut Engine<Side>, Control),
    ) -> Next {
        let end = collected.in_place.input().len();
        while at < end {
            at = match engine.list_message(role, &mut collected.in_place, at) {
                Some(Ok(next)) => {
                    self.messages += 1;
                    next
                }
                Some(Err(error)) => return Next::Error(Box::new(error)),
                None => {
                    let is_started = !collected.is_empty();
                    let rest = collected.in_place.rest_mut(at);
                    if is_started && engine.is_end_of_messages(rest) {
                        break;
                    }
                    match self.collect_other(engine, collected, at, handle_control) {
                        at @ Next::At(_) if self.turn.is_over() => return at,
                        Next::At(next) => next,
                        error @ Next::Error(_) => return error,
                    }
                }
            };
            if collected.owned_bytes() >= bytes_max {
                break;
            }
        }
        Next::At(at)
    }

    /// Handles what begins at `at` and is not a whole message in one frame.
    #[inline(never)]
    fn collect_other(
        &mut self,
        engine: &mut Engine<Side>,
        collected: &mut Collected,
        at: usize,
        handle_control: &mut dyn FnMut(&mut Engine<Side>, Control),
    ) -> Next {
        let input = collected.in_place.rest_mut(at);
        let mut events = engine.handle_input(input, std::time::Duration::ZERO);
        let (mut message, mut control) = (None, None);
        match events.next_raw() {
            Some(Ok(RawEvent::Data(data))) => {
                let inflated_bytes = if data.inflated { data.len() } else { 0 };
                self.turn.count_fragment(inflated_bytes);
                match Incoming::add(&mut self.held.message, data, Mode::Messages) {
                    Ok(chunk) => message = chunk,
                    Err(error) => return Next::Error(Box::new(error)),
                }
            }
            Some(Ok(RawEvent::Close(frame))) => {
                control = Some(Control::Close(Box::new(frame.into())));
            }
            Some(Ok(RawEvent::Ping(_))) => {
                self.turn.count_control();
                control = Some(Control::Ping);
            }
            Some(Ok(RawEvent::Pong(payload))) => {
                self.turn.count_control();
                control = Some(Control::Pong(PongMark::of(payload)));
            }
            None => {}
            Some(Err(error)) => return Next::Error(Box::new(error)),
        }
        if control.is_some() || self.turn.is_over() {
            // This may be the end of the input or of the turn, inside a compressed message.
            events.release_memory();
        }
        let next = at + events.consumed();
        if let Some(control) = control {
            handle_control(engine, control);
        }
        if let Some(chunk) = message {
            self.messages += 1;
            collected.push(chunk.message);
        }
        Next::At(next)
    }
}
