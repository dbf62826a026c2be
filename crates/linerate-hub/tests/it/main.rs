//! The hub under a virtual clock.

#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

mod basics;
mod conflation;
mod deliveries;
mod deltas;
mod limits;
mod portable;
mod recovery;
mod scope;
mod sharing;
mod simulation;
mod slices;
mod slow;
mod ticks;
mod world;
