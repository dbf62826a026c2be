//! Tests of medians, ratios, rankings and means, with records made by hand.

mod counting;
mod means;
mod ranking;
pub(crate) mod sample;
