//! The bytes of a client of HTTP/2 on their way to h2, for fuzzers; compiled only for them.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use tokio::io::{AsyncRead, ReadBuf};

use super::{Findings, Guard, overflows, windows};

/// Streams whose windows are open too far, kept until they are read.
pub const OVERFLOWS_MAX: usize = overflows::WAITING_MAX;

/// Streams of which it is known how far their windows have grown.
pub const WINDOWS_MAX: usize = windows::STREAMS_MAX;

/// What is made of the bytes of a client.
#[derive(Debug, Eq, PartialEq)]
pub struct Judged {
    /// What h2 gets to see.
    pub passed: Vec<u8>,
    /// The error that the connection has to end with.
    pub reason: Option<h2::Reason>,
    /// The streams of requests that are noted as malformed.
    pub malformed: Vec<u32>,
    /// The newest [`OVERFLOWS_MAX`] streams whose windows are open too far, of the newest [`WINDOWS_MAX`] that have grown.
    pub overflown: Vec<u32>,
}

/// Reads, through the guard, what arrives in these pieces, none of which is empty.
pub fn judge<'a>(pieces: impl IntoIterator<Item = &'a [u8], IntoIter: Unpin>) -> Judged {
    let pieces = Pieces(pieces.into_iter());
    let (mut guard, findings) = Guard::new(pieces);
    let Findings {
        mut fault,
        malformed,
        overflows,
    } = findings;
    let mut context = Context::from_waker(Waker::noop());
    let mut passed = Vec::new();
    let mut buffer = [0; 1 << 14];
    loop {
        let mut read = ReadBuf::new(&mut buffer);
        match Pin::new(&mut guard).poll_read(&mut context, &mut read) {
            Poll::Pending => break,
            Poll::Ready(result) => result.expect("reading fails at nothing"),
        }
        if read.filled().is_empty() {
            break;
        }
        passed.extend_from_slice(read.filled());
    }
    Judged {
        passed,
        reason: fault.try_recv().ok(),
        malformed: malformed.waiting(),
        overflown: overflows.waiting(),
    }
}

/// A socket on which these pieces arrive, and then the end.
struct Pieces<I>(I);

impl<'a, I: Iterator<Item = &'a [u8]> + Unpin> AsyncRead for Pieces<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(piece) = self.0.next() {
            buffer.put_slice(piece);
        }
        Poll::Ready(Ok(()))
    }
}
