//! The catalogue: the rules, each with the inputs that test it.

mod client;
mod closing;
mod compression;
mod control;
mod deadlines;
mod framing;
mod handshake;
mod http2;
mod lengths;
mod stress;
#[cfg(test)]
mod tests;
mod tls;
mod utf8;
mod valid;

pub(crate) use client::ACCEPTED;
pub(crate) use deadlines::claimed_bytes;

use crate::{
    answers::Answer,
    case::{Area, Case, Expect, Opening, Row, Stage, Wait},
    frame::{Frame, Role},
    http2::Request,
};

/// Returns the rows for a server.
pub fn server() -> Vec<Row> {
    let mut rows = frames(Role::Server);
    rows.extend(compression::rows(Wire(Role::Server)));
    rows.extend(handshake::rows());
    rows.sort_by_key(|row| (row.area(), row.id));
    rows
}

/// Returns the rows that can be sent over an HTTP/2 stream: all but the HTTP/1.1 opening handshake.
pub fn carried() -> Vec<Row> {
    let mut rows = server();
    rows.retain(|row| row.area() != Area::Handshake);
    rows
}

/// Returns the rows about HTTP/2 itself, for a server that accepts WebSockets over it.
pub fn http2(request: &Request) -> Vec<Row> {
    http2::rows(request)
}

/// Returns floods and decompression bombs. Send them only to a server that you operate.
pub fn stress() -> Vec<Row> {
    stress::rows(Wire(Role::Server))
}

/// Returns the rows about deadlines: connections that stop halfway. Each input takes as long as the
/// server waits.
pub fn deadlines() -> Vec<Row> {
    let mut rows = deadlines::rows(Wire(Role::Server));
    rows.push(tls::unfinished());
    rows
}

/// Returns the rows about TLS, for a server that is reached over it.
pub fn tls() -> Vec<Row> {
    tls::rows()
}

/// Returns the rows about TLS, for a client that connects over it.
pub fn client_tls() -> Vec<Row> {
    tls::rows_of_client()
}

/// Returns floods over HTTP/2. Send them only to a server that you operate.
pub fn http2_stress(request: &Request) -> Vec<Row> {
    http2::stress(request)
}

/// Returns the rows for a client.
pub fn client() -> Vec<Row> {
    let mut rows = frames(Role::Client);
    rows.extend(client::rows(Wire(Role::Client)));
    rows.extend(compression::rows_of_client(Wire(Role::Client)));
    rows.sort_by_key(|row| (row.area(), row.id));
    rows
}

/// Returns the rows about frames, for an endpoint of this role.
fn frames(role: Role) -> Vec<Row> {
    let wire = Wire(role);
    let mut rows = valid::rows(wire);
    rows.extend(framing::rows(wire));
    rows.extend(lengths::rows(wire));
    rows.extend(control::rows(wire));
    rows.extend(closing::rows(wire));
    rows.extend(utf8::rows(wire));
    rows.sort_by_key(|row| (row.area(), row.id));
    rows
}

/// Encodes frames for an endpoint of this role.
#[derive(Clone, Copy, Debug)]
struct Wire(Role);

impl Wire {
    fn bytes(self, frames: &[Frame]) -> Vec<u8> {
        let mut wire = Vec::new();
        for frame in frames {
            frame.encode(self.0, &mut wire);
        }
        wire
    }

    /// Creates an input whose frames are all sent at once.
    fn case(self, name: impl Into<String>, frames: &[Frame], expect: Expect) -> Case {
        self.staged(name, &[frames], Wait::Answer, expect)
    }

    /// Creates an input whose frames are sent in several stages.
    fn staged(
        self,
        name: impl Into<String>,
        stages: &[&[Frame]],
        wait: Wait,
        expect: Expect,
    ) -> Case {
        let stages = stages.iter().map(|frames| self.bytes(frames));
        in_stages(name, stages, wait, expect)
    }
}

/// Creates an input of several stages on an open WebSocket.
fn in_stages(
    name: impl Into<String>,
    stages: impl IntoIterator<Item = Vec<u8>>,
    wait: Wait,
    expect: Expect,
) -> Case {
    sent(name, Opening::WebSocket, stages, wait, expect)
}

/// Creates an input of several stages on a connection that begins in this way.
fn sent(
    name: impl Into<String>,
    opening: Opening,
    stages: impl IntoIterator<Item = Vec<u8>>,
    wait: Wait,
    expect: Expect,
) -> Case {
    let stages = stages.into_iter().map(|bytes| Stage { bytes, wait });
    Case::new(name, opening, stages.collect(), expect)
}

fn text(payload: impl Into<Vec<u8>>) -> Answer {
    Answer::new(0x1, payload)
}

fn binary(payload: impl Into<Vec<u8>>) -> Answer {
    Answer::new(0x2, payload)
}

fn pong(payload: impl Into<Vec<u8>>) -> Answer {
    Answer::new(0xA, payload)
}

/// Expects the connection to be failed with one of these codes.
fn fails(codes: &'static [u16]) -> Expect {
    fails_after(codes, Vec::new())
}

/// Expects the connection to be failed after answers to the valid part of the input.
fn fails_after(codes: &'static [u16], before: Vec<Answer>) -> Expect {
    fails_within(codes, before, usize::MAX, false)
}

/// Expects the connection to be failed after the first stage.
fn fails_at_once(codes: &'static [u16]) -> Expect {
    fails_within(codes, Vec::new(), 1, false)
}

/// Expects the connection to be failed after a frame header. Waiting for the payload is permitted.
fn fails_by_header(codes: &'static [u16]) -> Expect {
    fails_within(codes, Vec::new(), 1, true)
}

fn fails_within(
    codes: &'static [u16],
    before: Vec<Answer>,
    stages: usize,
    may_wait: bool,
) -> Expect {
    Expect::Fail {
        codes,
        before,
        stages,
        may_wait,
    }
}

/// Returns the name of an opcode.
fn opcode_name(opcode: u8) -> String {
    match opcode {
        0x0 => "continuation".into(),
        0x1 => "text".into(),
        0x2 => "binary".into(),
        0x8 => "close".into(),
        0x9 => "ping".into(),
        0xA => "pong".into(),
        reserved => format!("opcode-{reserved:x}"),
    }
}
