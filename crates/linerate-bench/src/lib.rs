//! Measures WebSocket servers, linerate and others, in the same way for all.
//!
//! How a figure is measured: a [`scenario`] is read from TOML and expands to cells. For each cell a
//! [`contender`]'s server is started as a separate [`server`] process, pinned to cores. The
//! [`load`] talks to it from other cores and checks every answer. A [`run`] lets the contenders
//! take turns and appends each measurement to a [`record`]. [`report`] and [`compare`] read only
//! records.
//!
//! `docs/benchmark/method.md` explains what is measured and why; `docs/benchmark/bias.md` explains
//! what that favours.
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
