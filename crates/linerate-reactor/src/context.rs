//! The handle passed to callbacks.

use std::{fmt, ops::Range};

use linerate_proto::{
    CloseCode, MaskKey, Role, SendError,
    engine::{Message, MessageKind},
    frame::BulkEncoder,
};
use linerate_simd::mask;

use crate::{
    connection::{Connection, Stage, endpoint, id::ConnectionId},
    core::{Core, commands::ConnectionHandle},
    outbound::{destination::Destination, error::ConnectError},
    remote::Remote,
    topics::SubscribeError,
};

/// A payload of this many bytes or more is written without a copy. A shorter one is copied into the
/// cork buffer, because that costs less than one more slice for the kernel.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// The cork buffer is flushed when it holds this many bytes.
const CORK_BYTES_MAX: usize = 128 << 10;

/// All output, including the parts of the input that are sent without a copy, is flushed at this
/// many bytes. The replies to one read are shorter, but much more input may have been kept while
/// the backlog of a slow peer was at its limit.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// The handle passed to the callbacks of a connection: it sends, subscribes, publishes, pauses the
/// input, and closes the connection.
pub struct Context<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) connection: &'a mut Connection,
    /// The bytes that the last read returned.
    pub(crate) input: &'a [u8],
    /// The message, if it was joined from pieces.
    pub(crate) gathered: &'a [u8],
    /// The part of `gathered` that is to be sent after the output.
    pub(crate) tail: Range<usize>,
    pub(crate) last_in_input: bool,
}

impl<'a> Context<'a> {
    /// Sends a message.
    ///
    /// To send back a message that is being received, or a part of it, pass the borrowed data: it
    /// is written without a copy where that pays.
    ///
    /// # Errors
    /// If the connection is closing.
    #[inline]
    pub fn send(&mut self, message: Message<'_>) -> Result<(), SendError> {
        self.send_payload(message.kind(), message.as_bytes())
    }

    /// Sends a text message; see [`send`](Self::send).
    ///
    /// # Errors
    /// If the connection is closing.
    #[inline]
    pub fn send_text(&mut self, text: &str) -> Result<(), SendError> {
        self.send_payload(MessageKind::Text, text.as_bytes())
    }

    /// Sends a binary message; see [`send`](Self::send).
    ///
    /// # Errors
    /// If the connection is closing.
    #[inline]
    pub fn send_binary(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.send_payload(MessageKind::Binary, bytes)
    }

    /// Sends a message that is never compressed. Use it for secrets that are sent together with
    /// data that others can choose (RFC 7692 §8), and for data that is already compressed.
    ///
    /// # Errors
    /// If the connection is closing.
    pub fn send_uncompressed(&mut self, message: Message<'_>) -> Result<(), SendError> {
        self.settle_tail();
        let (kind, payload) = (message.kind(), message.as_bytes());
        if payload.len() >= COPIED_BYTES_MAX {
            return self.send_large(kind, payload);
        }
        let Self {
            core, connection, ..
        } = self;
        let cork = &mut core.io.cork.bytes;
        connection.engine.send_uncompressed(cork, kind, payload)?;
        self.limit_cork();
        Ok(())
    }

    /// Sends a message whose payload is the concatenation of all `parts`. The parts of a text
    /// message must together be valid UTF-8.
    ///
    /// # Errors
    /// If the connection is closing.
    pub fn send_parts(&mut self, kind: MessageKind, parts: &[&[u8]]) -> Result<(), SendError> {
        self.settle_tail();
        if self.connection.deflates() {
            let bytes = parts.iter().map(|part| part.len()).sum();
            return self.send_compressed(kind, bytes, |whole| {
                parts.iter().for_each(|part| whole.extend_from_slice(part));
            });
        }
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let key = self.begin(kind, bytes)?;
        let mut phase = 0;
        for part in parts {
            match key {
                Some(key) => self.add_masked(key, phase, part),
                None => self.add(part),
            }
            phase += part.len();
        }
        self.limit_cork();
        Ok(())
    }

    /// Sends a piece of a message: the first call begins the message, and the call with `ends` ends
    /// it. Each piece is a fragment (RFC 6455 §5.4) and is written like a message. Data received in
    /// [`chunk`](crate::Handler::chunk) may be sent back.
    ///
    /// The pieces of a text message may be split anywhere; together they must be valid UTF-8.
    /// Before the last piece has been sent, no other message can be sent on this connection, and
    /// publications for it are dropped and counted.
    ///
    /// # Errors
    /// If the connection is closing, or a message of the other kind is in progress.
    pub fn send_chunk(
        &mut self,
        kind: MessageKind,
        bytes: &[u8],
        ends: bool,
    ) -> Result<(), SendError> {
        self.settle_tail();
        let Self {
            core, connection, ..
        } = self;
        let cork = &mut core.io.cork.bytes;
        if connection.deflates() {
            connection.engine.send_fragment(cork, kind, bytes, ends)?;
            self.limit_cork();
            return Ok(());
        }
        let fragment_bytes = bytes.len() as u64;
        let key = connection
            .engine
            .send_fragment_prefix(cork, kind, fragment_bytes, ends)?;
        match (key, place(bytes, self.gathered)) {
            (Some(key), _) => self.add_masked(key, 0, bytes),
            (None, Some(part)) if bytes.len() >= COPIED_BYTES_MAX => self.tail = part,
            (None, _) => self.add(bytes),
        }
        self.limit_cork();
        Ok(())
    }

    /// Sends a message of `bytes` bytes that `fill` writes into the output, which is initially
    /// zero. The content of a text message must be valid UTF-8.
    ///
    /// # Errors
    /// If the connection is closing; `fill` was not called.
    pub fn send_with(
        &mut self,
        kind: MessageKind,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), SendError> {
        self.settle_tail();
        if self.connection.deflates() {
            return self.send_compressed(kind, bytes, |whole| {
                whole.resize(bytes, 0);
                fill(whole);
            });
        }
        let key = self.begin(kind, bytes)?;
        let cork = &mut self.core.io.cork.bytes;
        let start = cork.len();
        cork.resize(start + bytes, 0);
        fill(&mut cork[start..]);
        if let Some(MaskKey(key)) = key {
            mask::apply(key, 0, &mut cork[start..]);
        }
        self.limit_cork();
        Ok(())
    }

    /// Sends the frames that `encode` pushes, at most `bytes_max` bytes including their headers.
    /// They must be whole messages, pushed without a masking key; on a client's connection they are
    /// masked afterwards. They are never compressed.
    ///
    /// # Errors
    /// If the connection is closing; `encode` was not called.
    pub fn send_frames(
        &mut self,
        bytes_max: usize,
        encode: impl FnOnce(&mut BulkEncoder<'_>),
    ) -> Result<(), SendError> {
        self.settle_tail();
        if !self.connection.is_open() {
            return Err(SendError::Closed);
        }
        let cork = &mut self.core.io.cork.bytes;
        let start = cork.len();
        cork.resize(start + bytes_max, 0);
        let mut encoder = BulkEncoder::new(&mut cork[start..]);
        encode(&mut encoder);
        let end = start + encoder.written().len();
        cork.truncate(end);
        if self.connection.role() == Role::Client {
            let frames = cork.split_off(start);
            endpoint::append_masked(&frames, cork);
        }
        self.limit_cork();
        Ok(())
    }

    /// Sends a Ping. The Pong is passed to [`Handler::pong`](crate::Handler::pong).
    ///
    /// # Errors
    /// If the connection is closing, or `payload` has more than 125 bytes.
    pub fn ping(&mut self, payload: &[u8]) -> Result<(), SendError> {
        self.settle_tail();
        let Self {
            core, connection, ..
        } = self;
        connection
            .engine
            .send_ping(&mut core.io.cork.bytes, payload)?;
        self.limit_cork();
        Ok(())
    }

    /// Starts the closing handshake. Messages may still arrive until the peer's Close frame.
    ///
    /// # Errors
    /// If `reason` has more than 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str) -> Result<(), SendError> {
        self.connection.engine.close(code, reason, self.core.now)
    }

    /// Pauses the input: no message is read or passed to the handler until [`resume`](Self::resume)
    /// or [`Remote::resume`]. Meanwhile control frames are not processed either, and no keepalive
    /// Ping is due.
    pub fn pause(&mut self) {
        self.connection.paused = true;
    }

    /// Resumes the input.
    pub fn resume(&mut self) {
        self.connection.paused = false;
    }

    /// Subscribes to a topic; returns whether the subscription is new.
    ///
    /// # Errors
    /// If the name is too long, or the connection has too many subscriptions.
    pub fn subscribe(&mut self, topic: &str) -> Result<bool, SubscribeError> {
        let Core {
            reactor, topics, ..
        } = &mut *self.core;
        let bytes_max = reactor.options.topic_bytes_max;
        if topic.len() > bytes_max {
            let bytes = topic.len();
            return Err(SubscribeError::NameTooLong { bytes, bytes_max });
        }
        let subscriptions_max = reactor.options.subscriptions_max;
        let connection = self.connection.id.index;
        topics.subscribe(connection, topic, subscriptions_max, || {
            let options = reactor.topic_rules.find(topic);
            options.unwrap_or(reactor.options.topic)
        })
    }

    /// Ends a subscription; returns whether it existed.
    pub fn unsubscribe(&mut self, topic: &str) -> bool {
        self.core
            .topics
            .unsubscribe(self.connection.id.index, topic)
    }

    /// Publishes a message to all subscribers of a topic, including this connection if it is one.
    ///
    /// The message is encoded once. It is sent when the worker has read all pending input, and
    /// after one millisecond at the latest, together with all other recent publications. It
    /// therefore follows what this callback sends. Before it delivers to many subscribers, the
    /// worker waits for a few microseconds in case more is published. [`Overflow`](crate::Overflow)
    /// decides what happens where a subscriber does not keep up.
    #[inline]
    pub fn publish(&mut self, topic: &str, message: Message<'_>) {
        self.core
            .burst
            .push(topic, message.kind(), message.as_bytes());
    }

    /// Opens another connection on this worker, with the callbacks of this handler:
    /// [`open`](crate::Handler::open) once it is open, or [`failed`](crate::Handler::failed) if it
    /// cannot be opened.
    ///
    /// # Errors
    /// If the connection limit is reached, or the reactor is shutting down.
    pub fn connect(&mut self, destination: &Destination) -> Result<(), ConnectError> {
        let Stage::Open { route, .. } = self.connection.stage else {
            unreachable!("callbacks are about connections that are open");
        };
        self.core.connect(destination, route)
    }

    /// Returns a handle to send to another connection of this worker, or to pause or close it;
    /// `None` if the connection belongs to another worker. Connections opened by
    /// [`connect`](Self::connect) belong to this worker.
    pub fn to(&mut self, connection: ConnectionId) -> Option<ConnectionHandle<'_>> {
        self.core.handle_to(connection)
    }

    /// Returns whether the message ends the input that has been read, so that nothing more will be
    /// written together with the reply.
    ///
    /// `false` may also mean that an unfinished message follows.
    #[inline]
    pub const fn last_in_input(&self) -> bool {
        self.last_in_input
    }

    /// Returns how many bytes of output the kernel has not accepted yet; see
    /// [`Options::backlog_bytes_max`](crate::Options::backlog_bytes_max).
    pub fn backlog_bytes(&self) -> usize {
        self.connection.backlog.len()
    }

    /// Returns the identifier of the connection, for example for [`Remote::resume`].
    pub const fn id(&self) -> ConnectionId {
        self.connection.id
    }

    /// Returns the handle on the server or connector.
    pub fn remote(&self) -> Remote {
        Remote(self.core.reactor.clone())
    }

    #[inline]
    fn send_payload(&mut self, kind: MessageKind, payload: &[u8]) -> Result<(), SendError> {
        self.settle_tail();
        if payload.len() >= COPIED_BYTES_MAX && !self.connection.would_deflate(payload) {
            return self.send_large(kind, payload);
        }
        let Self {
            core, connection, ..
        } = self;
        connection
            .engine
            .send(&mut core.io.cork.bytes, kind, payload)?;
        self.limit_cork();
        Ok(())
    }

    /// Sends a message of `bytes` bytes that `append` writes, compressed if that pays.
    fn send_compressed(
        &mut self,
        kind: MessageKind,
        bytes: usize,
        append: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SendError> {
        let Self {
            core, connection, ..
        } = self;
        if !connection.is_open() {
            return Err(SendError::Closed);
        }
        let mut whole = core.io.memory.pool.take(bytes);
        append(&mut whole);
        let sent = connection
            .engine
            .send(&mut core.io.cork.bytes, kind, &whole);
        core.io.memory.pool.give(whole);
        self.limit_cork();
        sent
    }

    fn send_large(&mut self, kind: MessageKind, payload: &[u8]) -> Result<(), SendError> {
        let key = self.begin(kind, payload.len())?;
        match (key, place(payload, self.gathered)) {
            (Some(key), _) => self.add_masked(key, 0, payload),
            // Later output settles it. If there is none, its memory can become the backlog.
            (None, Some(part)) => self.tail = part,
            (None, None) => self.add(payload),
        }
        Ok(())
    }

    /// Adds the header of a message; returns the key with which a client must mask the payload.
    fn begin(&mut self, kind: MessageKind, bytes: usize) -> Result<Option<MaskKey>, SendError> {
        let Self {
            core, connection, ..
        } = self;
        let cork = &mut core.io.cork.bytes;
        connection.engine.send_prefix(cork, kind, bytes as u64)
    }

    /// Adds a part of a payload, masked; `phase` bytes of the payload precede it.
    fn add_masked(&mut self, MaskKey(key): MaskKey, mut phase: usize, part: &[u8]) {
        for piece in part.chunks(CORK_BYTES_MAX) {
            mask::append(key, phase, piece, &mut self.core.io.cork.bytes);
            phase += piece.len();
            self.limit_cork();
        }
    }

    /// Adds a part of a payload that is not masked.
    fn add(&mut self, part: &[u8]) {
        let cork = &mut self.core.io.cork;
        if part.len() < COPIED_BYTES_MAX {
            cork.bytes.extend_from_slice(part);
        } else if let Some(part) = place(part, self.input) {
            cork.splice(part);
            if cork.len() >= OUTPUT_BYTES_MAX {
                self.flush_output();
            }
        } else {
            let Self {
                core,
                connection,
                input,
                ..
            } = self;
            core.io.flush(connection, input, part);
        }
    }

    /// Writes the part of the gathered message that must precede any other output.
    #[inline]
    fn settle_tail(&mut self) {
        if !self.tail.is_empty() {
            let part = std::mem::take(&mut self.tail);
            let Self {
                core,
                connection,
                input,
                gathered,
                ..
            } = self;
            core.io.flush(connection, input, &gathered[part]);
        }
    }

    /// Flushes the output if the cork buffer is full.
    #[inline]
    fn limit_cork(&mut self) {
        if self.core.io.cork.bytes.len() >= CORK_BYTES_MAX {
            self.flush_output();
        }
    }

    fn flush_output(&mut self) {
        let Self {
            core,
            connection,
            input,
            ..
        } = self;
        core.io.flush(connection, input, &[]);
    }
}

/// Returns the position of `part` in the memory of `whole`, if it is a part of it.
fn place(part: &[u8], whole: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start..end)
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.id())
            .field("backlog_bytes", &self.backlog_bytes())
            .field("last_in_input", &self.last_in_input)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_only_where_it_lies() {
        let whole = [1, 2, 3, 4];
        assert_eq!(place(&whole[1..3], &whole), Some(1..3));
        assert_eq!(place(&whole, &whole), Some(0..4));
        assert_eq!(place(&whole, &whole[1..]), None);
        assert_eq!(place(&whole, &whole[..3]), None);
        assert_eq!(place(&[1, 2], &whole), None);
    }
}
