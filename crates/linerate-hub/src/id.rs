//! What identifies a client and a subscription of a hub.

/// Identifies a client of a hub. It refers to no client after that client has disconnected.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ClientId(pub(crate) Key);

impl ClientId {
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Self(Key { index, generation })
    }
}

/// Identifies a subscription of a hub. It refers to no subscription after that subscription has
/// ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SubscriptionId(pub(crate) Key);

/// Refers to an element of an arena while it exists, and to nothing afterwards. `generation` tells
/// the element from earlier ones at the same index.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
