//! The memory that the connections of a worker take when they need it and give back afterwards.

use crate::{
    connection::{backlog::Queues, charge::MemoryUse, held::HeldBytes, partial::PartialMessage},
    memory::{boxes::Boxes, pool::Pool},
};

/// Recycled memory for unfinished messages, held input, and pending output.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) pool: Pool,
    pub(crate) queues: Queues,
    pub(crate) held: Boxes<HeldBytes>,
    pub(crate) messages: Boxes<PartialMessage>,
    /// What connections use now.
    pub(crate) used: MemoryUse,
}
