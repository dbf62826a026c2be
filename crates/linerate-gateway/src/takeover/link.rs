//! Messages with descriptors over a Unix socket.
//!
//! The kernel decides whether a message can still be received: [`Link::send_at_once`] fails if the
//! peer has called [`Link::refuse_more`] or has closed its end, and otherwise the message is in the
//! peer's queue. This is what makes `commit` unambiguous.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
};

use rustix::{
    cmsg_space,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, Shutdown, recvmsg, sendmsg, shutdown,
    },
};
use thiserror::Error;
use tokio::{io::Interest, net::UnixStream};

use super::{
    frame::{DESCRIPTORS_MAX, FrameError, HEADER_BYTES, Header, PROTOCOL},
    message::{Message, MessageError},
};

/// Maximum number of bytes received at a time: memory is allocated for bytes that arrive, not for
/// those that a header claims.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// Space for the control data of a message.
const CONTROL_BYTES: usize = cmsg_space!(ScmRights(DESCRIPTORS_MAX));

/// A connection to another process.
#[derive(Debug)]
pub(super) struct Link(UnixStream);

/// A message could not be sent or received.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    /// The peer has closed the connection, as the kernel does when its process ends.
    #[error("closed by the other process")]
    Closed,
    /// The control data did not fit, or no more descriptors can be opened.
    #[error("descriptors were lost; raise the limit of open files (LimitNOFILE)")]
    DescriptorsLost,
    /// The header is invalid.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The system refused to send or receive.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The message is invalid.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The descriptors do not come with their message.
    #[error("message with {claimed} descriptors came with {found}")]
    Mismatch {
        /// The number in the header.
        claimed: usize,
        /// The number found.
        found: usize,
    },
    /// The version is not the one that both have agreed on.
    #[error("message of protocol version {found}, and this process has {} to {}", PROTOCOL.0, PROTOCOL.1)]
    Version {
        /// The version found.
        found: u16,
    },
}

impl Link {
    pub(super) const fn new(stream: UnixStream) -> Self {
        Self(stream)
    }

    /// Sends a message with descriptors.
    pub(super) async fn send(
        &self,
        message: &Message,
        mut descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let bytes = to_bytes(message, descriptors.len());
        let mut sent = 0;
        while sent < bytes.len() {
            self.0.writable().await?;
            let send = || send_part(&self.0, &bytes[sent..], descriptors);
            match self.0.try_io(Interest::WRITABLE, send) {
                Ok(count) => {
                    sent += count;
                    // They went with the first byte.
                    descriptors = &[];
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends a message without descriptors if the peer can still receive it, and does not wait.
    ///
    /// # Errors
    /// Fails if the peer cannot receive it. Then it will not.
    pub(super) fn send_at_once(&self, message: &Message) -> io::Result<()> {
        let bytes = to_bytes(message, 0);
        let sent = send_part(&self.0, &bytes, &[])?;
        // A message of a few bytes is never split.
        if sent < bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    }

    /// Refuses everything that the peer has not sent yet. What it has sent can still be received.
    pub(super) fn refuse_more(&self) -> io::Result<()> {
        shutdown(&self.0, Shutdown::Read)?;
        Ok(())
    }

    /// Receives a message and its descriptors, which are closed on exec. After it was dropped or
    /// has failed, nothing else can be received.
    pub(super) async fn receive(&mut self) -> Result<(Message, Vec<OwnedFd>), LinkError> {
        let mut descriptors = Vec::new();
        let mut header = [0; HEADER_BYTES];
        self.fill(&mut header, &mut descriptors).await?;
        let header = Header::parse(header)?;
        let mut payload = Vec::new();
        while payload.len() < header.payload_bytes {
            let at = payload.len();
            let piece = (header.payload_bytes - at).min(PIECE_BYTES_MAX);
            payload.resize(at + piece, 0);
            self.fill(&mut payload[at..], &mut descriptors).await?;
        }
        let message = Message::from_payload(header.kind, &payload)?;
        if !message.is_in_every_version() && !(PROTOCOL.0..=PROTOCOL.1).contains(&header.version) {
            let found = header.version;
            return Err(LinkError::Version { found });
        }
        let (claimed, found) = (header.descriptors, descriptors.len());
        if claimed != found {
            return Err(LinkError::Mismatch { claimed, found });
        }
        Ok((message, descriptors))
    }

    /// Receives exactly as many bytes as there is room for.
    async fn fill(
        &self,
        mut bytes: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
    ) -> Result<(), LinkError> {
        while !bytes.is_empty() {
            self.0.readable().await?;
            let receive = || receive_part(&self.0, bytes, descriptors);
            match self.0.try_io(Interest::READABLE, receive) {
                Ok((_, flags)) if flags.contains(ReturnFlags::CTRUNC) => {
                    return Err(LinkError::DescriptorsLost);
                }
                Ok((0, _)) => return Err(LinkError::Closed),
                Ok((count, _)) => bytes = &mut bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(LinkError::Closed);
                }
                Err(error) => return Err(error.into()),
            }
            if descriptors.len() > DESCRIPTORS_MAX {
                let (claimed, found) = (DESCRIPTORS_MAX, descriptors.len());
                return Err(LinkError::Mismatch { claimed, found });
            }
        }
        Ok(())
    }
}

fn to_bytes(message: &Message, descriptors: usize) -> Vec<u8> {
    let payload = message.to_payload();
    let header = Header {
        version: PROTOCOL.1,
        kind: message.kind(),
        descriptors,
        payload_bytes: payload.len(),
    };
    [&header.to_bytes()[..], &payload].concat()
}

fn send_part(
    stream: &UnixStream,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(sendmsg(
        stream,
        &[IoSlice::new(bytes)],
        &mut control,
        flags,
    )?)
}

fn receive_part(
    stream: &UnixStream,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<(usize, ReturnFlags)> {
    let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(stream, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok((received.bytes, received.flags))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io,
        os::fd::{AsFd, OwnedFd},
    };

    use rustix::io::{FdFlags, fcntl_getfd};
    use tokio::{io::AsyncWriteExt, net::UnixStream};

    use super::{Link, LinkError};
    use crate::takeover::message::Message;

    fn pair() -> (Link, Link) {
        let (one, other) = UnixStream::pair().unwrap();
        (Link::new(one), Link::new(other))
    }

    /// Returns what the peer of someone who writes `bytes` and closes receives.
    async fn receive_bytes(bytes: &[u8]) -> Result<Message, LinkError> {
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let bytes = bytes.to_vec();
        let writing = tokio::spawn(async move { _ = writer.write_all(&bytes).await });
        let received = Link::new(reader).receive().await;
        writing.await.unwrap();
        received.map(|(message, descriptors)| {
            assert!(descriptors.is_empty());
            message
        })
    }

    #[tokio::test]
    async fn messages_arrive_with_their_descriptors_which_are_closed_on_exec() {
        let (one, mut other) = pair();
        let file = File::open("/dev/null").unwrap();
        let many = vec![file.as_fd(); 253];
        let sending = async {
            for descriptors in [&many[..], &[], &many[..1]] {
                let message = Message::Listeners { offer: 7 };
                one.send(&message, descriptors).await.unwrap();
            }
        };
        let receiving = async {
            for count in [253, 0, 1] {
                let (message, descriptors) = other.receive().await.unwrap();
                assert_eq!(message, Message::Listeners { offer: 7 });
                assert_eq!(descriptors.len(), count);
                let is_closed = |it: &OwnedFd| fcntl_getfd(it).unwrap().contains(FdFlags::CLOEXEC);
                assert!(descriptors.iter().all(is_closed));
            }
        };
        tokio::join!(sending, receiving);
    }

    #[tokio::test]
    async fn descriptors_that_no_message_claims_are_refused_and_closed() {
        let (one, mut other) = pair();
        let (kept, sent) = UnixStream::pair().unwrap();
        // The header claims none.
        let bytes = super::to_bytes(&Message::Prepared, 0);
        super::send_part(&one.0, &bytes, &[sent.as_fd()]).unwrap();
        drop(sent);
        let error = other.receive().await.unwrap_err().to_string();
        assert_eq!(error, "message with 0 descriptors came with 1");
        kept.readable().await.unwrap();
        let end = kept.try_read(&mut [0]);
        assert_eq!(end.unwrap(), 0, "the descriptor that was sent is closed");

        // Descriptors with each byte of a message.
        let (one, mut other) = pair();
        let file = File::open("/dev/null").unwrap();
        let many = vec![file.as_fd(); 200];
        for byte in super::to_bytes(&Message::Prepared, 200) {
            super::send_part(&one.0, &[byte], &many).unwrap();
        }
        let error = other.receive().await.unwrap_err().to_string();
        assert_eq!(error, "message with 253 descriptors came with 400");
        let (one, mut other) = pair();
        one.send_at_once(&Message::Prepared).unwrap();
        let claimed = super::to_bytes(&Message::Prepared, 3);
        other.receive().await.unwrap();
        super::send_part(&one.0, &claimed, &[]).unwrap();
        let error = other.receive().await.unwrap_err().to_string();
        assert_eq!(error, "message with 3 descriptors came with 0");
    }

    #[tokio::test]
    async fn anything_that_is_not_a_message_is_refused() {
        let errors = [
            (&b"GET / HTTP/1.1\r\n"[..], "is the peer linerate?"),
            (b"LT\0\x01\x05\xfe\0\0\0\0", "254 descriptors exceeds"),
            (b"LT\0\x01\x05\0\xff\xff\xff\xff", "exceeds the limit"),
            (
                b"LT\0\x01\x05\0\x01\0\0\0abc",
                "closed by the other process",
            ),
            (b"LT\0\x01\x05\0\0\0\0\x01a", "invalid message `prepared`"),
            (b"LT\0\x01\x63\0\0\0\0\0", "unknown message of kind 99"),
            (b"LT\0\x09\x05\0\0\0\0\0", "message of protocol version 9"),
            (b"", "closed by the other process"),
            (b"LT\0", "closed by the other process"),
        ];
        for (bytes, expected) in errors {
            let error = receive_bytes(bytes).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{bytes:?}: {error}");
        }
        let refuse = receive_bytes(b"LT\0\x09\x08\0\0\0\0\x05\0\0\0\x01a").await;
        let reason = "a".to_owned();
        assert_eq!(refuse.unwrap(), Message::Refuse { reason });
    }

    #[tokio::test]
    async fn a_message_is_sent_if_and_only_if_the_peer_can_receive_it() {
        let (one, mut other) = pair();
        one.send_at_once(&Message::Commit).unwrap();
        other.refuse_more().unwrap();
        let error = one.send_at_once(&Message::Commit).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        let (message, _) = other.receive().await.unwrap();
        assert_eq!(message, Message::Commit, "it was sent before");
        let end = other.receive().await;
        assert!(matches!(end, Err(LinkError::Closed)), "{end:?}");
        drop(other);
        one.send_at_once(&Message::Commit).unwrap_err();
    }
}
