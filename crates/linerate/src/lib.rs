//! WebSocket at line rate: an async client and server on tokio.
#![forbid(unsafe_code)]
