//! Faults of a client that h2 overlooks.
//!
//! h2 accepts frames before the client's settings, and checks the window of a stream only until it
//! has answered. The guard therefore inspects a client's bytes before h2 gets them. It stores no
//! frames, and keeps at most about 4 KiB per connection.
//!
//! Other faults are left to h2. It often reports `PROTOCOL_ERROR` where the standard has a more
//! exact error, and it cuts off the fragment of a path instead of refusing the request.
//!
//! | module | contents |
//! | --- | --- |
//! | `frames` | the client's input, frame by frame, and settings that change windows |
//! | `head` | frame headers |
//! | `overflows` | streams whose windows are open too far, which h2 sees only until it answers |
//! | `windows` | how far the windows of streams are open |

mod frames;
#[cfg(fuzzing)]
pub mod fuzzing;
mod head;
mod overflows;
mod windows;

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
};

use frames::{Frames, SettingsMissing};
pub(crate) use overflows::Overflows;

/// The input of a client up to its first fault.
pub(crate) struct Guard<T> {
    io: T,
    frames: Frames,
    /// Taken when the client's settings are missing; nothing is read after that.
    fault: Option<oneshot::Sender<()>>,
    overflows: Overflows,
}

/// What the guard reports about a client.
pub(crate) struct Findings {
    /// Notified if the client's first frame is not its settings, so that the connection must be
    /// closed with `PROTOCOL_ERROR`.
    pub(crate) fault: oneshot::Receiver<()>,
    /// Streams whose windows are open too far.
    pub(crate) overflows: Overflows,
}

impl<T> Guard<T> {
    /// Inspects the input from `io`, which begins with the connection preface.
    pub(crate) fn new(io: T) -> (Self, Findings) {
        let (sender, fault) = oneshot::channel();
        let overflows = Overflows::default();
        let guard = Self {
            io,
            frames: Frames::default(),
            fault: Some(sender),
            overflows: overflows.clone(),
        };
        (guard, Findings { fault, overflows })
    }

    /// Returns how many of these bytes may be passed on.
    fn admit(&mut self, bytes: &[u8]) -> usize {
        let result = self.frames.handle_input(bytes);
        self.frames
            .overflown()
            .for_each(|id| self.overflows.note(id));
        let Err(SettingsMissing { preface_bytes }) = result else {
            return bytes.len();
        };
        if let Some(fault) = self.fault.take() {
            // If the receiver is gone, the connection is about to be dropped.
            _ = fault.send(());
        }
        preface_bytes
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Guard<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.fault.is_none() {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, buffer))?;
        let admitted = this.admit(&buffer.filled()[before..]);
        buffer.set_filled(before + admitted);
        // An empty read would mean the end of the connection. Closing it is left to the receiver of
        // the fault.
        if admitted == 0 && this.fault.is_none() {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Guard<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, bytes))?;
        self.frames.note_written(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, slices))?;
        self.frames.note_written(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn what_is_written_may_be_given_back_by_the_client() {
        let (client, server) = tokio::io::duplex(1 << 20);
        let (mut guard, findings) = Guard::new(server);
        let (mut reader, mut writer) = tokio::io::split(client);
        let largest = b"\0\0\x04\x08\0\0\0\0\x01\x7f\xff\xff\xff";
        let ten = b"\0\0\x04\x08\0\0\0\0\x01\0\0\0\x0a";
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let mut buffer = [0; 100];
        writer
            .write_all(&[&preface[..], largest].concat())
            .await
            .unwrap();
        _ = guard.read(&mut buffer).await.unwrap();
        guard.write_all(b"0123456789").await.unwrap();
        reader.read_exact(&mut [0; 10]).await.unwrap();
        writer.write_all(ten).await.unwrap();
        _ = guard.read(&mut buffer).await.unwrap();
        let mut overflow = findings.overflows.watch(1);
        assert!(overflow.try_recv().is_err());
        writer.write_all(ten).await.unwrap();
        _ = guard.read(&mut buffer).await.unwrap();
        assert!(overflow.try_recv().is_ok());
    }

    #[tokio::test]
    async fn nothing_behind_the_preface_is_passed_on_if_settings_are_missing() {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let input = [&preface[..], b"\0\0\x08\x06\0\0\0\0\0linerate"].concat();
        let (mut guard, mut findings) = Guard::new(&input[..]);
        let mut buffer = [0; 100];
        let read = guard.read(&mut buffer).await.unwrap();
        assert_eq!(buffer[..read], preface[..]);
        assert!(findings.fault.try_recv().is_ok());
        assert!(guard.read(&mut buffer).now_or_never().is_none());
    }
}
