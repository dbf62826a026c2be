use std::io::{Read, Write};
use std::time::Duration;

use super::*;
use crate::load::testing::{BUDGET, Growing, IMPATIENT, Peer, serve_raw, serve_websocket};

const LOAD: Upload = Upload {
    payload_bytes: 1000,
    window: 3,
    total_bytes: 100_000,
};

fn run(load: &Upload, target: &Target, budget: &Budget) -> Result<Figures, LoadError> {
    measure(load, target, budget, &mut Growing::default())
}

/// Starts a server that answers each message with what `answer` returns for its number and length.
fn serve(answer: impl Fn(usize, usize) -> String + Send + Sync + 'static) -> Target {
    serve_websocket(move |peer, _| {
        for number in 0.. {
            let (opcode, payload) = peer.read()?;
            assert_eq!(opcode, Opcode::Binary);
            let text = answer(number, payload.len());
            peer.send(Opcode::Text, text.as_bytes())?;
        }
        Ok(())
    })
}

#[test]
fn every_message_is_acknowledged() {
    let target = serve(|_, bytes| bytes.to_string());
    let figures = run(&LOAD, &target, &BUDGET).unwrap();
    assert_eq!(
        (figures.messages, figures.payload_bytes),
        (100.0, 100_000.0)
    );
    assert_eq!(figures.latency.unwrap().count, 100);
    assert_eq!(figures.server.unwrap().cores, 1);
}

#[test]
fn a_total_that_is_no_multiple_is_rounded_up() {
    let target = serve(|_, bytes| bytes.to_string());
    for (total_bytes, messages) in [(0, 1.0), (1000, 1.0), (1001, 2.0)] {
        let load = Upload {
            total_bytes,
            ..LOAD
        };
        assert_eq!(run(&load, &target, &BUDGET).unwrap().messages, messages);
    }
}

/// Neither side may wait for the other: the messages do not fit into the sockets' buffers, and the
/// server reads nothing while it answers.
#[test]
fn long_messages_and_a_server_that_pauses_do_not_deadlock() {
    let target = serve_websocket(|peer, _| {
        loop {
            let (_, payload) = peer.read()?;
            std::thread::sleep(Duration::from_millis(1));
            // Sends each byte separately.
            let text = payload.len().to_string();
            for byte in Message::new(Opcode::Text, text.as_bytes(), None).frame() {
                peer.stream.write_all(&[*byte])?;
            }
        }
    });
    let load = Upload {
        payload_bytes: 8 << 20,
        window: 2,
        total_bytes: 24 << 20,
    };
    assert_eq!(run(&load, &target, &BUDGET).unwrap().messages, 3.0);
}

#[test]
fn a_ping_in_the_middle_is_answered_between_messages() {
    let target = serve_websocket(|peer: &mut Peer, _| {
        let (_, payload) = peer.read()?;
        peer.send(Opcode::Ping, b"there?")?;
        peer.send(Opcode::Text, payload.len().to_string().as_bytes())?;
        let mut pongs = 0;
        loop {
            let (opcode, payload) = peer.read()?;
            if opcode == Opcode::Pong {
                assert_eq!(payload, b"there?");
                pongs += 1;
                continue;
            }
            // A client that does not answer the Ping gets nothing more.
            if pongs == 1 {
                peer.send(Opcode::Text, payload.len().to_string().as_bytes())?;
            }
        }
    });
    let load = Upload { window: 1, ..LOAD };
    assert_eq!(run(&load, &target, &BUDGET).unwrap().messages, 100.0);
}

#[test]
fn a_wrong_number_is_noticed() {
    let target = serve(|number, bytes| (bytes + usize::from(number == 40)).to_string());
    let error = run(&LOAD, &target, &BUDGET).unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 40,
                byte: 3,
                expected: b'0',
                found: b'1'
            }
        ),
        "{error}"
    );
}

/// The message does not fit into the sockets' buffers, and the server reads none of it.
#[test]
fn an_acknowledgement_before_the_end_of_the_message_is_noticed() {
    let load = Upload {
        payload_bytes: 64 << 20,
        window: 1,
        total_bytes: 64 << 20,
    };
    let target = serve_websocket(|peer, _| {
        peer.send(Opcode::Text, b"67108864")?;
        std::thread::sleep(BUDGET.silence_max);
        Ok(())
    });
    let error = run(&load, &target, &BUDGET).unwrap_err();
    assert!(
        matches!(error, LoadError::Unasked { message: 0 }),
        "{error}"
    );
}

#[test]
fn silence_is_noticed() {
    let target = serve_websocket(|peer, _| {
        loop {
            peer.read()?;
        }
    });
    let error = run(&LOAD, &target, &IMPATIENT).unwrap_err();
    assert!(matches!(error, LoadError::Silent { .. }), "{error}");
}

#[test]
fn an_end_in_the_middle_is_noticed() {
    let target = serve_websocket(|peer, _| peer.read().map(|_| ()));
    let error = run(&LOAD, &target, &BUDGET).unwrap_err();
    assert!(
        matches!(error, LoadError::Ended | LoadError::Broken(_)),
        "{error}"
    );
}

#[test]
fn a_raw_server_is_told_how_long_messages_are() {
    let target = serve_raw(|mut stream, _| {
        let mut message_bytes = [0; 8];
        stream.read_exact(&mut message_bytes)?;
        let mut message = vec![0; u64::from_le_bytes(message_bytes) as usize];
        // A header with a length of two bytes, then a masking key.
        assert_eq!(message.len(), 4 + 4 + 1000);
        loop {
            stream.read_exact(&mut message)?;
            stream.write_all(&[0x06])?;
        }
    });
    assert_eq!(run(&LOAD, &target, &BUDGET).unwrap().messages, 100.0);
}
