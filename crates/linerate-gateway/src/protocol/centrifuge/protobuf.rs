//! Commands and replies in Protobuf: messages behind their lengths.

mod decode;
mod encode;
mod push;
mod schema;

pub(super) use decode::{decode, decode_emulation};
pub(in crate::protocol) use encode::message;
pub(in crate::protocol) use push::publication_push;
