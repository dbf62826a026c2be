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
//! Windows has only [`port`] and [`table`]; [`cores`] needs Linux.
//!
//! Nothing here knows WebSocket, so that programs which check each other can share it.
#![forbid(unsafe_code)]

#[cfg(unix)]
pub mod child;
#[cfg(target_os = "linux")]
pub mod cores;
#[cfg(unix)]
pub mod machine;
pub mod port;
#[cfg(unix)]
pub mod process;
#[cfg(all(feature = "socket", unix))]
pub mod socket;
pub mod table;
