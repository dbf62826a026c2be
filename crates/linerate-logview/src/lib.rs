//! Access-log formats, aggregation, and the upload session of the live log viewer.
//!
//! Bytes go in and figures come out: [`aggregate::Aggregator`] accepts a log in pieces of any size
//! and returns a [`summary::Summary`] on demand, either of all requests or of those that a
//! [`query::Query`] selects. [`parallel::Pool`] does the same on several threads, and
//! [`session::Session`] wraps it in the protocol that a web page speaks over one WebSocket. The
//! crate uses no sockets or clocks: the caller reads, sends, and passes in the current time. The
//! only files are those of a [`spill::SpillSpace`], if the caller provides one for large logs.
//!
//! For any input, memory stays within [`aggregate::Limits`], no line is dropped silently, and
//! nothing panics. Every line is counted as a request, as blank, or as unparsed with its reason.
//!
//! ```
//! use linerate_logview::aggregate::{Aggregator, Limits};
//!
//! let mut log = Aggregator::new(Limits::default());
//! log.handle_input(b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /a?b=1 HTT");
//! log.handle_input(b"P/1.1\" 200 654\nnot a request\n");
//! log.handle_eof();
//!
//! let summary = log.summary();
//! assert_eq!((summary.requests, summary.unparsed, summary.bytes_sent), (1, 1, 654));
//! assert_eq!(summary.top_paths, [("/a".to_string(), 1)]);
//! ```
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod asns;
pub mod countries;
pub mod decode;
mod excerpt;
pub mod format;
pub mod input;
pub mod lines;
pub mod parallel;
pub mod query;
mod rate;
pub mod session;
pub mod spill;
mod store;
pub mod summary;
