//! Memory that a hub holds.

use crate::hub::Hub;

/// Publications and blocks that are held for subscribers that have not taken them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Held {
    /// The number of publications in rings and of those kept as the newest of their keys.
    pub messages: u64,
    /// Their size in bytes, with an allowance for the overhead of each. All hubs of a node share
    /// the publications themselves.
    pub message_bytes: u64,
    /// The size of frozen blocks in bytes.
    pub block_bytes: u64,
}

impl<B: Clone> Hub<B> {
    /// Returns what all channels hold at the moment. The cost is proportional to the number of
    /// channels.
    pub fn held(&self) -> Held {
        let mut held = Held::default();
        for (_, stream) in self.streams.iter() {
            held.messages += stream.ring.len() as u64;
            held.message_bytes += stream.ring.held_bytes();
        }
        for (_, group) in self.groups.iter() {
            held.block_bytes += group.blocks.bytes() as u64;
            if let Some(overflow) = &group.overflow {
                held.messages += overflow.len() as u64;
                held.message_bytes += overflow.bytes() as u64;
            }
        }
        held
    }
}
