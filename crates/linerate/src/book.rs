//! The code in the README and in the tour of the library, which is compiled as documentation tests.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/library/tour.md")]
struct Tour;
