//! Writes packets: a packet of Engine.IO is a WebSocket message, and its first character is its
//! type. A packet of Socket.IO follows the type `4`.

use bytes::Bytes;
use linerate_proto::{
    Opcode,
    frame::{self, OpenFrame},
};

use super::namespace::MAIN;

/// The types of Socket.IO's packets that the server sends, as Engine.IO's messages begin with them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Ack,
    Connect,
    ConnectError,
    Disconnect,
    Event,
}

/// A packet of Socket.IO.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub(super) kind: Kind,
    pub(super) namespace: &'a str,
    pub(super) id: Option<u64>,
    /// The payload, as JSON; empty if there is none.
    pub(super) json: &'a [u8],
    pub(super) attachments: &'a [Bytes],
}

impl Packet<'_> {
    /// Appends the frames of the packet.
    pub(super) fn append(&self, out: &mut Vec<u8>) {
        let frame = OpenFrame::start(out);
        out.extend_from_slice(&[b'4', self.digit()]);
        if !self.attachments.is_empty() {
            out.extend_from_slice(format!("{}-", self.attachments.len()).as_bytes());
        }
        if self.namespace != MAIN {
            out.extend_from_slice(self.namespace.as_bytes());
            out.push(b',');
        }
        if let Some(id) = self.id {
            out.extend_from_slice(id.to_string().as_bytes());
        }
        out.extend_from_slice(self.json);
        frame.finish(out, Opcode::Text);
        for attachment in self.attachments {
            frame::append(out, Opcode::Binary, attachment);
        }
    }

    const fn digit(&self) -> u8 {
        match (self.kind, self.attachments.is_empty()) {
            (Kind::Connect, _) => b'0',
            (Kind::Disconnect, _) => b'1',
            (Kind::Event, true) => b'2',
            (Kind::Ack, true) => b'3',
            (Kind::ConnectError, _) => b'4',
            (Kind::Event, false) => b'5',
            (Kind::Ack, false) => b'6',
        }
    }
}

/// Appends a string as JSON.
pub(super) fn append_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("serializing a string to a Vec cannot fail");
}
