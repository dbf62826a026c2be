//! A block of publications for clients: encoded once, and compressed at most once.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use linerate::{Deflate, Frames};
use linerate_budget::{Account, Share};
use linerate_hub::{ChannelName, Place};

use super::{
    event_offset::EventOffset,
    exceptions::Exception,
    lockstep::{Follower, Member},
};

/// What the gateway's hubs hand to clients.
pub(crate) type Transmit = linerate_hub::Transmit<Arc<Block>>;

/// Encoded publications, framing included, shared by all subscribers at the same position.
///
/// The messages are compressed when the first client that supports compression needs them. All
/// further clients share the result.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Bytes,
    /// The bytes as a chunk of a streaming response, if they were encoded as one.
    chunk: Option<Bytes>,
    messages: u64,
    compressed: OnceLock<Compressed>,
    /// The block among those of its channel that it may refer back to.
    member: Option<Box<Member>>,
    /// The frames that some clients do not receive; `None` if there are none, as in most blocks.
    exceptions: Option<Box<[Exception]>>,
    /// The offset of the last event, if subscribers are told the offsets.
    end: Option<Box<EventOffset>>,
}

#[derive(Debug)]
struct Compressed {
    frames: Frames,
    /// The maximum size of the compressed form, which is kept only if it is shorter.
    _share: Share,
}

impl Block {
    /// Creates a block from the output of an encoder, framing included. `messages` is the number of
    /// messages in it.
    pub(crate) fn new(bytes: impl Into<Bytes>, messages: u64) -> Self {
        Self {
            bytes: bytes.into(),
            chunk: None,
            messages,
            compressed: OnceLock::new(),
            member: None,
            exceptions: None,
            end: None,
        }
    }

    /// Creates a block from a chunk of a streaming response, whose payload are the bytes in this
    /// range.
    pub(crate) fn of_chunk(chunk: Bytes, payload: Range<usize>, messages: u64) -> Self {
        Self {
            chunk: (!payload.is_empty()).then(|| chunk.clone()),
            ..Self::new(chunk.slice(payload), messages)
        }
    }

    /// Sets the place of the block among those for the same subscriptions.
    pub(crate) fn with_place(mut self, place: &Place<'_>) -> Self {
        self.member = Member::new(place).map(Box::new);
        self
    }

    /// Sets the frames that some clients do not receive.
    pub(super) fn with_exceptions(mut self, exceptions: Box<[Exception]>) -> Self {
        self.exceptions = (!exceptions.is_empty()).then_some(exceptions);
        self
    }

    /// Sets the offset of the last event.
    pub(super) fn with_end(mut self, end: Option<EventOffset>) -> Self {
        self.end = end.map(Box::new);
        self
    }

    /// Returns the offset of the last event that has one; `None` if subscribers are not told the
    /// offsets.
    pub(crate) fn end(&self) -> Option<EventOffset> {
        self.end.as_deref().copied()
    }

    /// Returns what a client with these subscriptions receives instead of this block, which may be
    /// an empty block; `None` if the client receives this block.
    #[inline]
    pub(crate) fn for_client<'a, C>(&self, client: &str, channels: impl Fn() -> C) -> Option<Self>
    where
        C: IntoIterator<Item = &'a ChannelName>,
    {
        let exceptions = self.exceptions.as_deref()?.iter();
        let own = exceptions.filter(|exception| exception.concerns(client, channels()));
        self.without(own.map(|exception| exception.frames.clone()).collect())
    }

    /// Returns the block without some of its messages; `None` if these are none.
    fn without(&self, messages: Vec<Range<usize>>) -> Option<Self> {
        if messages.is_empty() {
            return None;
        }
        let left = self.messages.saturating_sub(messages.len() as u64);
        let mut rest = Vec::new();
        let mut at = 0;
        for frames in &messages {
            rest.extend_from_slice(self.bytes.get(at..frames.start).unwrap_or_default());
            at = frames.end;
        }
        rest.extend_from_slice(self.bytes.get(at..).unwrap_or_default());
        // A client that must not receive an event does not miss it.
        Some(Self::new(rest, left).with_end(self.end()))
    }

    /// Returns the encoded bytes.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the bytes as a chunk of a streaming response, if they were encoded as one.
    pub(crate) const fn chunk(&self) -> Option<&Bytes> {
        self.chunk.as_ref()
    }

    /// Returns the number of messages.
    pub(crate) const fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns the bytes as WebSocket frames.
    pub(crate) fn frames(&self) -> Frames {
        Frames::danger_from_framed(self.bytes.clone(), self.messages)
    }

    /// Returns the compressed frames, for clients that can decompress them. The compressed form is
    /// charged to `account` for the lifetime of the block.
    pub(crate) fn compressed(&self, deflate: &Deflate, account: &Account) -> Frames {
        // A block this short contains no message long enough to compress.
        if self.bytes.len() < deflate.message_bytes_min {
            return self.frames();
        }
        let compressed = self.compressed.get_or_init(|| {
            let frames = self.frames().compressed(deflate);
            let bytes = if frames.is_compressed() {
                frames.len()
            } else {
                0
            };
            Compressed {
                _share: account.share(bytes as u64),
                frames,
            }
        });
        compressed.frames.clone()
    }

    /// Returns the frames in the shortest form that a client with context takeover can inflate, and
    /// records that it receives them.
    pub(crate) fn compressed_after(
        &self,
        follower: &mut Follower,
        deflate: &Deflate,
        account: &Account,
    ) -> Frames {
        let own = (&self.bytes[..], self.messages);
        let member = self.member.as_ref();
        let frames = member.and_then(|member| member.frames(own, follower, deflate, account));
        frames.unwrap_or_else(|| {
            let frames = self.compressed(deflate, account);
            if frames.is_compressed() {
                follower.leave();
            }
            frames
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate::MessageKind;
    use linerate_budget::{Budget, Consumer};

    use super::*;

    fn block(text: &str) -> Block {
        let mut wire = Vec::new();
        Frames::append(&mut wire, MessageKind::Text, text.as_bytes());
        Block::new(wire, 1)
    }

    fn messages_of(block: &Block, account: &Account) -> *const u8 {
        let frames = block.compressed(&Deflate::default(), account);
        assert!(frames.is_compressed());
        frames.as_bytes().as_ptr()
    }

    #[test]
    fn a_block_is_compressed_once_for_all_clients_and_counted_while_it_lasts() {
        let budget = Budget::new(1 << 20);
        let account = budget.account(Consumer::Blocks);
        let block = block(&"one ".repeat(100));
        let first = messages_of(&block, &account);
        let counted = account.bytes();
        assert!(counted >= 400, "{counted}");
        for _ in 0..3 {
            assert_eq!(messages_of(&block, &account), first);
        }
        assert_eq!(account.bytes(), counted);
        assert!(!block.frames().is_compressed());
        assert_eq!(block.frames().as_bytes(), block.bytes());
        drop(block);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn a_short_block_stays_as_it_is() {
        let account = Account::default();
        let frames = block("short").compressed(&Deflate::default(), &account);
        assert!(!frames.is_compressed());
        assert_eq!(frames.as_bytes(), b"\x81\x05short");
    }
}
