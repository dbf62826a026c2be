use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;

use linerate_proto::Opcode;

use super::*;
use crate::load::message::Message;
use crate::load::testing::{BUDGET, Growing, IMPATIENT, serve_raw, serve_websocket};

const LOAD: Fanout = Fanout {
    subscribers: 9,
    payload_bytes: 128,
    window: 4,
};

/// The clients that receive what is published.
type Subscribers = Arc<Mutex<Vec<TcpStream>>>;

fn run(target: &Target, budget: &Budget) -> Result<Figures, LoadError> {
    measure(&LOAD, target, budget, &mut Growing::default())
}

/// Starts a fan-out server. `deliver` receives the number of a message, the number of a subscriber
/// and the payload, and returns the frames that this subscriber is sent.
fn serve(deliver: impl Fn(usize, usize, &[u8]) -> Vec<u8> + Send + Sync + 'static) -> Target {
    let subscribers = Subscribers::default();
    serve_websocket(move |peer, _| {
        subscribers.lock().unwrap().push(peer.stream.try_clone()?);
        for number in 0.. {
            let (opcode, payload) = peer.read()?;
            assert_eq!(opcode, Opcode::Text);
            for (place, subscriber) in subscribers.lock().unwrap().iter_mut().enumerate() {
                subscriber.write_all(&deliver(number, place, &payload))?;
            }
        }
        Ok(())
    })
}

fn text(payload: &[u8]) -> Vec<u8> {
    Message::new(Opcode::Text, payload, None).frame().to_vec()
}

#[test]
fn deliveries_to_subscribers_count() {
    let target = serve(|_, _, payload| text(payload));
    let figures = run(&target, &BUDGET).unwrap();
    assert!(figures.messages >= 9.0);
    assert_eq!(figures.payload_bytes, figures.messages * 128.0);
    assert_eq!(figures.latency.unwrap().count as f64, figures.messages);
}

#[test]
fn fragmented_deliveries_count() {
    let target = serve(|_, _, payload| {
        let (first, rest) = payload.split_at(100);
        let mut frames = vec![0x01, 100];
        frames.extend_from_slice(first);
        frames.extend_from_slice(&[0x80, rest.len() as u8]);
        frames.extend_from_slice(rest);
        frames
    });
    assert!(run(&target, &BUDGET).unwrap().messages >= 9.0);
}

#[test]
fn payloads_may_be_shorter_than_a_number() {
    for payload_bytes in [0, 3] {
        let load = Fanout {
            payload_bytes,
            ..LOAD
        };
        let target = serve(|_, _, payload| text(payload));
        let figures = measure(&load, &target, &BUDGET, &mut Growing::default()).unwrap();
        assert!(figures.messages >= 9.0);
    }
}

#[test]
fn a_connection_may_be_subscribed_after_its_handshake() {
    let subscribers = Subscribers::default();
    let target = serve_websocket(move |peer, number| {
        let (late, stream) = (Arc::clone(&subscribers), peer.stream.try_clone()?);
        thread::spawn(move || {
            if number == 5 {
                thread::sleep(SUBSCRIBING / 2);
            }
            late.lock().unwrap().push(stream);
        });
        loop {
            let (_, payload) = peer.read()?;
            for subscriber in subscribers.lock().unwrap().iter_mut() {
                subscriber.write_all(&text(&payload))?;
            }
        }
    });
    assert!(run(&target, &BUDGET).unwrap().messages >= 9.0);
}

#[test]
fn a_lost_delivery_is_noticed() {
    let target = serve(|number, place, payload| match (number, place) {
        (7, 3) => Vec::new(),
        _ => text(payload),
    });
    let error = run(&target, &BUDGET).unwrap_err();
    // The next message arrives in its place, so the last digit differs.
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 7,
                byte: 15,
                expected: b'7',
                found: b'8'
            }
        ),
        "{error}"
    );
}

#[test]
fn a_doubled_delivery_is_noticed() {
    let target = serve(|number, place, payload| match (number, place) {
        (7, 3) => [text(payload), text(payload)].concat(),
        _ => text(payload),
    });
    let error = run(&target, &BUDGET).unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 8,
                byte: 15,
                expected: b'8',
                found: b'7'
            } | LoadError::Unasked { message: 8 }
        ),
        "{error}"
    );
}

#[test]
fn swapped_deliveries_are_noticed() {
    let held = Mutex::new(Vec::new());
    let target = serve(move |number, place, payload| match (number, place) {
        (7, 3) => {
            *held.lock().unwrap() = text(payload);
            Vec::new()
        }
        (8, 3) => [text(payload), std::mem::take(&mut held.lock().unwrap())].concat(),
        _ => text(payload),
    });
    let error = run(&target, &BUDGET).unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 7,
                byte: 15,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_delivery_with_other_bytes_is_noticed() {
    let target = serve(|number, place, payload| {
        let mut payload = payload.to_vec();
        payload[127] ^= u8::from((number, place) == (7, 3));
        text(&payload)
    });
    let error = run(&target, &BUDGET).unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 7,
                byte: 127,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn the_last_delivery_of_all_may_not_be_missing() {
    let target = serve(|number, place, payload| match (number, place) {
        (7.., 3) => Vec::new(),
        _ => text(payload),
    });
    let error = run(&target, &IMPATIENT).unwrap_err();
    assert!(matches!(error, LoadError::Silent { .. }), "{error}");
}

#[test]
fn the_publisher_needs_its_own_copy() {
    let target = serve_websocket(|peer, _| {
        peer.read()?;
        peer.read().map(|_| ())
    });
    let load = Fanout {
        subscribers: 0,
        ..LOAD
    };
    let error = measure(&load, &target, &IMPATIENT, &mut Growing::default()).unwrap_err();
    assert!(matches!(error, LoadError::Silent { .. }), "{error}");
}

#[test]
fn a_raw_server_passes_on_what_was_sent() {
    let subscribers = Subscribers::default();
    let target = serve_raw(move |mut stream, _| {
        subscribers.lock().unwrap().push(stream.try_clone()?);
        let mut buffer = [0; 300];
        loop {
            let bytes = stream.read(&mut buffer)?;
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            for subscriber in subscribers.lock().unwrap().iter_mut() {
                subscriber.write_all(&buffer[..bytes])?;
            }
        }
    });
    assert!(run(&target, &BUDGET).unwrap().messages >= 9.0);
}
