//! Packets of the emitter and the adapters.

use linerate_hub::Publication;
use serde_json::Value;

use super::packet::{self, Recipients, Wish};

/// The maximum number of rooms of a packet.
const ROOMS_MAX: usize = 8;

/// Reads `data` as what is published in a channel, as a request, and as an entry of a stream; its
/// first byte says which.
pub(crate) fn packet(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    let wish = match kind {
        b'e' => packet::broadcast(data, "/", ROOMS_MAX),
        b'r' => packet::request(data, ROOMS_MAX),
        kind => packet::entry(&[*kind], data, ROOMS_MAX),
    };
    match wish {
        Ok(wish) => check(wish),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A wish names at most `ROOMS_MAX` rooms, and the payload of an event is JSON on a single line.
fn check(wish: Wish) {
    let recipients = |Recipients { rooms, except }| {
        assert!(rooms.len() <= ROOMS_MAX && except.len() <= ROOMS_MAX);
    };
    match wish {
        Wish::Disconnect { whom, .. } => recipients(whom),
        Wish::Emit { to, event } => {
            recipients(to);
            let payload: Value = serde_json::from_slice(&event.payload).expect("it is JSON");
            let publication = Publication::build(event.payload.into()).finish();
            assert!(publication.line().is_some(), "{payload}");
        }
        Wish::Join { whom, rooms } | Wish::Leave { whom, rooms } => {
            recipients(whom);
            assert!(rooms.len() <= ROOMS_MAX);
        }
        Wish::Other => {}
    }
}
