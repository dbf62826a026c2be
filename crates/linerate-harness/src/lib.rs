//! What the programs that measure, abuse and check servers share, and what tests need of it.
//!
//! - [`child`] starts processes, waits until they listen, and kills them in the end.
//! - [`process`] reads what a process uses: memory, CPU time, open files; and raises our limit of
//!   these.
//! - [`machine`] reads how busy all cores are.
//! - [`cores`] pins threads to cores.
//! - [`port`] finds free ports.
//! - `socket`, with the feature of that name, is a client's socket, with or without TLS.
//! - [`table`] formats tables as text and as Markdown.
//!
//! Nothing here knows WebSocket, so that programs which check each other can share it.
#![forbid(unsafe_code)]

pub mod child;
#[cfg(target_os = "linux")]
pub mod cores;
pub mod machine;
pub mod port;
pub mod process;
#[cfg(feature = "socket")]
pub mod socket;
pub mod table;
