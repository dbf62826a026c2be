//! Client input that must not reach h2: frames for which h2 would close the connection with the
//! wrong error, or would not close it at all.
//!
//! h2 closes a connection with `PROTOCOL_ERROR` where the standard often has a more exact error,
//! and overlooks some faults. The guard therefore inspects a client's bytes before h2 gets them. At
//! a fault, it passes on no more input and reports the error with which the connection must be
//! closed. h2 sends the GOAWAY and everything else. The payloads of DATA frames are not inspected,
//! and the guard keeps at most about 7 KiB per connection.
//!
//! | module | contents |
//! | --- | --- |
//! | `ended` | streams on which the client sends no more |
//! | `fields` | checks whether field blocks can be decoded |
//! | `frames` | the client's input, frame by frame |
//! | `head` | frame headers, and payload lengths that are not allowed |
//! | `integer` | integers in field blocks |
//! | `malformed` | requests that are malformed in a way that h2 cannot see |
//! | `overflows` | streams whose windows are open too far, which h2 sees only until it answers |
//! | `settings` | values of settings |
//! | `table` | the dynamic table that field blocks refer to |
//! | `windows` | how far the windows of streams are open |

mod ended;
mod fields;
mod frames;
#[cfg(fuzzing)]
pub mod fuzzing;
mod head;
mod integer;
mod malformed;
mod overflows;
mod settings;
mod table;
mod windows;

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use h2::Reason;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
};

use frames::{Broken, Frames};
pub(crate) use malformed::Malformed;
pub(crate) use overflows::Overflows;

/// The input of a client up to its first fault.
pub(crate) struct Guard<T> {
    io: T,
    frames: Frames,
    /// Taken when a fault is found; nothing is read after that.
    fault: Option<oneshot::Sender<Reason>>,
    malformed: Malformed,
    overflows: Overflows,
}

/// What the guard reports about a client.
pub(crate) struct Findings {
    /// The error with which the connection must be closed.
    pub(crate) fault: oneshot::Receiver<Reason>,
    /// Requests that h2 accepts although they are malformed.
    pub(crate) malformed: Malformed,
    /// Streams whose windows are open too far.
    pub(crate) overflows: Overflows,
}

impl<T> Guard<T> {
    /// Inspects the input from `io`, which begins with the connection preface.
    pub(crate) fn new(io: T) -> (Self, Findings) {
        let (sender, fault) = oneshot::channel();
        let malformed = Malformed::default();
        let overflows = Overflows::default();
        let guard = Self {
            io,
            frames: Frames::default(),
            fault: Some(sender),
            malformed: malformed.clone(),
            overflows: overflows.clone(),
        };
        let findings = Findings {
            fault,
            malformed,
            overflows,
        };
        (guard, findings)
    }

    /// Returns how many of these bytes may be passed on.
    fn admit(&mut self, bytes: &[u8]) -> usize {
        let looked_at = self.frames.handle_input(bytes);
        self.frames
            .overflown()
            .for_each(|id| self.overflows.note(id));
        let has_room = self.frames.malformed().all(|id| self.malformed.note(id));
        let broken = match looked_at {
            // RFC 9113 §5.4: "an endpoint MAY choose to treat a stream error as a connection
            // error". All of them came before any other fault in the input.
            _ if !has_room => Broken {
                reason: Reason::PROTOCOL_ERROR,
                good_bytes: 0,
            },
            Err(broken) => broken,
            Ok(()) => return bytes.len(),
        };
        if let Some(fault) = self.fault.take() {
            // If the receiver is gone, the connection is about to be dropped.
            _ = fault.send(broken.reason);
        }
        broken.good_bytes
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

    /// Returns the error with which the connection must be closed when reads return at most
    /// `read_bytes_max` bytes.
    async fn fault(input: &[u8], read_bytes_max: usize) -> Option<Reason> {
        let (mut guard, mut findings) = Guard::new(input);
        let mut buffer = vec![0; read_bytes_max];
        while findings.fault.is_empty() {
            let read = guard.read(&mut buffer).now_or_never();
            if read.is_none_or(|read| read.unwrap() == 0) {
                break;
            }
        }
        findings.fault.try_recv().ok()
    }

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
    async fn too_many_malformed_requests_end_a_connection_before_what_comes_behind_them() {
        let mut input = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        for stream in (1_u32..).step_by(2).take(129) {
            input.extend(b"\0\0\x04\x01\x05");
            input.extend(stream.to_be_bytes());
            input.extend(b"\x04\x02/#");
        }
        input.extend(b"\0\0\x07\x06\0\0\0\0\0");
        for read_bytes_max in [1, 100, input.len()] {
            let reason = fault(&input, read_bytes_max).await;
            assert_eq!(reason, Some(Reason::PROTOCOL_ERROR));
        }
    }
}
