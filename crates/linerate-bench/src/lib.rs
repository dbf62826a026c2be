//! Measures WebSocket servers, ours and others, in one way for all.
//!
//! The way of a figure: a [`scenario`] is read from TOML and gives cells; for each cell a
//! [`contender`]'s server is started as a [`server`] process of its own, pinned to cores; [`load`]
//! talks to it from other cores and checks every answer; [`run`] has the contenders take turns and
//! appends each measurement to a [`record`]; [`report`] and [`compare`] read nothing but records.
//!
//! What is measured and why is in `bench/METHODOLOGY.md`; what that favours, in `bench/BIAS.md`.
#![forbid(unsafe_code)]

pub mod cell;
pub mod compare;
pub mod contender;
pub mod host;
pub mod load;
pub mod progress;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod server;
pub mod story;
pub mod summary;
