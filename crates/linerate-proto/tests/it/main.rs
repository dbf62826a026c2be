//! Tests of the public interface of the engine: bytes in, events and bytes out.
//!
//! Tests whose names begin with F, U, X or K and a number are rows of the project's table of bad
//! inputs: framing, UTF-8, compression, and concurrency.

mod close_codes;
mod closing;
mod control;
mod cuts;
#[cfg(all(feature = "deflate", feature = "std"))]
mod deflate;
mod feed_cost;
mod fragmentation;
mod headers;
mod keepalive;
mod lengths;
mod oracle;
mod portable;
mod raw;
mod relay;
mod sending;
mod showing;
mod situation;
mod types;
mod unread;
mod utf8;
