//! One stream as a byte stream: writes DATA frames and reads them back as bytes.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use h2::{RecvStream, SendStream};
use linerate_http::Place;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum size of a write in bytes, so that streams take turns.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// An HTTP/2 stream whose DATA frames carry the bytes of a WebSocket.
///
/// RFC 8441 §5 maps the ends: END_STREAM is the end of the byte stream, and RST_STREAM is like a
/// TCP reset.
#[derive(Debug)]
pub struct Stream {
    send: SendStream<Bytes>,
    recv: RecvStream,
    /// Bytes that have arrived and were not read yet. The peer's window has not been extended by
    /// them.
    held: BytesMut,
    place: Option<Place>,
}

impl Stream {
    /// Creates the byte stream from both halves. `place` is released with the stream.
    pub(crate) fn new(send: SendStream<Bytes>, recv: RecvStream, place: Option<Place>) -> Self {
        Self {
            send,
            recv,
            held: BytesMut::new(),
            place,
        }
    }

    /// Collects bytes that arrive while the application does not read, so that many small frames
    /// use no more memory than their bytes. The peer's window limits those.
    pub fn hold(&mut self, cx: &mut Context<'_>) {
        // The next read reports the error.
        while let Poll::Ready(Some(Ok(data))) = self.recv.poll_data(cx) {
            self.held.extend_from_slice(&data);
        }
    }

    /// Returns the memory of unread bytes that have arrived.
    pub fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Copies held bytes to `buffer`, and allows the peer to send as many more.
    fn take_held(&mut self, buffer: &mut ReadBuf<'_>) {
        let bytes = self.held.len().min(buffer.remaining());
        buffer.put_slice(&self.held[..bytes]);
        self.held.advance(bytes);
        if self.held.is_empty() {
            self.held = BytesMut::new();
        }
        self.release(bytes);
    }

    fn release(&mut self, bytes: usize) {
        // This fails if the stream has ended; its window no longer matters then.
        _ = self.recv.flow_control().release_capacity(bytes);
    }

    fn poll_room(&mut self, cx: &mut Context<'_>, bytes: usize) -> Poll<io::Result<usize>> {
        let wanted = bytes.min(WRITE_BYTES_MAX);
        self.send.reserve_capacity(wanted);
        loop {
            let room = self.send.capacity();
            if room > 0 {
                return Poll::Ready(Ok(room.min(wanted)));
            }
            match ready!(self.send.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(into_io(error))),
                None => return Poll::Ready(Err(self.lost(cx))),
            }
        }
    }

    /// Returns the reason why nothing can be sent any more.
    fn lost(&mut self, cx: &mut Context<'_>) -> io::Error {
        match self.send.poll_reset(cx) {
            Poll::Ready(Ok(reason)) => into_io(reason.into()),
            Poll::Ready(Err(error)) => into_io(error),
            Poll::Pending => io::ErrorKind::BrokenPipe.into(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let filled = buffer.filled().len();
        this.take_held(buffer);
        while buffer.remaining() > 0 {
            match this.recv.poll_data(cx) {
                Poll::Ready(Some(Ok(data))) => {
                    let bytes = data.len().min(buffer.remaining());
                    buffer.put_slice(&data[..bytes]);
                    this.release(bytes);
                    this.held.extend_from_slice(&data[bytes..]);
                }
                Poll::Pending if buffer.filled().len() == filled => return Poll::Pending,
                Poll::Ready(Some(Err(error))) if buffer.filled().len() == filled => {
                    return Poll::Ready(Err(into_io(error)));
                }
                // The next read reports the end or the error again.
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
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
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        if bytes == 0 {
            return Poll::Ready(Ok(0));
        }
        let room = ready!(self.poll_room(cx, bytes))?;
        let mut data = BytesMut::with_capacity(room);
        for slice in slices {
            let part = slice.len().min(room - data.len());
            data.extend_from_slice(&slice[..part]);
        }
        let sent = self.send.send_data(data.freeze(), false);
        Poll::Ready(sent.map(|()| room).map_err(into_io))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: the task of the connection writes all output of its streams.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.send.send_data(Bytes::new(), true).map_err(into_io))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        if let Some(place) = &mut self.place
            && let Poll::Ready(Ok(_)) = self.send.poll_reset(&mut cx)
        {
            place.note_reset();
        }
    }
}

/// Converts an HTTP/2 error to the error of a byte stream.
pub(crate) fn into_io(error: h2::Error) -> io::Error {
    match error.reason() {
        Some(_) => io::Error::new(io::ErrorKind::ConnectionReset, error),
        None if error.is_io() => error
            .into_io()
            .unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()),
        None => io::Error::new(io::ErrorKind::BrokenPipe, error),
    }
}
