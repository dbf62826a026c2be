//! The hub under a virtual clock.

#![allow(clippy::unwrap_used, reason = "a test that goes wrong is to panic")]

mod basics;
mod conflation;
mod deliveries;
mod limits;
mod recovery;
mod scope;
mod sharing;
mod simulation;
mod slices;
mod slow;
mod ticks;
mod world;
