//! linerate's reactor as a contender, on io_uring.
#![forbid(unsafe_code)]

use contender_linerate_reactor::DriverKind;

fn main() -> kit::Result {
    contender_linerate_reactor::run(DriverKind::IoUring)
}
