//! The realtime gateway: client protocols, authorization, the server API and operations.
//!
//! [`Gateway::bind`] connects to the broker that a [configuration](config) names and binds the
//! addresses; [`Gateway::start`] serves clients, applications and administrators until
//! [`Running::drain`] and [`Running::shut_down`].
//!
//! | module | contents |
//! | --- | --- |
//! | `gateway` | a gateway as a whole: binds, serves, reloads and drains |
//! | `config` | the configuration: file, environment, flags; channel namespaces |
//! | `auth` | tokens, origins, API keys |
//! | `filter` | expressions that select publications |
//! | `limits` | limits by name |
//! | `protocol` | the client protocols as bytes: raw, Centrifuge, native blocks, SSE |
//! | `session` | a client's session: executes commands, sends replies |
//! | `node` | the workers' shards of the hub, dispatch from broker to shards, presence, cluster |
//! | `transport` | WebSocket, HTTP streaming and SSE, all serving the same session |
//! | `api` | the server API |
//! | `admin` | the API for the admin page |
//! | `metrics` | counters of events |
//! | `operations` | `/live`, `/ready`, `/metrics` |
//! | `quiet` | log lines that clients cannot flood |
//! | `server` | listeners, TLS, admission, drain |
#![forbid(unsafe_code)]

mod admin;
mod api;
mod auth;
pub mod config;
mod filter;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod limits;
mod metrics;
mod node;
mod operations;
mod protocol;
mod quiet;
mod server;
mod session;
mod transport;

pub use auth::{AuthSetupError, KeyRefusal, TokenMaker, TokenMakerError};
pub use gateway::{Access, BindError, Gateway, LogsAccess, ReloadError, Running};
pub use limits::{Limit, Unit};
pub use node::NodeInfo;
pub use server::{CertificateError, Peer, Visit};
