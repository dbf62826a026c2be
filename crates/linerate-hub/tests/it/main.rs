//! The hub under a virtual clock.

#![allow(clippy::unwrap_used, reason = "a test that goes wrong is to panic")]

mod basics;
mod conflation;
mod simulation;
mod world;
