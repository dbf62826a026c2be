//! Commands and replies in Protobuf: messages, each preceded by its length.

mod decode;
mod encode;
mod push;
mod schema;

pub(super) use decode::{decode, decode_emulation};
pub(in crate::protocol) use encode::message;
pub(in crate::protocol) use push::publication_push;
