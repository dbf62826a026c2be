//! Memory that the connections of a worker share: recycled buffers and boxes, the table of
//! connections, and the handlers' data.

pub(crate) mod boxes;
pub(crate) mod pool;
pub(crate) mod table;
pub(crate) mod user_data;
