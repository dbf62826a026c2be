//! One stream as a byte stream: writes DATA frames and reads them back as bytes.

use std::{
    io::{self, IoSlice},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use linerate_http::Place;
use quinn::{ReadError, RecvStream, SendStream, WriteError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use crate::{
    fault::{Code, Fault},
    frame::{DATA, Head, HeadReader, truncated, unexpected},
};

/// Maximum payload of a DATA frame in bytes, so that streams take turns.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// Maximum number of steps in one read, so that a peer cannot keep it busy with empty frames.
const STEPS_MAX: usize = 128;

/// An HTTP/3 stream whose DATA frames carry the bytes of a WebSocket.
///
/// RFC 9220 §3 maps the ends: a FIN is the end of the byte stream, and a reset is like a TCP reset.
#[derive(Debug)]
pub struct Stream {
    connection: quinn::Connection,
    send: SendStream,
    recv: RecvStream,
    head: HeadReader,
    frame: Option<Frame>,
    /// The rest of a frame that is partly written. Nothing else may be written before it.
    pending: Bytes,
    fault: Option<Fault>,
    /// True if the peer has ended its side of the stream.
    is_ended: bool,
    is_finished: bool,
    /// True if the peer has reset the stream.
    is_given_up: bool,
    owner: Owner,
}

/// The owner of a stream, which must learn when it ends.
#[derive(Debug)]
pub(crate) enum Owner {
    /// The connection of a client has only this stream.
    Client {
        _dropped: oneshot::Sender<()>,
    },
    Server(Place),
}

/// A frame whose payload has not arrived completely.
#[derive(Clone, Copy, Debug)]
struct Frame {
    left: u64,
    is_data: bool,
}

impl Stream {
    /// Creates the byte stream from both halves, after the header fields have been read and
    /// written.
    pub(crate) fn new(
        connection: quinn::Connection,
        (send, recv): (SendStream, RecvStream),
        owner: Owner,
    ) -> Self {
        Self {
            connection,
            send,
            recv,
            head: HeadReader::default(),
            frame: None,
            pending: Bytes::new(),
            fault: None,
            is_ended: false,
            is_finished: false,
            is_given_up: false,
            owner,
        }
    }

    /// Returns the connection of the stream.
    pub const fn connection(&self) -> &quinn::Connection {
        &self.connection
    }

    /// Reads the next piece of a frame or of its header; returns `false` at the end of the stream.
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        if let Some(fault) = self.fault {
            return Poll::Ready(Err(fault.into()));
        }
        let Some(frame) = &mut self.frame else {
            return self.poll_head(cx);
        };
        let mut skipped = [0; 1 << 10];
        let place = match frame.is_data {
            true => buffer.initialize_unfilled(),
            false => &mut skipped,
        };
        let bytes = usize::try_from(frame.left).map_or(place.len(), |left| left.min(place.len()));
        let bytes = match ready!(self.recv.poll_read(cx, &mut place[..bytes])) {
            Ok(0) => return Poll::Ready(Err(self.fail(truncated()))),
            Ok(bytes) => bytes,
            Err(error) => return Poll::Ready(Err(self.lost(error))),
        };
        if frame.is_data {
            buffer.advance(bytes);
        }
        frame.left -= bytes as u64;
        if frame.left == 0 {
            self.frame = None;
        }
        Poll::Ready(Ok(true))
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let bytes = match ready!(self.recv.poll_read(cx, self.head.wanted())) {
            Ok(0) if self.head.is_empty() => {
                self.is_ended = true;
                return Poll::Ready(Ok(false));
            }
            Ok(0) => return Poll::Ready(Err(self.fail(truncated()))),
            Ok(bytes) => bytes,
            Err(error) => return Poll::Ready(Err(self.lost(error))),
        };
        if let Some(head) = self.head.advance(bytes)
            && let Err(fault) = self.begin(head)
        {
            return Poll::Ready(Err(self.fail(fault)));
        }
        Poll::Ready(Ok(true))
    }

    /// Starts reading a frame.
    ///
    /// RFC 9114 §4.4: "only DATA frames are permitted to be sent on the stream", except for frames
    /// of unknown types.
    fn begin(&mut self, head: Head) -> Result<(), Fault> {
        let is_data = head.kind == DATA;
        if !is_data && !head.is_unknown()? {
            return Err(unexpected());
        }
        self.frame = (head.payload_bytes > 0).then_some(Frame {
            left: head.payload_bytes,
            is_data,
        });
        Ok(())
    }

    fn fail(&mut self, fault: Fault) -> io::Error {
        fault.close(&self.connection);
        self.fault = Some(fault);
        fault.into()
    }

    fn lost(&mut self, error: ReadError) -> io::Error {
        self.is_given_up |= matches!(error, ReadError::Reset(_));
        error.into()
    }

    /// Writes the rest of the current frame, as far as the peer's window allows.
    fn poll_write_pending(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.pending.has_remaining() {
            // `write_chunks` removes what it has written from the chunk.
            let mut chunk = [self.pending.clone()];
            let written = ready!(pin!(self.send.write_chunks(&mut chunk)).poll(cx));
            if let Err(error) = written {
                self.is_given_up |= matches!(error, WriteError::Stopped(_));
                return Poll::Ready(Err(error.into()));
            }
            [self.pending] = chunk;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        for _ in 0..STEPS_MAX {
            if buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            match self.poll_piece(cx, buffer) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                // The next read reports the error again.
                _ if buffer.filled().len() > filled => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if buffer.filled().len() > filled {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = slices.iter().map(|slice| slice.len()).sum::<usize>();
        if bytes == 0 {
            return Poll::Ready(Ok(0));
        }
        ready!(self.poll_write_pending(cx))?;
        let bytes = bytes.min(WRITE_BYTES_MAX);
        let mut frame = Vec::with_capacity(bytes + 16);
        let head = Head {
            kind: DATA,
            payload_bytes: bytes as u64,
        };
        head.encode(&mut frame);
        let end = frame.len() + bytes;
        for slice in slices {
            let part = slice.len().min(end - frame.len());
            frame.extend_from_slice(&slice[..part]);
        }
        self.pending = frame.into();
        match self.poll_write_pending(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(bytes)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_pending(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_pending(cx))?;
        if !self.is_finished {
            self.send.finish()?;
            self.is_finished = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // These fail if the stream has already ended.
        if self.is_ended && self.pending.is_empty() {
            // Both sides have ended their output.
            _ = self.send.finish();
        } else if !self.is_finished {
            _ = self.send.reset(Code::REQUEST_CANCELLED.into());
        }
        _ = self.recv.stop(Code::REQUEST_CANCELLED.into());
        if let Owner::Server(place) = &mut self.owner
            && self.is_given_up
        {
            place.note_reset();
        }
    }
}
