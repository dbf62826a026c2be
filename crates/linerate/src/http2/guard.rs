//! What h2 is not to see: frames that end a connection with another error than h2's.
//!
//! h2 ends a connection with `PROTOCOL_ERROR` where the standard often has a more exact error, and overlooks
//! some faults. So the bytes of a client are looked at before h2 gets them. At a fault they stop coming, and
//! whoever serves the connection is told which error to end it with; the GOAWAY is h2's, as is everything
//! else that is written. DATA is passed over, and what is kept of a connection is some 3 KiB at most.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `ended` | streams on which the client has said that no more comes |
//! | `fields` | field blocks, as far as to know whether they can be decoded |
//! | `frames` | what the client sends, frame by frame |
//! | `head` | the heads of frames, and lengths that frames can't have |
//! | `integer` | integers in field blocks |
//! | `malformed` | requests that are malformed in a way that h2 can't see |
//! | `settings` | values of settings |
//! | `table` | the table that field blocks refer to |

mod ended;
mod fields;
mod frames;
mod head;
mod integer;
mod malformed;
mod settings;
mod table;

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

/// The bytes of a client up to its first fault.
pub(super) struct Guard<T> {
    io: T,
    frames: Frames,
    /// Taken when something is wrong; nothing is read after that.
    fault: Option<oneshot::Sender<Reason>>,
    malformed: Malformed,
}

/// What is found out about a client.
pub(super) struct Findings {
    /// The error that the connection has to end with.
    pub(super) fault: oneshot::Receiver<Reason>,
    /// Requests that h2 takes although they are malformed.
    pub(super) malformed: Malformed,
}

impl<T> Guard<T> {
    /// Looks at what comes from `io`, which begins with the preface.
    pub(super) fn new(io: T) -> (Self, Findings) {
        let (sender, fault) = oneshot::channel();
        let malformed = Malformed::default();
        let guard = Self {
            io,
            frames: Frames::default(),
            fault: Some(sender),
            malformed: malformed.clone(),
        };
        (guard, Findings { fault, malformed })
    }

    /// Returns how many of these bytes may be seen.
    fn admit(&mut self, bytes: &[u8]) -> usize {
        let looked_at = self.frames.handle_input(bytes);
        let has_room = self.frames.malformed().all(|id| self.malformed.note(id));
        let broken = match looked_at {
            Err(broken) => broken,
            Ok(()) if has_room => return bytes.len(),
            // RFC 9113 §5.4: "an endpoint MAY choose to treat a stream error as a connection error".
            Ok(()) => Broken {
                reason: Reason::PROTOCOL_ERROR,
                good_bytes: 0,
            },
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

write_through!(Guard);
