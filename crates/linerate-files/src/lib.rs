//! Receives files of any size over WebSockets (subprotocol `linerate.upload.v1`).
//!
//! A client, such as the npm module `linerate/upload`, sends several files over one connection.
//! Each is resumed where it stopped if the connection is lost. A [`Store`] decides what happens to
//! the bytes: a [`Folder`] writes them to disk; your own can hash, decompress or forward them.
//!
//! ```no_run
//! use linerate::{Options, Server};
//! use linerate_files::{Folder, Limits, Uploads};
//!
//! # async fn f() -> std::io::Result<()> {
//! let uploads = Uploads::new(Folder::open("received").await?, Limits::default());
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:9001").await?;
//! let handler = move |incoming| {
//!     let uploads = uploads.clone();
//!     async move { uploads.accept(incoming).await }
//! };
//! let server = Server::new().with_options(Options::default().without_compression());
//! server.serve_incoming(listener, handler, std::future::pending()).await
//! # }
//! ```
//!
//! The protocol is described in `docs/library/uploads.md`.
//!
//! # Memory
//!
//! Bytes are passed to the store in the pieces in which they arrive, and the next piece is read
//! when the store has taken the last one. So a slow store slows its clients down, and no file is
//! ever held in memory. Beyond that, an upload takes its name and a few hundred bytes; the number
//! of uploads is limited by [`Limits::open_max`].
#![forbid(unsafe_code)]

mod conversation;
mod error;
mod folder;
mod id;
mod limits;
mod message;
mod registry;
mod service;
mod shared;
mod slot;
mod store;

pub use error::UploadError;
pub use folder::{Folder, FolderFile};
pub use id::UploadId;
pub use limits::Limits;
pub use message::SUBPROTOCOL;
pub use service::Uploads;
pub use store::{Announced, Store, StoredFile};

/// Access to private parsers, for fuzzers only.
#[cfg(fuzzing)]
pub mod fuzzing;
