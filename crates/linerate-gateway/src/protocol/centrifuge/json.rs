//! Commands and replies in JSON: one object per line.

mod decode;
mod encode;
mod write;

pub(super) use decode::decode_emulation;
pub(in crate::protocol) use decode::{decode, depth_of};
pub(in crate::protocol) use encode::{Binary, extras, message, publication_push};
pub(in crate::protocol) use write::text;
