//! Fan-out without I/O: turns the publications of a channel into blocks of bytes for its
//! subscribers.
//!
//! This crate never touches a socket, a clock or a task. The caller passes `now` as an argument and
//! supplies the random seed.
//!
//! ```
//! use std::{sync::Arc, time::Instant};
//!
//! use bytes::Bytes;
//! use linerate_hub::{
//!     Batch, ChannelName, ChannelOptions, Encode, EncodingId, Hub, HubOptions, Place, Publication,
//!     Start, SubscriptionOptions, Transmit, Unencodable,
//! };
//!
//! #[derive(Debug)]
//! struct Lines;
//!
//! impl Encode for Lines {
//!     type Block = Bytes;
//!
//!     fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
//!         for publication in batch.publications {
//!             out.extend_from_slice(publication.payload());
//!             out.push(b'\n');
//!         }
//!         Ok(())
//!     }
//!
//!     fn seal(&self, bytes: Bytes, _batch: &Batch<'_>, _place: Option<Place<'_>>) -> Bytes {
//!         bytes
//!     }
//! }
//!
//! let mut hub = Hub::new(HubOptions {
//!     encodings: vec![Arc::new(Lines)],
//!     ..HubOptions::default()
//! });
//! let now = Instant::now();
//! let news = ChannelName::new("news")?;
//!
//! let client = hub.connect();
//! let options = SubscriptionOptions::new(EncodingId(0));
//! let subscription = hub.subscribe(now, client, news.clone(), ChannelOptions::default(), options)?;
//! hub.activate(now, subscription, Start::Live);
//!
//! for payload in ["one", "two"] {
//!     hub.publish(now, &news, Publication::new(payload.into()));
//! }
//! while let Some(client) = hub.poll_ready() {
//!     while let Some(transmit) = hub.poll_transmit(now, client) {
//!         match transmit {
//!             Transmit::Block { block, .. } => assert_eq!(block, "one\ntwo\n"),
//!             other => panic!("unexpected {other:?}"),
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod channel;
pub mod client_map;
pub mod encode;
pub mod exclusion;
pub mod filter;
pub mod fossil;
pub mod gap;
pub mod hub;
pub mod id;
pub mod options;
pub mod pointer;
pub mod position;
pub mod presence;
pub mod publication;
pub mod scope;
pub mod transmit;

pub use channel::ChannelName;
pub use client_map::ClientMap;
pub use encode::{Batch, Encode, Payloads, Place, Sequence, Unencodable};
pub use exclusion::Exclusion;
pub use filter::Filter;
pub use gap::{Gap, GapCause};
pub use hub::{Hub, Start, SubscribeError};
pub use id::{ClientId, SubscriptionId};
pub use options::{
    ChannelOptions, Conflate, EncodingId, HubOptions, SlowPolicy, SubscriptionOptions,
};
pub use pointer::JsonPointer;
pub use position::{Epoch, StreamPosition};
pub use publication::{ClientInfo, Publication};
pub use scope::Scope;
pub use transmit::Transmit;
