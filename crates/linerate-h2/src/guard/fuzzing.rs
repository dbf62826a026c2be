//! Entry points for fuzzing the guard between an HTTP/2 client and h2; compiled only for fuzzing.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use tokio::io::{AsyncRead, ReadBuf};

use super::{Findings, Guard, overflows, windows};

/// How many streams whose windows are open too far are kept until they are read.
pub const OVERFLOWS_MAX: usize = overflows::WAITING_MAX;

/// How many streams are remembered with the growth of their windows.
pub const WINDOWS_MAX: usize = windows::STREAMS_MAX;

/// The verdict on a client's input.
#[derive(Debug, Eq, PartialEq)]
pub struct Verdict {
    /// The input that is passed on to h2.
    pub passed: Vec<u8>,
    /// True if the client's first frame is not its settings.
    pub are_settings_missing: bool,
    /// The streams whose windows are open too far: at most the newest [`OVERFLOWS_MAX`] among the
    /// newest [`WINDOWS_MAX`] whose windows have grown.
    pub overflown: Vec<u32>,
}

/// Reads these pieces of input through the guard. No piece may be empty.
pub fn judge<'a>(pieces: impl IntoIterator<Item = &'a [u8], IntoIter: Unpin>) -> Verdict {
    let pieces = Pieces(pieces.into_iter());
    let (mut guard, findings) = Guard::new(pieces);
    let Findings {
        mut fault,
        overflows,
    } = findings;
    let mut context = Context::from_waker(Waker::noop());
    let mut passed = Vec::new();
    let mut buffer = [0; 1 << 14];
    loop {
        let mut read = ReadBuf::new(&mut buffer);
        match Pin::new(&mut guard).poll_read(&mut context, &mut read) {
            Poll::Pending => break,
            Poll::Ready(result) => result.expect("reading from memory cannot fail"),
        }
        if read.filled().is_empty() {
            break;
        }
        passed.extend_from_slice(read.filled());
    }
    Verdict {
        passed,
        are_settings_missing: fault.try_recv().is_ok(),
        overflown: overflows.waiting(),
    }
}

/// A socket that receives these pieces and is then closed.
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
