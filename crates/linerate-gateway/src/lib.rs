//! The realtime gateway: client protocols, authorization, the server API and operations.
//!
//! | module | contents |
//! | --- | --- |
//! | `config` | the configuration: file, environment, flags; channel namespaces |
//! | `auth` | tokens, origins, API keys |
//! | `filter` | expressions that select publications |
//! | `limits` | every limit by name |
//! | `protocol` | the client protocols as bytes: raw, Centrifuge, native blocks, SSE |
//! | `session` | a client's session: executes commands, sends replies |
//! | `node` | the workers' shards of the hub, dispatch from broker to shards, presence, cluster |
//! | `transport` | WebSocket, HTTP streaming and SSE, all serving the same session |
//! | `api` | the server API |
//! | `admin` | the API for the admin page |
//! | `metrics` | counters and their Prometheus exposition |
//! | `operations` | `/live`, `/ready`, `/metrics` |
//! | `quiet` | log lines that clients cannot flood |
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
