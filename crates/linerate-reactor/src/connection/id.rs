//! The identifiers of connections.

/// Identifies a connection among all connections that a server or a connector ever has; used by
/// [`Remote`](crate::Remote) and [`Context::to`](crate::Context::to).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ConnectionId {
    pub(crate) worker: u16,
    pub(crate) slot: Slot,
}

impl ConnectionId {
    /// Returns the index of the connection in a table of its worker's connections. No other open
    /// connection has it, and later ones reuse it.
    pub const fn index(self) -> usize {
        self.slot.index as usize
    }
}

/// Identifies a connection among those that a worker ever has.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Slot {
    pub(crate) index: u32,
    /// Distinguishes connections that had the same index.
    pub(crate) serial: u32,
}

impl Slot {
    /// Returns the token under which the driver reports the connection.
    pub(crate) const fn token(self) -> u64 {
        (self.serial as u64) << 32 | self.index as u64
    }
}
