//! io_uring for the sockets of one thread, behind a safe interface.
//!
//! A [`Ring`] accepts, receives, sends, polls and closes. Operations are queued, and one system
//! call submits all of them to the kernel and fetches the completed ones. Memory that the kernel
//! reads or writes belongs to the ring for as long as the kernel may access it: received bytes are
//! returned as [`Input`]s, which borrow a part of the ring's buffers, and bytes to send are handed
//! over until they are sent. Dropping a ring waits until the kernel no longer uses any of this
//! memory.
//!
//! ```
//! use std::{io::Write, net::{TcpListener, TcpStream}, os::fd::AsFd};
//!
//! use linerate_uring::{Completion, Ring, Setup, SetupError};
//!
//! # fn main() -> std::io::Result<()> {
//! let mut ring = match Ring::new(&Setup::default()) {
//!     Ok(ring) => ring,
//!     Err(SetupError::Forbidden | SetupError::Missing { .. }) => return Ok(()),
//!     Err(error) => return Err(error.into()),
//! };
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let mut client = TcpStream::connect(listener.local_addr()?)?;
//! let (server, _) = listener.accept()?;
//! ring.receive(server.as_fd(), 7);
//! client.write_all(b"Spam")?;
//! ring.submit_and_wait(None)?;
//! while let Some(completion) = ring.next_completion() {
//!     if let Completion::Received { token: 7, received: Ok(Some(mut input)), .. } = completion {
//!         input.make_ascii_uppercase();
//!         assert_eq!(&input[..], b"SPAM");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! This requires Linux 6.1. All of the project's own unsafe code for io_uring is in this crate.

#[cfg(not(target_os = "linux"))]
compile_error!("linerate-uring needs Linux, because io_uring is an interface of its kernel");

#[cfg(target_os = "linux")]
mod buffers;
#[cfg(target_os = "linux")]
mod completion;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod setup;

#[cfg(target_os = "linux")]
pub use buffers::Input;
#[cfg(target_os = "linux")]
pub use completion::Completion;
#[cfg(target_os = "linux")]
pub use ring::{Ring, SendKey, Sending, TOKEN_MAX};
#[cfg(target_os = "linux")]
pub use setup::{Setup, SetupError};
