//! Any answer to our offer, and then any messages: both ends keep to the agreement.
#![no_main]

use core::time::Duration;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use linerate_proto::{
    Engine, Role,
    deflate::{Agreement, Deflate, ThreadPool},
    engine::MessageKind,
    handshake::{ClientHandshake, HandshakeLimits, RequestReader},
};
use linerate_testkit::{Cuts, Seen, TestEndpoint, feed};

// The first line is an offer, the second an answer; the rest are messages, each of which begins
// with its length and whether it is sent in fragments. The total length chooses the level.
fuzz_target!(|data: &[u8]| {
    let mut lines = data.splitn(3, |&byte| byte == b'\n');
    let (Some(offer), Some(answer), Some(messages)) = (lines.next(), lines.next(), lines.next())
    else {
        return;
    };
    let mut options = Deflate::default();
    options.level = 1 + (messages.len() % 9) as u8;
    options.message_bytes_min = 0;
    if let Some(agreement) = accepted(offer, &options) {
        round_trip(Role::Server, agreement, messages, &options);
    }
    if let Some(agreement) = judged(answer, &options) {
        round_trip(Role::Client, agreement, messages, &options);
    }
});

fn accepted(offer: &[u8], options: &Deflate) -> Option<Agreement> {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Extensions: ";
    let request = [head, offer, b"\r\n\r\n"].concat();
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let (request, _) = reader.handle_input(&request).ok()??;
    let upgrade = request.websocket().ok()?;
    upgrade.accept().with_deflate(options).deflate()
}

fn judged(answer: &[u8], options: &Deflate) -> Option<Agreement> {
    let head = b"HTTP/1.1 101 a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Extensions: ";
    let response = [head, answer, b"\r\n\r\n"].concat();
    let handshake = ClientHandshake::new("a", "/", *b"the sample nonce").ok()?;
    let mut handshake = handshake.with_deflate(*options);
    handshake.handle_input(&response).ok()??.0.deflate()
}

/// Sends messages from `role` to a peer with the same agreement.
fn round_trip(role: Role, agreement: Agreement, mut messages: &[u8], options: &Deflate) {
    let start = |role, agreement| {
        Engine::new(TestEndpoint(role), Arc::default(), Duration::ZERO).with_deflate(
            agreement,
            options,
            &ThreadPool,
        )
    };
    let (peer, mirrored) = match role {
        Role::Client => (Role::Server, agreement),
        Role::Server => (Role::Client, agreement),
    };
    let mirrored = Agreement {
        sending: mirrored.receiving,
        receiving: mirrored.sending,
    };
    let (mut sender, mut receiver) = (start(role, agreement), start(peer, mirrored));
    let (mut wire, mut expected) = (Vec::new(), Vec::new());
    while let [length, how, rest @ ..] = messages {
        let (message, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        let repeated = message.repeat(usize::from(*how >> 2));
        let cut = repeated.len() / 2;
        let kind = MessageKind::Binary;
        let sent = match how & 3 {
            0 => sender.send_uncompressed(&mut wire, kind, &repeated),
            1 => sender
                .send_fragment(&mut wire, kind, &repeated[..cut], false)
                .and_then(|()| sender.send_fragment(&mut wire, kind, &repeated[cut..], true)),
            _ => sender.send(&mut wire, kind, &repeated),
        };
        sent.expect("the connection is open");
        expected.push(Seen::binary(&repeated));
        messages = rest;
    }
    let seen = feed(&mut receiver, &wire, Cuts::Whole).seen;
    assert!(seen == expected, "received something other than was sent");
}
