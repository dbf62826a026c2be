//! What two endpoints agreed on for compressed messages, and how much memory these may use in total
//! (RFC 7692); see [`Deflate`](crate::Deflate) for the settings.

pub use linerate_proto::deflate::{Agreement, Budget};
