//! Events from Redis, as Socket.IO's own server and emitter publish them.

mod json;
mod packet;
