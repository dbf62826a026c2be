//! Blocks that are compressed once, whoever of a worker's clients gets them.

use std::{cell::RefCell, collections::VecDeque};

use bytes::Bytes;
use linerate::{Deflate, Frames};

/// Blocks that are remembered: clients get the same ones in a row, but those with several channels in turns.
const BLOCKS_MAX: usize = 16;

/// The bytes of these blocks.
const BLOCK_BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// A worker is a thread, and a block is made on it and given to its clients only.
    static RECENT: RefCell<Recent> = const { RefCell::new(Recent::new()) };
}

/// Returns frames for clients who can inflate, `bytes` being a block as it was encoded.
pub(super) fn frames(bytes: Bytes, messages: u64, deflate: &Deflate) -> Frames {
    RECENT.with_borrow_mut(|recent| recent.frames(bytes, messages, deflate))
}

/// The blocks that were compressed last.
struct Recent {
    blocks: VecDeque<Frames>,
    bytes: usize,
}

impl Recent {
    const fn new() -> Self {
        Self {
            blocks: VecDeque::new(),
            bytes: 0,
        }
    }

    fn frames(&mut self, bytes: Bytes, messages: u64, deflate: &Deflate) -> Frames {
        // The same place in memory: what is remembered is kept, so that nothing else can be there.
        let is_same = |frames: &&Frames| {
            let known = frames.as_bytes();
            known.as_ptr() == bytes.as_ptr() && known.len() == bytes.len()
        };
        if let Some(known) = self.blocks.iter().rev().find(is_same) {
            return known.clone();
        }
        let frames = Frames::danger_from_framed(bytes, messages);
        // What is this short holds no message that is long enough.
        if frames.len() < deflate.message_bytes_min {
            return frames;
        }
        let frames = frames.compressed(deflate);
        self.remember(frames.clone());
        frames
    }

    fn remember(&mut self, frames: Frames) {
        self.bytes += frames.len();
        self.blocks.push_back(frames);
        while self.blocks.len() > BLOCKS_MAX || self.bytes > BLOCK_BYTES_MAX {
            let Some(oldest) = self.blocks.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate::MessageKind;

    use super::*;

    fn block(text: &str) -> Bytes {
        let mut wire = Vec::new();
        Frames::append(&mut wire, MessageKind::Text, text.as_bytes());
        wire.into()
    }

    #[test]
    fn a_block_is_compressed_once_for_all_who_get_it() {
        let mut recent = Recent::new();
        let deflate = Deflate::default();
        let (one, other) = (block(&"one ".repeat(100)), block(&"two ".repeat(100)));
        for _ in 0..3 {
            for block in [&one, &other] {
                let frames = recent.frames(block.clone(), 1, &deflate);
                assert!(frames.is_compressed());
                assert_eq!(frames.as_bytes(), block);
            }
            assert_eq!(recent.blocks.len(), 2);
        }
    }

    #[test]
    fn the_same_bytes_elsewhere_are_another_block_and_short_ones_are_none() {
        let mut recent = Recent::new();
        let deflate = Deflate::default();
        let text = "one ".repeat(100);
        recent.frames(block(&text), 1, &deflate);
        recent.frames(block(&text), 1, &deflate);
        recent.frames(block("short"), 1, &deflate);
        assert_eq!(recent.blocks.len(), 2);
    }

    #[test]
    fn few_blocks_are_remembered() {
        let mut recent = Recent::new();
        let deflate = Deflate::default();
        for number in 0..100 {
            recent.frames(block(&format!("{number} ").repeat(100)), 1, &deflate);
        }
        assert_eq!(recent.blocks.len(), BLOCKS_MAX);
        recent.frames(block(&"x".repeat(2 * BLOCK_BYTES_MAX)), 1, &deflate);
        assert_eq!((recent.blocks.len(), recent.bytes), (0, 0));
    }
}
