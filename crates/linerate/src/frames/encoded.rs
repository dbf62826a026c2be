//! Frames that are encoded once and sent by reference to many connections.

#[cfg(feature = "deflate")]
use std::sync::Arc;

use bytes::Bytes;
#[cfg(feature = "deflate")]
use linerate_proto::deflate::{Deflate, Prepared, ThreadPool};
use linerate_proto::{
    Header, Opcode,
    engine::MessageKind,
    frame::{self, OpenFrame},
};

use super::{FramesError, check};
use crate::Message;

/// Complete messages as a server sends them, including frame headers, for
/// [`Sender::try_send_frames`](crate::Sender::try_send_frames).
///
/// Clones share the bytes. A connection copies small frames into its output buffer and keeps a
/// reference to large ones.
///
/// ```
/// use linerate::{Frames, MessageKind};
///
/// let mut wire = Vec::new();
/// Frames::append(&mut wire, MessageKind::Text, b"Spam");
/// Frames::append_with(&mut wire, MessageKind::Binary, |payload| payload.extend([1, 2]));
/// let frames = Frames::from_framed(wire)?;
/// assert_eq!(frames.as_bytes(), b"\x81\x04Spam\x82\x02\x01\x02");
/// assert_eq!(frames.messages(), 2);
/// # Ok::<_, linerate::frames::FramesError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Bytes,
    messages: u64,
    /// The messages for connections that use compression, if compression shortens any of them.
    #[cfg(feature = "deflate")]
    prepared: Option<Arc<[Prepared]>>,
}

impl Frames {
    /// Appends a message to `out`. The `payload` of a text message must be valid UTF-8.
    pub fn append(out: &mut Vec<u8>, kind: MessageKind, payload: &[u8]) {
        frame::append(out, kind.opcode(), payload);
    }

    /// Appends a message to `out` with `write` appending the payload, which must be valid UTF-8 for
    /// a text message.
    ///
    /// This is cheaper than [`append`](Self::append) if the payload has to be assembled first.
    pub fn append_with(out: &mut Vec<u8>, kind: MessageKind, write: impl FnOnce(&mut Vec<u8>)) {
        let frame = OpenFrame::start(out);
        write(out);
        frame.finish(out, kind.opcode());
    }

    /// Creates `Frames` from bytes that are already framed: any number of complete, unmasked text
    /// and binary messages, each in one frame.
    ///
    /// This checks every byte. For bytes that you framed yourself,
    /// [`danger_from_framed`](Self::danger_from_framed) skips the check.
    ///
    /// # Errors
    /// The bytes are not such messages.
    pub fn from_framed(bytes: impl Into<Bytes>) -> Result<Self, FramesError> {
        let bytes = bytes.into();
        let messages = check(&bytes)?;
        Ok(Self::plain(bytes, messages))
    }

    /// Creates `Frames` from bytes that are already framed, like
    /// [`from_framed`](Self::from_framed), but without checking them.
    ///
    /// `messages` is used only for counting. If the bytes are not complete, unmasked messages, the
    /// peer fails the connection or misinterprets the messages.
    pub fn danger_from_framed(bytes: impl Into<Bytes>, messages: u64) -> Self {
        let bytes = bytes.into();
        debug_assert_eq!(
            check(&bytes).err(),
            None,
            "bytes are not whole, unmasked messages"
        );
        Self::plain(bytes, messages)
    }

    /// Creates `Frames` from frames that a [`Lockstep`](linerate_proto::deflate::Lockstep) has
    /// compressed.
    ///
    /// They are sent as they are, so they must be sent only on connections that can inflate them at
    /// this point. `messages` is used only for counting.
    #[cfg(feature = "deflate")]
    pub fn danger_from_compressed(bytes: impl Into<Bytes>, messages: u64) -> Self {
        Self::plain(bytes.into(), messages)
    }

    /// Compresses the messages once for all connections that use compression (RFC 7692); the other
    /// connections get them uncompressed.
    ///
    /// The compressed messages do not refer to earlier data, so they can be sent at any point of a
    /// connection; later messages of the connection may refer to them. A connection whose window is
    /// smaller than that of `options` may get long messages uncompressed. The results of
    /// [`len`](Self::len) and [`as_bytes`](Self::as_bytes) do not change.
    ///
    /// ```
    /// use linerate::{Deflate, Frames, Message};
    ///
    /// let frames = Frames::from(&Message::from("Spam ".repeat(50)));
    /// assert!(frames.compressed(&Deflate::default()).is_compressed());
    /// ```
    #[cfg(feature = "deflate")]
    pub fn compressed(mut self, options: &Deflate) -> Self {
        let messages = self.iter();
        let prepare = |(kind, payload)| Prepared::new(kind, payload, options, &ThreadPool);
        let prepared: Arc<[Prepared]> = messages.map(prepare).collect();
        let any_shrinks = prepared.iter().any(Prepared::is_compressed);
        self.prepared = any_shrinks.then_some(prepared);
        self
    }

    /// Returns whether [`compressed`](Self::compressed) made any of the messages shorter.
    #[cfg(feature = "deflate")]
    pub const fn is_compressed(&self) -> bool {
        self.prepared.is_some()
    }

    /// Returns the frames as uncompressed wire bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of messages.
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns the total length of all frames in bytes.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are no frames.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the uncompressed wire bytes, which all clones share.
    pub const fn shared(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the messages for connections that use compression, if compression shortens any of
    /// them.
    #[cfg(feature = "deflate")]
    pub fn prepared(&self) -> Option<&[Prepared]> {
        self.prepared.as_deref()
    }

    const fn plain(bytes: Bytes, messages: u64) -> Self {
        Self {
            bytes,
            messages,
            #[cfg(feature = "deflate")]
            prepared: None,
        }
    }

    /// Returns the kind and payload of each message.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (MessageKind, &[u8])> {
        messages(&self.bytes)
    }
}

/// Returns the kind and payload of each message in `frames`, which are whole and unmasked.
pub(crate) fn messages(frames: &[u8]) -> impl Iterator<Item = (MessageKind, &[u8])> {
    let mut rest = frames;
    std::iter::from_fn(move || {
        let (header, start) = Header::decode(rest).ok()??;
        let kind = match header.opcode {
            Opcode::Text => MessageKind::Text,
            _ => MessageKind::Binary,
        };
        let end = start.checked_add(usize::try_from(header.payload_bytes).ok()?)?;
        let payload = rest.get(start..end)?;
        rest = &rest[end..];
        Some((kind, payload))
    })
}

impl<'a> FromIterator<&'a Message> for Frames {
    fn from_iter<T: IntoIterator<Item = &'a Message>>(messages: T) -> Self {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for message in messages {
            Self::append(&mut bytes, message.kind(), message.as_bytes());
            count += 1;
        }
        Self::plain(bytes.into(), count)
    }
}

/// Compares the messages, regardless of whether they are also compressed.
impl PartialEq for Frames {
    fn eq(&self, other: &Self) -> bool {
        (&self.bytes, self.messages) == (&other.bytes, other.messages)
    }
}

impl Eq for Frames {}

impl From<&Message> for Frames {
    fn from(message: &Message) -> Self {
        Self::from_iter([message])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_unmasked_frames_in_order() {
        let messages = [Message::from("Spam"), Message::from(b"\xFF"), "".into()];
        let frames = Frames::from_iter(&messages);
        assert_eq!(frames.as_bytes(), b"\x81\x04Spam\x82\x01\xFF\x81\x00");
        assert_eq!((frames.messages(), frames.len()), (3, 11));
        assert_eq!(
            Frames::from_framed(frames.as_bytes().to_vec()),
            Ok(frames.clone())
        );
        let payloads: Vec<_> = frames.iter().map(|(_, payload)| payload).collect();
        assert_eq!(payloads, [&b"Spam"[..], b"\xFF", b""]);
        assert_eq!(Frames::from(&messages[0]).as_bytes(), b"\x81\x04Spam");
        assert!(Frames::default().is_empty());
    }

    #[test]
    fn a_payload_that_is_written_later_has_the_shortest_header() {
        for bytes in [0, 1, 125, 126, 127, 0xFFFF, 0x1_0000] {
            let payload = vec![7; bytes];
            let (mut expected, mut written) = (b"before".to_vec(), b"before".to_vec());
            Frames::append(&mut expected, MessageKind::Binary, &payload);
            Frames::append_with(&mut written, MessageKind::Binary, |out| {
                out.extend(&payload)
            });
            assert!(expected == written, "{bytes}");
            assert!(
                Frames::from_framed(written[6..].to_vec()).is_ok(),
                "{bytes}"
            );
        }
    }

    #[test]
    fn what_no_server_sends_is_refused() {
        let at = 3;
        for (frame, error) in [
            (&b"\x89\x00"[..], FramesError::Control { at }),
            (b"\x88\x02\x03\xe8", FramesError::Control { at }),
            (b"\x01\x01a", FramesError::Fragment { at }),
            (b"\x80\x01a", FramesError::Fragment { at }),
            (b"\xC1\x01a", FramesError::Fragment { at }),
            (b"\x81", FramesError::Incomplete { at }),
            (b"\x81\x05Spam", FramesError::Incomplete { at }),
            (
                b"\x82\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
                FramesError::Incomplete { at },
            ),
            (b"\x81\x81\0\0\0\0a", FramesError::Masked { at }),
            (b"\x81\x01\xFF", FramesError::NotUtf8 { at }),
        ] {
            let bytes = [b"\x81\x01a", frame].concat();
            assert_eq!(
                Frames::from_framed(bytes),
                Err(error),
                "{}",
                frame.escape_ascii()
            );
            assert!(error.to_string().contains("byte 3"), "{error}");
        }
        let error = Frames::from_framed(&b"\x81\x7E\x00\x01a"[..]).unwrap_err();
        assert!(
            matches!(error, FramesError::Header { at: 0, .. }),
            "{error}"
        );
        assert!(std::error::Error::source(&error).is_some());
    }
}
