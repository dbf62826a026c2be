//! Any bytes as the body of a request of a client that polls, and as frames of its output.

use bytes::Bytes;
use linerate_proto::{Opcode, frame};
use uuid::Uuid;

use crate::protocol::{
    decode::DecodeError,
    polling::{ClientMessage, PollEnd, Polled, PolledName, PollingOutcome, messages},
    socketio::polling::ENDPOINT,
};

/// What separates packets.
const SEPARATOR: u8 = 0x1e;

/// Reads `data` as a body. If all of it is well-formed, a response with the same messages has the
/// same body.
pub(super) fn body(data: &[u8]) {
    assert!(messages(data).count() <= data.len());
    let packets = data.split(|&byte| byte == SEPARATOR).count();
    let mut rest = Some(Bytes::copy_from_slice(data));
    let mut frames = Vec::new();
    let mut count = 0;
    while let Some(body) = rest.take() {
        let (message, behind) = (ENDPOINT.split)(body);
        count += 1;
        rest = behind;
        match message {
            Ok(ClientMessage::Binary(bytes)) => frame::append(&mut frames, Opcode::Binary, &bytes),
            Ok(ClientMessage::Text(text)) => frame::append(&mut frames, Opcode::Text, &text),
            Err(error) => return assert!(matches!(error, DecodeError::Packet { .. }), "{error}"),
        }
    }
    assert_eq!(count, packets);
    assert_eq!(messages(&frames).count(), packets);
    let polled = Polled::new(vec![frames.into()], PollEnd::Ready);
    let name = PolledName {
        node: "node".to_owned(),
        session: Uuid::nil(),
    };
    let response = (ENDPOINT.respond)(PollingOutcome::Polled(&name, &polled));
    assert_eq!(response.body, data);
}
