//! Compressed messages (RFC 7692).
//!
//! Tests whose names begin with X and a number are rows of the project's table of bad inputs.

mod agreeing;
mod headers;
mod inflating;
mod limits;
mod portable;
mod prepared;
mod round_trip;

use core::time::Duration;
use std::sync::Arc;

use flate2::{Compress, Compression, FlushCompress};
use linerate_proto::{
    Config, Engine, ProtocolError, Role,
    deflate::{Agreement, Context, Deflate, ThreadPool},
};
use linerate_testkit::{Cuts, Frame, Record, Seen, TestEndpoint, assert_cuts_do_not_matter, feed};

pub(crate) const FULL: Context = Context {
    window_bits: 15,
    takeover: true,
};

/// Returns an engine that compresses in both directions with the parameters of `context`.
pub(crate) fn engine_of(
    role: Role,
    config: &Arc<Config>,
    context: Context,
    options: &Deflate,
) -> Engine<TestEndpoint> {
    let agreement = Agreement {
        sending: context,
        receiving: context,
    };
    Engine::new(TestEndpoint(role), Arc::clone(config), Duration::ZERO).with_deflate(
        agreement,
        options,
        &ThreadPool,
    )
}

/// Returns an engine with default settings and the largest window.
pub(crate) fn engine(role: Role) -> Engine<TestEndpoint> {
    engine_of(role, &Arc::default(), FULL, &Deflate::default())
}

/// Returns a frame that begins a compressed message.
pub(crate) fn compressed(opcode: u8, payload: &[u8]) -> Frame {
    Frame::new(opcode, payload).with_rsv(4)
}

/// Feeds frames to a server, split at every position.
pub(crate) fn read(frames: &[Frame]) -> Record {
    assert_cuts_do_not_matter(|| (engine(Role::Server), Record::default()), &wire(frames))
}

/// Returns the bytes of frames for a server.
pub(crate) fn wire(frames: &[Frame]) -> Vec<u8> {
    let frames = frames.iter().cloned();
    frames
        .flat_map(|frame| frame.to_role(Role::Server).to_bytes())
        .collect()
}

/// Feeds frames to a server, split at every position, and asserts that they cause only an error.
#[track_caller]
pub(crate) fn assert_fails(
    frames: &[Frame],
    is_expected: impl Fn(&ProtocolError) -> bool,
    code: u16,
) {
    let record = read(frames);
    match &record.seen[..] {
        [Seen::Error(error)] => {
            assert!(is_expected(error), "{error}");
            assert_eq!(error.close_code().as_u16(), code);
        }
        seen => panic!("no error: {seen:?}"),
    }
    assert!(record.output.ends_with(&code.to_be_bytes()));
}

/// Compresses with another implementation, without the four bytes that are removed from the end.
pub(crate) fn deflated(payload: &[u8]) -> Vec<u8> {
    let mut wire = flushed(&mut Compress::new(Compression::best(), false), payload);
    wire.truncate(wire.len() - 4);
    wire
}

/// Compresses with another implementation up to a sync flush.
pub(crate) fn flushed(compress: &mut Compress, payload: &[u8]) -> Vec<u8> {
    let start = compress.total_in();
    let mut wire = Vec::with_capacity(payload.len() / 500 + 64);
    loop {
        let rest = &payload[(compress.total_in() - start) as usize..];
        let status = compress.compress_vec(rest, &mut wire, FlushCompress::Sync);
        status.expect("flate2 compresses");
        if wire.len() < wire.capacity() {
            return wire;
        }
        wire.reserve(wire.len());
    }
}

/// Feeds `wire` whole to a server with default settings.
pub(crate) fn feed_whole(wire: &[u8]) -> Record {
    feed(&mut engine(Role::Server), wire, Cuts::Whole)
}
