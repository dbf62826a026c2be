//! Limits of requests: who exceeds one, whom others would hit, and rules that enforce it.

pub(crate) mod curve;
pub(crate) mod people;
pub(crate) mod rules;
pub(crate) mod window;
