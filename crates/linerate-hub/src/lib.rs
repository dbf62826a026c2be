//! Fan-out without I/O: what is published in a channel becomes blocks of bytes for its subscribers.
//!
//! Nothing in here sees a socket, a clock or a task: `now` is an argument, randomness is injected.
#![forbid(unsafe_code)]

pub mod channel;
pub mod encode;
pub mod filter;
pub mod gap;
pub mod hub;
pub mod options;
pub mod pointer;
pub mod position;
pub mod presence;
pub mod publication;
pub mod transmit;

pub use channel::ChannelName;
pub use encode::{Batch, Encode, Unencodable};
pub use filter::{Filter, Guard};
pub use gap::{Gap, GapCause};
pub use hub::{ClientId, Hub, Start, SubscribeError, SubscriptionId};
pub use options::{
    ChannelOptions, Conflate, EncodingId, HubOptions, SlowPolicy, SubscriptionOptions,
};
pub use pointer::JsonPointer;
pub use position::{Epoch, StreamPosition};
pub use publication::{ClientInfo, Publication};
pub use transmit::Transmit;
