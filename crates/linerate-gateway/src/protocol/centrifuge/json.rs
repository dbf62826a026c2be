//! Commands and replies in JSON: one object per line.

mod decode;
mod encode;
mod write;

pub(super) use decode::decode_emulation;
pub(in crate::protocol) use decode::{decode, depth_of};
pub(in crate::protocol) use encode::{Binary, channel_member, extras, message, publication_push};
