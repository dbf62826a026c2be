//! linerate's reactor as a contender, on the driver that it chooses by itself.
#![forbid(unsafe_code)]

use contender_linerate_reactor::DriverKind;

fn main() -> kit::Result {
    contender_linerate_reactor::run(DriverKind::Auto)
}
