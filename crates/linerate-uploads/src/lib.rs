//! Serves uploads of access logs, and logs that grow, with their statistics (subprotocol
//! `linerate.logs.v1`).
//!
//! The worker of a connection receives and sends. Its input passes through a lane, which holds up
//! to 2 MiB, to a session, which parses it in order on one of a few parser threads. A session whose
//! page was closed or whose connection was lost is kept for a while, so that its client can resume
//! it on any worker. Other clients can view a session as well; each has questions of its own.
//!
//! A [`Service`] serves the connections; who may upload is decided by what implements [`Access`].
//!
//! Close codes at the end of a session:
//!
//! | session | code |
//! | --- | --- |
//! | cancelled, idle after its end, or resumed on another connection | 1000 |
//! | a file is not an access log | 1003 |
//! | the files are too large | 1009 |
//! | another client error | 1008 |
//! | too many uploads, or not enough memory | 1013 |
//! | missing or wrong key, or uploads are switched off | 1008 |
#![forbid(unsafe_code)]

mod access;
mod conversation;
mod farewell;
mod file_identity;
mod hosted;
mod lane;
mod memory;
mod options;
mod parsing;
mod service;
mod sessions;
mod tails;
mod viewer_conversation;

pub use access::{Access, Admission, KeyRefusal};
pub use farewell::Farewell;
pub use file_identity::FileIdentity;
pub use options::{DEFAULT_TOML, LogsOptions};
pub use service::Service;
pub use sessions::StartError;
