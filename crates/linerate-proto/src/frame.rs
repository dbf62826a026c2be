//! Frames: the header codec (RFC 6455 §5.2) and the ways to read and write whole frames.
//!
//! - [`FrameFactory`] writes the prefix into memory of yours; you fill the payload.
//! - [`encode_in_place`] writes the prefix around a payload for which you kept the head-room.
//! - [`BulkEncoder`] writes many frames into one buffer.
//! - [`append()`] and [`OpenFrame`] append frames of a server to a `Vec`.
//! - [`listen`] hands the whole frames in a buffer to a [`FrameListener`], payloads borrowed.

mod append;
mod bulk;
mod factory;
mod header;
mod listen;

pub(crate) use append::append_frame;
pub use append::{OpenFrame, append};
pub use bulk::BulkEncoder;
pub use factory::{FrameFactory, encode_in_place, head_room};
pub use header::Header;
pub use listen::{FrameListener, listen};
