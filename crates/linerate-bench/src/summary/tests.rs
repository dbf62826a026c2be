//! Medians, ratios, rankings and means of records made by hand.

mod counting;
mod means;
mod ranking;
pub(crate) mod sample;
