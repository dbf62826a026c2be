//! Free ports.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that kernels give to clients by default, so that none of our thousands of
/// connections can have taken a server's port.
const PORTS: Range<u16> = 20_000..32_000;

/// Returns a port of the loopback interface that nobody listens on and that was not returned lately:
/// connections of the last server that had it may linger, and not every server is content with that.
///
/// # Errors
///
/// None is free.
pub(super) fn free() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Runs beside one another, as those of tests, begin in different places.
    let start = (process::id() as u16).wrapping_mul(61);
    let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
    for _ in PORTS {
        let turn = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + turn % PORTS.len() as u16;
        result = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(|_listener| port);
        if result.is_ok() {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_in_use_is_not_given() {
        let first = free().unwrap();
        let next = PORTS.start + (first - PORTS.start + 1) % PORTS.len() as u16;
        // Whoever has it, it is taken.
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, next));
        for _ in 0..100 {
            let port = free().unwrap();
            assert!(PORTS.contains(&port) && port != first && port != next);
        }
    }
}
