//! Memory that a hub holds.

/// Publications and blocks that are held for subscribers that have not taken them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MemoryUse {
    /// The number of publications in rings and of those kept as the newest of their keys.
    pub messages: u64,
    /// Their size in bytes, with an allowance for the overhead of each. All hubs of a node share
    /// the publications themselves.
    pub message_bytes: u64,
    /// The size of frozen blocks in bytes.
    pub block_bytes: u64,
}
