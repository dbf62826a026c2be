//! Our client and server with any options, and any offer: the agreement was offered, and both ends
//! agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_proto::{
    deflate::{Agreement, Deflate},
    handshake::{ClientHandshake, HandshakeLimits, RequestReader},
};

// Eight bytes are the options of a client and of a server; the rest is an offer of another client.
fuzz_target!(|data: &[u8]| {
    let Some((options, offer)) = data.split_first_chunk::<8>() else {
        return;
    };
    let (client, server) = (deflate(&options[..4]), deflate(&options[4..]));
    ours_agree(client, server);
    if !offer.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        answer_is_what_was_offered(offer, server);
    }
});

fn deflate(bytes: &[u8]) -> Deflate {
    let mut deflate = Deflate::default();
    deflate.window_bits = bytes[0];
    deflate.peer_window_bits = bytes[1];
    deflate.takeover = bytes[2] & 1 != 0;
    deflate.peer_takeover = bytes[3] & 1 != 0;
    deflate
}

/// Our server answers every offer of our client, and each knows what the other will do.
fn ours_agree(client: Deflate, server: Deflate) {
    let handshake = ClientHandshake::new("a", "/", *b"the sample nonce").expect("they are valid");
    let mut handshake = handshake.with_deflate(client);
    let mut request = Vec::new();
    handshake.encode(&mut request);
    let (answer, theirs) = accept(&request, server).expect("our request is valid");
    let theirs = theirs.expect("our offer is valid");
    let (negotiated, bytes) = handshake
        .handle_input(&answer)
        .expect("our answer is valid")
        .expect("it is whole");
    assert_eq!(bytes, answer.len());
    let ours = negotiated.deflate().expect("it was agreed on");
    // A side that was not asked to use less does not announce that it does.
    assert!(theirs.sending.window_bits <= ours.receiving.window_bits);
    assert_eq!(ours.receiving.takeover, theirs.sending.takeover);
    assert!(ours.sending.window_bits <= theirs.receiving.window_bits);
    assert!(!ours.sending.takeover || theirs.receiving.takeover);
    for agreement in [ours, theirs] {
        assert_is_legal(agreement);
    }
}

/// RFC 7692 §7.1: an answer has `client_max_window_bits` only if the offer had, and never more bits
/// than were offered.
fn answer_is_what_was_offered(offer: &[u8], server: Deflate) {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Extensions: ";
    let request = [head, offer, b"\r\n\r\n"].concat();
    let Some((answer, agreement)) = accept(&request, server) else {
        return;
    };
    let answer = String::from_utf8(answer).expect("answers are ASCII");
    let says = |what: &str| answer.contains(what);
    let Some(agreement) = agreement else {
        assert!(!says("Sec-WebSocket-Extensions"));
        return;
    };
    assert_is_legal(agreement);
    let offer = String::from_utf8_lossy(offer).to_ascii_lowercase();
    for parameter in ["client_max_window_bits", "server_max_window_bits"] {
        assert!(!says(parameter) || offer.contains(parameter), "{parameter}");
    }
    assert_eq!(
        says("server_no_context_takeover"),
        !agreement.sending.takeover
    );
    assert_eq!(
        says("client_no_context_takeover"),
        !agreement.receiving.takeover
    );
    // A client that can parse its own offer accepts the answer.
    assert_eq!(answer.matches("permessage-deflate").count(), 1);
}

fn assert_is_legal(agreement: Agreement) {
    for context in [agreement.sending, agreement.receiving] {
        assert!((8..=15).contains(&context.window_bits));
    }
}

/// Returns the answer and its agreement; `None` if the request does not open a WebSocket.
fn accept(request: &[u8], options: Deflate) -> Option<(Vec<u8>, Option<Agreement>)> {
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let (request, _) = reader.handle_input(request).ok()??;
    let upgrade = request.websocket().ok()?;
    let acceptance = upgrade.accept().with_deflate(&options);
    let mut answer = Vec::new();
    acceptance.encode(&mut answer);
    Some((answer, acceptance.deflate()))
}
