//! Replacing the engine: a second engine that is fed the unread bytes and the following input
//! reports the remaining events.

use core::time::Duration;

use linerate_proto::{Config, Engine, Event, Role, engine::MessageKind};
use linerate_testkit::{Frame, TestEndpoint};

/// The events so far: reassembled messages, Pings, Pongs and the close code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    messages: Vec<(MessageKind, Vec<u8>)>,
    /// The message that has not ended yet.
    unfinished: Option<(MessageKind, Vec<u8>)>,
    controls: Vec<Vec<u8>>,
    close: Option<u16>,
}

fn hear(engine: &mut Engine<TestEndpoint>, wire: &[u8], heard: &mut Heard) {
    let mut input = wire.to_vec();
    let mut events = engine.handle_input(&mut input, Duration::ZERO);
    while let Some(event) = events.next() {
        match event.expect("the frames are legal") {
            Event::Text(text) => heard.messages.push((MessageKind::Text, text.into())),
            Event::Binary(bytes) => heard.messages.push((MessageKind::Binary, bytes.to_vec())),
            Event::Chunk(chunk) => {
                let unfinished = heard.unfinished.get_or_insert((chunk.kind, Vec::new()));
                unfinished.1.extend_from_slice(chunk.bytes);
                if chunk.ends {
                    heard.messages.extend(heard.unfinished.take());
                }
            }
            Event::Ping(payload) | Event::Pong(payload) => heard.controls.push(payload.to_vec()),
            Event::Close(frame) => heard.close = frame.code.map(|code| code.as_u16()),
        }
    }
}

fn engine(role: Role) -> Engine<TestEndpoint> {
    Engine::new(TestEndpoint(role), Config::default().into(), Duration::ZERO)
}

#[test]
fn nothing_is_lost_wherever_another_reader_continues() {
    for role in [Role::Client, Role::Server] {
        let wire = [
            Frame::new(0x1, "smörgås".as_bytes()),
            Frame::new(0x2, b"").with_fin(false),
            Frame::new(0x9, b"are you there?"),
            Frame::new(0x0, &[7; 200]).with_fin(false),
            Frame::new(0xA, b"pong"),
            Frame::new(0x0, b"end"),
            Frame::new(0x2, b"x"),
            Frame::new(0x8, b"\x03\xe8bye"),
        ]
        .map(|frame| frame.to_role(role).to_bytes())
        .concat();
        let mut whole = Heard::default();
        hear(&mut engine(role), &wire, &mut whole);
        assert_eq!((whole.messages.len(), whole.controls.len()), (3, 2));
        for at in 0..wire.len() {
            let mut heard = Heard::default();
            let mut first = engine(role);
            hear(&mut first, &wire[..at], &mut heard);
            let mut second = engine(role);
            // The second engine must know the part of a message that the first has reported.
            if let Some((kind, bytes)) = heard.unfinished.take() {
                let part = Frame::new(kind.opcode() as u8, &bytes).with_fin(false);
                hear(&mut second, &part.to_role(role).to_bytes(), &mut heard);
            }
            let unread = first.unread().expect("nothing is compressed");
            hear(&mut second, &[&unread, &wire[at..]].concat(), &mut heard);
            assert_eq!(heard, whole, "{role:?}, cut at {at}");
        }
    }
}
