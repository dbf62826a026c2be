//! Any bytes of a client of HTTP/2 before h2 sees them, and what h2 alone makes of them.
#![no_main]

use std::{
    collections::BTreeMap,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use h2::Reason;
use libfuzzer_sys::fuzz_target;
use linerate_h2::fuzzing::{Judged, OVERFLOWS_MAX, WINDOWS_MAX, judge};
use linerate_testkit::Cuts;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;

/// How many malformed requests may wait, and nobody takes them here; for one more, nothing of what was read is passed.
const WAITING_MAX: usize = 128;

// The first byte says in which pieces the bytes come, and whether what every client begins with is put before them.
// However they are cut, the same is wrong with them at the same byte, and all before it is passed, frame by frame.
fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let wire = match choice & 0x80 {
        0 => [PREFACE, data].concat(),
        _ => data.to_vec(),
    };
    let whole = read(&wire, Cuts::Whole);
    let bytewise = read(&wire, Cuts::Every(1));
    let fault_at = bytewise.passed.len();
    for judged in [
        &whole,
        &bytewise,
        &read(&wire, Cuts::Random(u64::from(*choice))),
    ] {
        assert_eq!(judged.reason, whole.reason);
        assert_eq!(judged.malformed, whole.malformed);
        if whole.malformed.len() < WAITING_MAX {
            assert_eq!(judged.overflown, whole.overflown);
        }
        assert!(wire.starts_with(&judged.passed));
        if whole.malformed.len() < WAITING_MAX {
            let passed = whole_frames(&wire, judged.passed.len());
            assert_eq!(passed, whole_frames(&wire, fault_at));
        }
    }
    match whole.reason {
        None => assert_eq!(fault_at, wire.len()),
        Some(reason) => {
            assert!(is_expected(reason), "{reason}");
            let before = read(&wire[..fault_at], Cuts::Whole);
            assert_eq!((before.reason, before.passed.len()), (None, fault_at));
            let with = read(&wire[..=fault_at], Cuts::Whole);
            assert_eq!(with.reason, Some(reason));
        }
    }
    compare(&wire, whole.reason, fault_at);
    compare_windows(&wire[..fault_at], &bytewise.overflown);
});

fn read(wire: &[u8], cuts: Cuts) -> Judged {
    let mut ends = Vec::new();
    let mut end = 0;
    cuts.for_each_piece(wire, |piece| {
        end += piece.len();
        ends.push(end);
    });
    ends.dedup();
    let mut begin = 0;
    judge(ends.into_iter().filter(|end| *end > 0).map(|end| {
        let piece = &wire[begin..end];
        begin = end;
        piece
    }))
}

/// Returns how many of the first bytes are whole frames.
fn whole_frames(wire: &[u8], bytes: usize) -> usize {
    let mut end = 0;
    let mut next = PREFACE_BYTES;
    while next <= bytes {
        end = next;
        let Some([a, b, c]) = wire.get(end..end + 3) else {
            break;
        };
        next = end + HEAD_BYTES + u32::from_be_bytes([0, *a, *b, *c]) as usize;
    }
    end
}

/// The errors that a connection ends with because of its bytes; others are findings.
fn is_expected(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::COMPRESSION_ERROR
            | Reason::FLOW_CONTROL_ERROR
            | Reason::FRAME_SIZE_ERROR
            | Reason::PROTOCOL_ERROR
            | Reason::STREAM_CLOSED
    )
}

/// A field block that can't be decoded is none that h2 would take, at the end of it.
fn compare(wire: &[u8], reason: Option<Reason>, fault_at: usize) {
    match reason {
        None => assert_ne!(ask_h2(wire), Err(Some(Reason::COMPRESSION_ERROR))),
        Some(Reason::COMPRESSION_ERROR) if has_end_of_block(wire, fault_at) => {
            assert!(ask_h2(wire).is_err(), "h2 takes it");
        }
        Some(_) => {}
    }
}

/// Nothing is written here, so that a window has grown too far when all that it was opened by exceeds the largest one and
/// what settings took (RFC 9113 §6.9.1, §6.9.2).
fn compare_windows(wire: &[u8], noted: &[u32]) {
    const SETTINGS: u8 = 0x4;
    const WINDOW_UPDATE: u8 = 0x8;
    const LARGEST: u64 = (1 << 31) - 1;
    let (mut grown, mut overflown) = (BTreeMap::new(), Vec::new());
    let (mut initial, mut taken) = (65_535, 0);
    let mut rest = wire.get(PREFACE_BYTES..).unwrap_or_default();
    while let Some((head, behind)) = rest.split_at_checked(HEAD_BYTES) {
        let bytes = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let payload = &behind[..bytes.min(behind.len())];
        rest = &behind[payload.len()..];
        match (head[3], payload) {
            (SETTINGS, payload) => {
                for setting in payload.chunks_exact(6).filter(|it| it[..2] == [0, 4]) {
                    let value =
                        u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
                    taken += u64::from(u32::saturating_sub(initial, value));
                    initial = value;
                }
            }
            (WINDOW_UPDATE, [a, b, c, d]) if stream != 0 => {
                let sum: &mut u64 = grown.entry(stream).or_default();
                *sum += u64::from(u32::from_be_bytes([a & 0x7f, *b, *c, *d]));
                if *sum > LARGEST + taken && !overflown.contains(&stream) {
                    overflown.push(stream);
                }
            }
            _ => {}
        }
    }
    let is_known = grown.len() <= WINDOWS_MAX && overflown.len() <= OVERFLOWS_MAX;
    match is_known {
        true => assert_eq!(noted, overflown),
        // Of streams that are forgotten not all is known.
        false => assert!(noted.iter().all(|stream| overflown.contains(stream))),
    }
}

/// Says whether a field block ends with the frame in which this byte is, and that has come whole. h2 takes some faults
/// for a lack of more, as long as there may be more.
fn has_end_of_block(wire: &[u8], place: usize) -> bool {
    const END_HEADERS: u8 = 0x4;
    let head = whole_frames(wire, place);
    let flags = wire.get(head + 4).copied().unwrap_or_default();
    flags & END_HEADERS != 0 && whole_frames(wire, wire.len()) > place
}

/// Returns whether h2 alone serves these bytes to their end, or the error that it ends the connection with.
fn ask_h2(wire: &[u8]) -> Result<(), Option<Reason>> {
    let mut context = Context::from_waker(Waker::noop());
    let handshake = h2::server::handshake(Socket(wire));
    let mut connection = match pin!(handshake).poll(&mut context) {
        Poll::Ready(Ok(connection)) => connection,
        Poll::Ready(Err(error)) => return Err(error.reason()),
        Poll::Pending => return Ok(()),
    };
    loop {
        match connection.poll_accept(&mut context) {
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => return Err(error.reason()),
            Poll::Ready(None) | Poll::Pending => return Ok(()),
        }
    }
}

/// A socket on which these bytes have come and nothing more does, and where all can be written.
struct Socket<'a>(&'a [u8]);

impl AsyncRead for Socket<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return Poll::Pending;
        }
        let (piece, rest) = self.0.split_at(self.0.len().min(buffer.remaining()));
        buffer.put_slice(piece);
        self.0 = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
