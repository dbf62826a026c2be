//! The realtime gateway: client protocols, authorization, the server API and operations.
//!
//! [`Gateway::bind`] connects to the broker that a [configuration](config) names and binds the
//! addresses; [`Gateway::start`] serves clients, applications and administrators until
//! [`Running::drain`] and [`Running::shut_down`].
//!
//! A module imports only from those that are listed below it:
//!
//! | module | contents |
//! | --- | --- |
//! | `gateway` | a gateway as a whole: binds, serves, reloads and drains |
//! | `takeover` | a new process takes over the listeners and clients of a running one |
//! | `operations` | `/live`, `/ready`, `/metrics` |
//! | `admin` | the API for the admin page |
//! | `api` | the server API |
//! | `transport` | WebSocket, HTTP streaming and SSE, all serving the same session |
//! | `session` | a client's session: executes commands, sends replies |
//! | `source` | databases whose changes are published |
//! | `node` | the workers' shards of the hub, dispatch from broker to shards, presence, cluster |
//! | `server` | listeners, TLS, admission, shutting down |
//! | `metrics` | counters of events |
//! | `producer` | writes publications to Kafka |
//! | `webhook` | tells the application what happens to clients |
//! | `backend` | the application's backends, which are asked what clients may do |
//! | `protocol` | the client protocols: raw, event stream, Centrifuge, native |
//! | `filter` | expressions that select publications |
//! | `auth` | tokens, origins, API keys |
//! | `config` | the configuration: file, environment, flags; channel namespaces |
//! | `http_client` | HTTP requests of our own |
//! | `kafka_cluster` | connections to Kafka |
//! | `client_tls` | TLS of connections to the application |
//! | `channel_pattern` | patterns of channel names |
//! | `endpoint_error` | errors of the settings of what the application runs |
//! | `pem_file` | files with certificates and keys |
//! | `limits` | limits by name |
//! | `clock` | the clock of nodes and sessions |
//! | `quiet` | log lines that clients cannot flood |
#![forbid(unsafe_code)]
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "clients move between processes on Linux only")
)]

mod admin;
mod api;
mod auth;
mod backend;
mod channel_map;
mod channel_pattern;
mod client_tls;
mod clock;
pub mod config;
mod endpoint_error;
mod filter;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod http_client;
mod kafka_cluster;
mod limits;
mod log_limiter;
mod metrics;
mod node;
mod operations;
mod pem_file;
mod platform;
mod producer;
mod protocol;
mod relocation;
mod server;
mod session;
#[cfg(test)]
mod simulation;
mod source;
#[cfg_attr(not(target_os = "linux"), path = "takeover/elsewhere.rs")]
mod takeover;
mod transport;
mod webhook;

pub use auth::{AuthSetupError, KeyRefusal, TokenMaker, TokenMakerError};
pub use endpoint_error::EndpointError;
pub use gateway::{Access, BindError, ClientAccess, Gateway, LogsAccess, ReloadError, Running};
pub use limits::{Limit, Unit};
pub use node::{NodeInfo, PublishError};
pub use server::{CertificateError, ConnectionGuard, Peer};
pub use session::SettingsError;
pub use takeover::TakeoverError;
