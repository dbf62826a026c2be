//! linerate's reactor as a contender, on the driver that it selects by default.
#![forbid(unsafe_code)]

use contender_linerate_reactor::DriverKind;

fn main() -> kit::Result {
    contender_linerate_reactor::run(DriverKind::Auto)
}
