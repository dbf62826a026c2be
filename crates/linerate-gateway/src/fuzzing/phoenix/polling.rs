//! Any requests of clients that poll, any bytes as their bodies, and as frames of their output.

use bytes::Bytes;
use http::Method;
use linerate_proto::{Opcode, frame};
use uuid::Uuid;

use crate::protocol::{
    decode::DecodeError,
    dialect::Opening,
    phoenix::polling::ENDPOINT,
    polling::{
        ClientMessage, PollEnd, Polled, PolledName, PollingOutcome, PollingRefusal, PollingRequest,
        messages,
    },
};

/// Reads a request with each method. All agree on the session.
pub(super) fn request(opening: &Opening<'_>) {
    let read = |method| (ENDPOINT.read)(&method, opening);
    match (read(Method::GET), read(Method::POST)) {
        (Ok(PollingRequest::Open), Err(PollingRefusal::UnknownSession)) => {}
        (Ok(PollingRequest::Poll(polled)), Ok(PollingRequest::Send(sent))) => {
            assert_eq!(polled, sent);
            assert_eq!(PolledName::parse(&polled.to_string()), Some(polled));
        }
        other => panic!("{other:?}"),
    }
}

/// Reads `data` as frames, and as a body, whose messages, as output of a session, are those in a
/// response.
pub(super) fn body(data: &[u8]) {
    assert!(responded(data.to_vec()).len() <= data.len());
    let lines = data.split(|&byte| byte == b'\n').count();
    let mut rest = Some(Bytes::copy_from_slice(data));
    let (mut frames, mut texts) = (Vec::new(), Vec::new());
    let mut count = 0;
    while let Some(body) = rest.take() {
        let (message, behind) = (ENDPOINT.split)(body);
        count += 1;
        rest = behind;
        match message {
            Ok(ClientMessage::Binary(bytes)) => {
                assert!(bytes.len() <= data.len());
                frame::append(&mut frames, Opcode::Binary, &bytes);
            }
            Ok(ClientMessage::Text(text)) => {
                frame::append(&mut frames, Opcode::Text, &text);
                texts.push(String::from_utf8_lossy(&text).into_owned());
            }
            Err(error) => return assert!(matches!(error, DecodeError::Packet { .. }), "{error}"),
        }
    }
    assert!(count <= lines);
    assert_eq!(messages(&frames).count(), count);
    let found = responded(frames);
    assert!(found.len() <= count);
    // Bytes that clients would not understand are left out.
    let mut found = found.iter();
    assert!(texts.iter().all(|text| found.any(|one| one == text)));
}

/// Returns the messages in the response to a poll that has fetched these frames.
fn responded(frames: Vec<u8>) -> Vec<String> {
    let polled = Polled::new(vec![frames.into()], PollEnd::Ready);
    let name = PolledName {
        node: "node".to_owned(),
        session: Uuid::nil(),
    };
    let response = (ENDPOINT.respond)(PollingOutcome::Polled(&name, &polled));
    let body: serde_json::Value = serde_json::from_slice(&response.body).expect("it is JSON");
    assert_eq!(body["token"], name.to_string());
    serde_json::from_value(body["messages"].clone()).expect("messages are texts")
}
