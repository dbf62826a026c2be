//! A block of publications on its way to clients: encoded once, and compressed at most once.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use linerate::{Deflate, Frames};
use linerate_budget::{Account, Share};

/// What the gateway's hubs give to clients.
pub type Transmit = linerate_hub::Transmit<Arc<Block>>;

/// Encoded publications, framing included, that all subscribers at the same place share.
///
/// The first client that can inflate has its messages compressed, if any. All others get the same.
#[derive(Debug)]
pub struct Block {
    bytes: Bytes,
    messages: u64,
    compressed: OnceLock<Compressed>,
}

#[derive(Debug)]
struct Compressed {
    frames: Frames,
    /// What the compressed form takes at most, since it is only kept if it is shorter.
    _share: Share,
}

impl Block {
    /// Creates a block of bytes as an encoder made them, framing included, with as many messages.
    pub fn new(bytes: impl Into<Bytes>, messages: u64) -> Self {
        Self {
            bytes: bytes.into(),
            messages,
            compressed: OnceLock::new(),
        }
    }

    /// Returns the bytes as they were encoded.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the WebSocket frames that the bytes are.
    pub(crate) fn frames(&self) -> Frames {
        Frames::danger_from_framed(self.bytes.clone(), self.messages)
    }

    /// Returns the same frames for clients that can inflate. What the compressed form takes is counted in `account` for
    /// as long as the block lasts.
    pub(crate) fn compressed(&self, deflate: &Deflate, account: &Account) -> Frames {
        // A block this short has no message that is long enough.
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
