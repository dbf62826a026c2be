//! What a hub holds in memory.

use crate::hub::Hub;

/// What waits for subscribers that have not taken it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Held {
    /// Publications in rings, and those kept as the newest of their keys.
    pub messages: u64,
    /// Their bytes, with an allowance for what each costs beside its payload. Publications themselves are
    /// shared by all hubs of a node.
    pub message_bytes: u64,
    /// The bytes of frozen blocks.
    pub block_bytes: u64,
}

impl<B: Clone> Hub<B> {
    /// Returns what all channels hold at the moment. Looks at each channel.
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
