//! How a connection ended (RFC 6455 §7.1.4–§7.1.6).

use std::fmt;

use linerate_proto::{
    CloseCode,
    engine::{self, Initiator},
};

use crate::retry::Retry;

/// How a connection ended: with which Close frames, and which side sent the first one.
///
/// It is known as soon as [`recv`](crate::WebSocket::recv) has returned `None` or an error, and
/// after [`close`](crate::WebSocket::close).
///
/// ```
/// use linerate::{CloseCode, Initiator};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> linerate::Result<()> {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let url = format!("ws://{}/", listener.local_addr()?);
/// # tokio::spawn(linerate::serve(listener, |mut ws, _request| async move {
/// #     ws.close(CloseCode::POLICY_VIOLATION, "token expired").await?;
/// #     Ok(())
/// # }, std::future::pending()));
/// let mut ws = linerate::connect(&url).await?; // a server that refuses us
/// assert_eq!(ws.recv().await?, None);
/// let closed = ws.closed().expect("recv has returned `None`");
/// assert_eq!((closed.code, closed.reason()), (1008, "token expired"));
/// assert_eq!(closed.initiator, Some(Initiator::Peer));
/// assert!(closed.clean && !closed.is_transient());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Closed {
    /// The code that decides what to do next: that of the peer's Close frame or, if there is none,
    /// our own. [`NO_STATUS`](Self::NO_STATUS) if that frame has no code, and
    /// [`ABNORMAL`](Self::ABNORMAL) if neither side sent a Close frame.
    pub code: u16,
    /// True if both sides sent a Close frame (§7.1.4).
    pub clean: bool,
    /// The peer's Close frame; `None` if the stream ended without one, or if the connection had
    /// failed before it arrived.
    pub received: Option<CloseFrame>,
    /// Our Close frame, even if it could not be delivered. After a protocol error, its code says
    /// which rule the peer violated.
    pub sent: Option<CloseFrame>,
    /// The side that sent the first Close frame; `None` if neither side sent one.
    pub initiator: Option<Initiator>,
}

/// The content of a Close frame (§5.5.1).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct CloseFrame {
    /// The code; `None` if the frame was empty.
    pub code: Option<CloseCode>,
    /// The reason, at most 123 bytes. The side that sent the frame controls this text.
    pub reason: Box<str>,
}

impl Closed {
    /// 1005: the Close frame had no code.
    pub const NO_STATUS: u16 = engine::Closed::NO_STATUS;
    /// 1006: the stream ended without a Close frame.
    pub const ABNORMAL: u16 = engine::Closed::ABNORMAL;

    /// Combines the Close frames of both sides.
    pub(crate) fn new(received: Option<CloseFrame>, sent: Option<(CloseFrame, Initiator)>) -> Self {
        let (sent, initiator) = sent.unzip();
        let code = match received.as_ref().or(sent.as_ref()) {
            Some(frame) => frame.code.map_or(Self::NO_STATUS, CloseCode::as_u16),
            None => Self::ABNORMAL,
        };
        Self {
            code,
            clean: received.is_some() && sent.is_some(),
            received,
            sent,
            initiator,
        }
    }

    /// Returns whether connecting again may help, by the
    /// [table](crate::Backoff#when-to-connect-again) of [`Backoff`](crate::Backoff).
    pub fn is_transient(&self) -> bool {
        !Retry::after_code(self.code).is_never()
    }

    /// Returns the reason of the Close frame from which [`code`](Self::code) comes; empty if there
    /// is none.
    pub fn reason(&self) -> &str {
        let deciding = self.received.as_ref().or(self.sent.as_ref());
        deciding.map_or("", |frame| &frame.reason)
    }
}

impl fmt::Display for Closed {
    /// Writes the code and the side that began, without text that the peer controls.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.initiator {
            None => return f.write_str("connection ended without a closing handshake"),
            Some(Initiator::Local) => "this side",
            Some(Initiator::Peer) => "the peer",
        };
        match self.code {
            Self::NO_STATUS => write!(f, "connection closed by {side} without a code")?,
            code => write!(f, "connection closed by {side} with code {code}")?,
        }
        match self.clean {
            true => Ok(()),
            false => f.write_str("; the peer did not answer"),
        }
    }
}

impl From<linerate_proto::CloseFrame<'_>> for CloseFrame {
    fn from(frame: linerate_proto::CloseFrame<'_>) -> Self {
        Self {
            code: frame.code,
            reason: frame.reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(code: u16, reason: &str) -> CloseFrame {
        CloseFrame {
            code: CloseCode::new(code),
            reason: reason.into(),
        }
    }

    #[test]
    fn the_peers_code_decides_then_ours_then_1006() {
        let ours = || Some((frame(1000, "done"), Initiator::Local));
        let answer = || Some((frame(1008, ""), Initiator::Peer));
        let peer = Some(frame(1008, "token"));
        for (received, sent, expected, text) in [
            (
                peer.clone(),
                answer(),
                (1008, "token", true),
                "by the peer with code 1008",
            ),
            (
                peer,
                ours(),
                (1008, "token", true),
                "by this side with code 1008",
            ),
            (
                None,
                ours(),
                (1000, "done", false),
                "code 1000; the peer did not answer",
            ),
            (
                Some(frame(0, "")),
                ours(),
                (1005, "", true),
                "by this side without a code",
            ),
            (None, None, (1006, "", false), "without a closing handshake"),
        ] {
            let closed = Closed::new(received, sent);
            assert_eq!((closed.code, closed.reason(), closed.clean), expected);
            assert!(closed.to_string().ends_with(text), "{closed}");
        }
    }
}
