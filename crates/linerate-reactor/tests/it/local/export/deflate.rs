//! Connections that move with their windows.

use linerate_proto::{
    Engine, Role,
    deflate::{Agreement, Context, ThreadPool},
};
use linerate_reactor::{Deflate, portable};
use linerate_testkit::{Record, TestEndpoint};

use super::*;

fn agreement(takeover: bool) -> Agreement {
    let context = Context {
        window_bits: 12,
        takeover,
    };
    Agreement {
        sending: context,
        receiving: context,
    }
}

fn options(exportable: bool) -> Deflate {
    let mut options = Deflate::default();
    options.exportable = exportable;
    options
}

fn client(takeover: bool) -> Engine<TestEndpoint> {
    let engine = Engine::new(TestEndpoint(Role::Client), Arc::default(), Duration::ZERO);
    engine.with_deflate(agreement(takeover), &options(false), &ThreadPool)
}

fn mover(takeover: bool, options: Deflate) -> Mover {
    let mut mover = Mover::with(LocalMessages::Collected, quiet(), |adoption| {
        adoption.with_deflate(agreement(takeover), &options)
    });
    mover.options = ImportOptions::new().with_deflate(&options);
    mover
}

/// Returns what a client sends: compressed messages, whole and in fragments, and Pings.
fn script(takeover: bool) -> Vec<u8> {
    let mut client = client(takeover);
    let mut wire = Vec::new();
    for number in 0..6 {
        let value = number * 7_919;
        let text = format!(r#"{{"channel":"prices","number":{number},"value":"{value}"}} "#);
        let text = text.repeat(3 + number * 5);
        let sent = client.send(&mut wire, MessageKind::Text, text.as_bytes());
        sent.unwrap();
        let (first, rest) = text.as_bytes().split_at(text.len() / 2);
        for (part, fin) in [(first, false), (rest, true)] {
            let sent = client.send_fragment(&mut wire, MessageKind::Binary, part, fin);
            sent.unwrap();
            if !fin {
                wire.extend(masked(0x9, b"in a message"));
            }
        }
    }
    wire
}

/// Returns the messages and Pongs in the output.
fn inflated(mut output: Vec<u8>, takeover: bool) -> Record {
    let mut client = client(takeover);
    let mut record = Record::default();
    let mut events = client.handle_input(&mut output, Duration::ZERO);
    while let Some(event) = events.next() {
        record.add(event);
    }
    record
}

#[test]
fn compressed_connections_move_at_every_byte() {
    for takeover in [true, false] {
        let wire = script(takeover);
        let still = run(mover(takeover, options(true)), wire.chunks(1), false);
        let moving = run(mover(takeover, options(true)), wire.chunks(1), true);
        assert_eq!(still.messages.len(), 12);
        assert!(moving.messages == still.messages);
        if !takeover {
            assert!(moving.output == still.output);
        }
        // A new compressor with the same window may find other references.
        let record = inflated(moving.output, takeover);
        assert!(record == inflated(still.output, takeover));
        assert_eq!(record.seen.len(), 18);
    }
}

#[test]
fn a_message_that_cannot_move_stays_with_its_connection() {
    let wire = script(true);
    let still = run(mover(true, options(false)), wire.chunks(10), false);
    let mut mover = mover(true, options(false));
    let mut refused = 0;
    for piece in wire.chunks(10) {
        mover.feed(piece);
        match mover.export() {
            Ok(exported) => {
                mover.now = 1 - mover.now;
                mover.import(exported);
            }
            Err(error) => {
                let message = portable::ExportError::CompressedMessage;
                assert_eq!(error, ExportError::Engine(message));
                refused += 1;
            }
        }
    }
    mover.settle();
    assert!(refused > 20, "{refused}");
    assert!(mover.seen.messages == still.messages);
    assert!(inflated(mover.seen.output, true) == inflated(still.output, true));
}
