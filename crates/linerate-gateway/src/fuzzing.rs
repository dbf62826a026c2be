//! Entry points for fuzzers, which check what private parsers and encoders do; compiled only for
//! them.

mod api;
mod backends;
mod commands;
mod emitter;
mod phoenix;
mod publications;
mod pusher;
mod requests;
mod socketio;
mod tag_filters;
mod takeover;
mod webhooks;

pub use api::api;
pub use backends::backends;
pub use commands::commands;
pub use emitter::emitter;
pub use phoenix::phoenix;
pub use publications::publications;
pub use pusher::pusher;
pub use requests::requests;
pub use socketio::socketio;
pub use tag_filters::tag_filters;
pub use takeover::takeover;
pub use webhooks::webhooks;
