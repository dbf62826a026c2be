//! io_uring for the sockets of one thread, behind a safe interface.
//!
//! A [`Ring`] accepts, receives, sends, polls and closes: operations are queued, and one system call
//! hands all of them to the kernel and fetches what has been completed. What the kernel reads or
//! writes belongs to the ring for as long as the kernel may touch it: what is received comes in
//! [`Input`]s that lend a part of the ring's buffers, and what is sent is handed over until it is
//! done. A ring that is dropped waits until the kernel is done with all of it.
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
//! It needs Linux 6.1. All unsafe code of our own for io_uring is in this crate.

mod buffers;
mod completion;
mod ring;
mod setup;

pub use buffers::Input;
pub use completion::Completion;
pub use ring::{Ring, SendKey, Sending, TOKEN_MAX};
pub use setup::{Setup, SetupError};
