//! What nodes store at the broker about the names that they occupy.
//!
//! A name stands for something that is occupied while at least one node has a use for it, such as a
//! channel with subscribers. The broker decides which change was the first or the last, so that
//! exactly one node learns that a name became occupied or vacant.

/// This node occupies a name, or no longer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OccupancyChange {
    /// The name: any text.
    pub name: String,
    /// True if this node occupies the name.
    pub is_occupied: bool,
}
