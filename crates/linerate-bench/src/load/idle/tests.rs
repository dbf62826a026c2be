use super::*;
use crate::load::Usage;
use crate::load::testing::{BUDGET, Growing, IMPATIENT, Opaque, serve_raw, serve_websocket};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const LOAD: Idle = Idle {
    connections: 100,
    payload_bytes: 16 << 10,
};

/// Starts a server that echoes messages after `change` has modified them.
fn serve(change: impl Fn(usize, &mut Vec<u8>) + Send + Sync + 'static) -> Target {
    serve_websocket(move |peer, number| {
        loop {
            let (opcode, mut payload) = peer.read()?;
            change(number, &mut payload);
            peer.send(opcode, &payload)?;
        }
    })
}

/// A process with one byte, and a million bytes for each message that was echoed.
#[derive(Debug)]
struct Counting(Arc<AtomicU64>);

impl Probe for Counting {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        Ok(Some(Usage {
            resident_bytes: 1 + 1_000_000 * self.0.load(Ordering::SeqCst),
            ..Usage::default()
        }))
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cores(&self) -> u32 {
        1
    }
}

#[test]
fn memory_is_read_before_with_all_open_and_after_an_echo_each() {
    let echoes = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&echoes);
    let target = serve(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let figures = measure(&LOAD, &target, &BUDGET, &mut Counting(echoes)).unwrap();
    let memory = IdleMemory {
        connections: 100,
        // This includes the echo on the first connection, which is not counted.
        resident_bytes_before: 1_000_001,
        resident_bytes_idle: 1_000_001,
        resident_bytes_after: 101_000_001,
    };
    assert_eq!(figures.idle, Some(memory));
    assert_eq!((figures.messages, figures.connections), (100.0, 100.0));
}

#[test]
fn memory_that_never_settles_is_taken_as_it_is() {
    let load = Idle {
        connections: 1,
        payload_bytes: 0,
    };
    let figures = measure(&load, &serve(|_, _| {}), &BUDGET, &mut Growing::default()).unwrap();
    let memory = figures.idle.unwrap();
    assert!(memory.resident_bytes_idle > memory.resident_bytes_before);
    assert!(memory.resident_bytes_after > memory.resident_bytes_idle);
}

#[test]
fn a_wrong_echo_on_one_connection_is_noticed() {
    // Connection 0 is closed before the others are opened.
    let target = serve(|number, payload| payload[9000] ^= u8::from(number == 70));
    let error = measure(&LOAD, &target, &BUDGET, &mut Growing::default()).unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 0,
                byte: 9000,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn the_echo_of_another_connection_is_noticed() {
    let target = serve(|number, payload| payload[3] ^= u8::from(number == 70));
    let error = measure(&LOAD, &target, &BUDGET, &mut Growing::default()).unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 0,
                byte: 3,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn one_connection_that_is_silent_is_noticed() {
    let target = serve_websocket(|peer, number| {
        loop {
            let (opcode, payload) = peer.read()?;
            if number != 70 {
                peer.send(opcode, &payload)?;
            }
        }
    });
    let error = measure(&LOAD, &target, &IMPATIENT, &mut Growing::default()).unwrap_err();
    assert!(matches!(error, LoadError::Silent { .. }), "{error}");
}

#[test]
fn a_server_that_cannot_be_looked_into_has_no_figures() {
    let error = measure(&LOAD, &serve(|_, _| {}), &BUDGET, &mut Opaque).unwrap_err();
    assert!(matches!(error, LoadError::Unseen), "{error}");
    assert!(error.is_ours());
}

#[test]
fn a_raw_server_echoes_what_was_sent() {
    let target = serve_raw(|mut stream, _| {
        let mut buffer = [0; 2048];
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                bytes => stream.write_all(&buffer[..bytes])?,
            }
        }
    });
    measure(&LOAD, &target, &BUDGET, &mut Growing::default()).unwrap();
}
