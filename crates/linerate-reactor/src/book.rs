//! The code in the tour of the reactor, which is compiled as documentation tests.

#[doc = include_str!("../../../docs/reactor/tour.md")]
struct Tour;
