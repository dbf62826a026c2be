//! Free ports.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
    process,
    sync::atomic::{AtomicU16, Ordering},
};

/// These ports are below those that kernels assign to clients by default, so that none of thousands
/// of connections can occupy the port of a server that is about to be started or restarted.
const PORTS: Range<u16> = 15_000..32_000;

/// Returns a port of the loopback interface that is not in use and was not returned recently.
/// Connections of the last server on a port may linger, and not every server tolerates that.
///
/// # Errors
/// Returns an error if no port is free.
pub fn free() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Concurrent runs, such as those of tests, start at different ports.
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
        // Whether this succeeds or not, the port is in use.
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, next));
        for _ in 0..100 {
            let port = free().unwrap();
            assert!(PORTS.contains(&port) && port != first && port != next);
        }
    }
}
