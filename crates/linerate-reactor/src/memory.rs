//! Memory that the connections of a worker share: buffers, the table of connections, and the
//! handlers' data.

pub(crate) mod pool;
pub(crate) mod table;
pub(crate) mod user_data;
