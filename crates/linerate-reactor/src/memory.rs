//! Memory of a worker that connections share: buffers, the table of connections, the handlers' data.

pub(crate) mod pool;
pub(crate) mod table;
pub(crate) mod user_data;
