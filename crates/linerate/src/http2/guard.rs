//! What h2 is not to see: frames that end a connection with another error than h2's.
//!
//! h2 ends a connection with `PROTOCOL_ERROR` where the standard often has a more exact error, and overlooks
//! some faults. So the bytes of a client are looked at before h2 gets them. At a fault they stop coming, and
//! whoever serves the connection is told which error to end it with; the GOAWAY is h2's, as is everything
//! else that is written. DATA is passed over, and what is kept of a connection is some 7 KiB at most.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `ended` | streams on which the client has said that no more comes |
//! | `fields` | field blocks, as far as to know whether they can be decoded |
//! | `frames` | what the client sends, frame by frame |
//! | `head` | the heads of frames, and lengths that frames can't have |
//! | `integer` | integers in field blocks |
//! | `malformed` | requests that are malformed in a way that h2 can't see |
//! | `overflows` | streams whose windows are open too far, which h2 can't see once it has answered |
//! | `settings` | values of settings |
//! | `table` | the table that field blocks refer to |
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
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use h2::Reason;
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::oneshot,
};

use crate::write_through::write_through;

use frames::{Broken, Frames};
pub(super) use malformed::Malformed;
pub(crate) use overflows::Overflows;

/// The bytes of a client up to its first fault.
pub(super) struct Guard<T> {
    io: T,
    frames: Frames,
    /// Taken when something is wrong; nothing is read after that.
    fault: Option<oneshot::Sender<Reason>>,
    malformed: Malformed,
    overflows: Overflows,
}

/// What is found out about a client.
pub(super) struct Findings {
    /// The error that the connection has to end with.
    pub(super) fault: oneshot::Receiver<Reason>,
    /// Requests that h2 takes although they are malformed.
    pub(super) malformed: Malformed,
    /// Streams whose windows are open too far.
    pub(super) overflows: Overflows,
}

impl<T> Guard<T> {
    /// Looks at what comes from `io`, which begins with the preface.
    pub(super) fn new(io: T) -> (Self, Findings) {
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

    /// Returns how many of these bytes may be seen.
    fn admit(&mut self, bytes: &[u8]) -> usize {
        let looked_at = self.frames.handle_input(bytes);
        self.frames
            .overflown()
            .for_each(|id| self.overflows.note(id));
        let has_room = self.frames.malformed().all(|id| self.malformed.note(id));
        let broken = match looked_at {
            // RFC 9113 §5.4: "an endpoint MAY choose to treat a stream error as a connection error". All of them
            // came before what else is wrong.
            _ if !has_room => Broken {
                reason: Reason::PROTOCOL_ERROR,
                good_bytes: 0,
            },
            Err(broken) => broken,
            Ok(()) => return bytes.len(),
        };
        if let Some(fault) = self.fault.take() {
            // Whoever has dropped the receiver is about to drop this, too.
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
        // Nothing would be the end of the connection, which is for whoever has been told to bring about.
        if admitted == 0 && this.fault.is_none() {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

write_through!(Guard, frames.note_written);

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Returns the error that the connection has to end with, when as much is read at once.
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
