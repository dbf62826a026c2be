//! The code that the contenders in Rust share, so that they differ only in the WebSocket library:
//! the command line, threads and sockets, TLS, the allocator, and a broadcast for libraries without
//! one.
#![forbid(unsafe_code)]

mod arguments;
mod hub;
mod listen;
mod serve;
mod tls;

pub use arguments::{Arguments, Deflate, Service};
pub use hub::Hub;
pub use listen::on_each_thread;
pub use serve::{Program, Socket, serve};
pub use tls::server_config;

/// The largest message that is accepted, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// The result of a server or a connection.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
