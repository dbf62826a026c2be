//! HTTP/2 and the WebSockets on its streams (RFC 9113, RFC 8441).

mod ends;
mod fields;
mod frames;
mod requests;
mod streams;
mod stress;
mod valid;

use super::{sent, text};
use crate::{
    answers::Answer,
    case::{Case, Expect, Opening, Row, Wait},
    frame::{Frame, Role},
    http2::{
        Fate, Fields, Request,
        frame::{CANCEL, DATA, END_HEADERS, HEADERS, RST_STREAM, frame},
        hpack::block,
    },
};

/// Returns the rows. Their requests are built from `request`.
pub(super) fn rows(request: &Request) -> Vec<Row> {
    let maker = Maker(request);
    let mut rows = valid::rows(maker);
    rows.extend(streams::rows(maker));
    rows.extend(frames::rows(maker));
    rows.extend(requests::rows(maker));
    rows.extend(fields::rows(maker));
    rows.extend(ends::rows(maker));
    rows.sort_by_key(|row| row.id);
    rows
}

/// Returns the floods.
pub(super) fn stress(request: &Request) -> Vec<Row> {
    stress::rows(Maker(request))
}

/// Builds frames and inputs.
#[derive(Clone, Copy, Debug)]
struct Maker<'a>(&'a Request);

impl Maker<'_> {
    /// Returns the fields that open a WebSocket, with one of them replaced or added.
    fn with(self, name: &str, value: impl AsRef<[u8]>) -> Fields {
        let mut fields = self.0.connect();
        let known = fields
            .iter()
            .position(|(known, _)| known == name.as_bytes());
        let value = value.as_ref().to_vec();
        match known {
            Some(place) => fields[place].1 = value,
            None => fields.push((name.into(), value)),
        }
        fields
    }

    /// Returns the fields without one of them.
    fn without(self, name: &str) -> Fields {
        let mut fields = self.0.connect();
        fields.retain(|(known, _)| known != name.as_bytes());
        fields
    }

    /// Returns the frame that opens a WebSocket.
    fn open(self, stream: u32) -> Vec<u8> {
        headers(stream, &self.0.connect())
    }

    /// Creates an input that sends `parts` one by one, and waits for an answer after each.
    fn case(self, name: impl Into<String>, parts: Vec<Vec<u8>>, expect: Expect) -> Case {
        let opening = Opening::Http2 { window: None };
        sent(name, opening, parts, Wait::Answer, expect)
    }

    /// Creates an input after which another stream has to be served, if the connection stays open.
    /// `fates` are those of streams 1, 3, and so on.
    fn beside(self, name: impl Into<String>, mut parts: Vec<Vec<u8>>, fates: Vec<Fate>) -> Case {
        let mut fates: Vec<(u32, Fate)> = (1..).step_by(2).zip(fates).collect();
        let next = fates.last().map_or(1, |(id, _)| id + 2);
        parts.extend([self.open(next), spam(next)]);
        fates.push((next, spams()));
        self.case(name, parts, Expect::Streams(fates))
    }

    /// Creates an input from a malformed request.
    fn malformed(self, name: impl Into<String>, fields: &Fields) -> Case {
        self.beside(name, vec![headers(1, fields)], vec![Fate::Malformed])
    }

    /// Creates an input that opens a WebSocket on stream 1 and sends bytes after which the
    /// connection has to end.
    fn fatal(self, name: impl Into<String>, bytes: Vec<u8>, codes: &'static [u32]) -> Case {
        let parts = vec![self.open(1), bytes];
        self.case(name, parts, Expect::ConnectionError(codes))
    }
}

/// Returns a HEADERS frame with these fields.
fn headers(stream: u32, fields: &Fields) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, block(fields))
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, CANCEL.to_be_bytes())
}

/// Returns the bytes of masked WebSocket frames.
fn masked(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames
        .iter()
        .for_each(|frame| frame.encode(Role::Server, &mut bytes));
    bytes
}

/// Returns a DATA frame with a WebSocket message.
fn spam(stream: u32) -> Vec<u8> {
    frame(DATA, 0, stream, masked(&[Frame::new(0x1, "Spam")]))
}

fn spams() -> Fate {
    Fate::Answers(vec![text("Spam")])
}

fn answers(answers: Vec<Answer>) -> Expect {
    Expect::Streams(vec![(1, Fate::Answers(answers))])
}
