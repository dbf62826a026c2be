//! linerate's reactor as a contender, on its default driver.
#![forbid(unsafe_code)]

use contender_linerate_reactor::DriverKind;

fn main() -> kit::Result {
    contender_linerate_reactor::run(DriverKind::default())
}
