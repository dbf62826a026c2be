//! Access-log formats, aggregation and the upload session behind the live log viewer.
//!
//! Bytes go in, figures come out: [`aggregate::Aggregator`] takes a log in pieces of any size and
//! gives a [`summary::Summary`] whenever it is asked, of all requests or of those that a
//! [`query::Query`] chooses; [`parallel::Pool`] does so by several threads. [`session::Session`]
//! wraps it in the protocol that a web page speaks over one WebSocket. There is no file, socket or
//! clock in here: the caller reads, sends and says what time it is.
//!
//! Whatever the input, memory stays within [`aggregate::Limits`], no line is dropped silently, and
//! nothing panics: a line is a request, or it is counted as unparsed with its reason, or it is
//! blank.
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
pub mod countries;
pub mod decode;
pub mod format;
pub mod input;
pub mod lines;
pub mod parallel;
pub mod query;
pub mod session;
mod store;
pub mod summary;
