//! Fan-out without I/O: what is published in a channel becomes blocks of bytes for its subscribers.
//!
//! Nothing in here sees a socket, a clock or a task: `now` is an argument, randomness is injected.
#![forbid(unsafe_code)]

pub mod channel;
pub mod encode;
pub mod position;
pub mod publication;

pub use channel::ChannelName;
pub use encode::{Batch, Encode, Unencodable};
pub use position::{Epoch, StreamPosition};
pub use publication::{ClientInfo, Publication};
