//! The realtime gateway: what clients say and hear, who may, and how it is operated.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `config` | what is configured: file, environment, flags; namespaces of channels |
//! | `auth` | tokens, origins, API keys |
//! | `filter` | expressions that choose among publications |
//! | `limits` | every limit by name |
//! | `protocol` | the client protocols as bytes: raw, Centrifuge, native blocks, SSE |
//! | `session` | a client's session: commands in, replies out |
//! | `node` | the workers' shards of the hub, the way from broker to shards, presence, other nodes |
//! | `transport` | WebSocket, HTTP streaming and SSE under one session |
//! | `api` | the server API |
//! | `admin` | what the admin page asks for |
//! | `metrics` | counters, and how Prometheus reads them |
//! | `operations` | `/live`, `/ready`, `/metrics` |
//! | `quiet` | log lines that clients can't flood |
//! | `server` | listeners, TLS, admission, drain |
#![forbid(unsafe_code)]

pub mod admin;
pub mod api;
pub mod auth;
pub mod config;
pub mod filter;
pub mod limits;
pub mod metrics;
pub mod node;
pub mod operations;
pub mod protocol;
mod quiet;
pub mod server;
pub mod session;
pub mod transport;
