//! Receiving messages in chunks and sending them in fragments, in constant memory.

use std::{fmt, future::poll_fn};

use linerate_proto::{ProtocolError, engine::MessageKind};

use crate::{
    Message, Result,
    link::{Chunk, End, Link, Mode, Recv, Urgency},
};

/// A message that is being received in chunks.
///
/// Chunks are returned as they arrive, regardless of how the message is fragmented; each chunk of a
/// text message ends at a code point boundary. If a reader is dropped before the end, the rest of
/// its message is skipped.
///
/// A message that is too large fails the connection with close code 1009. The limit is
/// [`message_bytes_max`](crate::Limits::message_bytes_max), unless the reader is created with
/// another one ([`reader_with_limit`](crate::WebSocket::reader_with_limit)). It applies to the
/// chunks that have been received; `fragments_max` does not apply.
///
/// ```no_run
/// # async fn f(ws: &mut linerate::WebSocket) -> linerate::Result<()> {
/// let mut bytes = 0;
/// while let Some(mut message) = ws.reader().await? {
///     while let Some(chunk) = message.chunk().await? {
///         bytes += chunk.len();
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reader<'a> {
    link: &'a Link,
    kind: MessageKind,
    first: Option<Message>,
    ended: bool,
    /// How many bytes have arrived, including `first`.
    bytes: u64,
    bytes_max: u64,
}

impl<'a> Reader<'a> {
    /// Waits for the first chunk of the next message, with the limit of the connection.
    pub(crate) async fn start(link: &'a Link) -> Result<Option<Self>> {
        let bytes_max = link.message_bytes_max();
        Self::start_with(link, bytes_max).await
    }

    /// Waits for the first chunk of the next message.
    pub(crate) async fn start_with(link: &'a Link, bytes_max: u64) -> Result<Option<Self>> {
        let Some(Chunk { message, end }) = next_chunk(link, Mode::FirstChunk).await? else {
            return Ok(None);
        };
        let mut reader = Self {
            link,
            kind: message.kind(),
            first: None,
            ended: end == End::Reached,
            bytes: 0,
            bytes_max,
        };
        reader.count(&message)?;
        reader.first = Some(message);
        Ok(Some(reader))
    }

    /// Returns the kind of the message.
    pub const fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Receives the next chunk, or `None` after the end of the message.
    ///
    /// # Errors
    /// Same as for [`WebSocket::recv`](crate::WebSocket::recv); also if the message exceeds the
    /// limit of the reader. If the connection ends before the
    /// message does, the error is [`Error::Abnormal`](crate::Error::Abnormal).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Message>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.ended {
            return Ok(None);
        }
        let Some(Chunk { message, end }) = next_chunk(self.link, Mode::Chunks).await? else {
            self.ended = true;
            return Err(crate::Error::Abnormal);
        };
        self.ended = end == End::Reached;
        self.count(&message)?;
        Ok(Some(message))
    }

    /// Counts a chunk; fails the connection if the message is too large.
    fn count(&mut self, chunk: &Message) -> Result<()> {
        let bytes = self.bytes.saturating_add(chunk.len() as u64);
        self.bytes = bytes;
        let bytes_max = self.bytes_max;
        if bytes <= bytes_max {
            return Ok(());
        }
        self.ended = true;
        let error = ProtocolError::MessageTooBig { bytes, bytes_max };
        self.link.fail(&error);
        Err(error.into())
    }
}

async fn next_chunk(link: &Link, mode: Mode) -> Result<Option<Chunk>> {
    let mut receiving = Recv::new(link);
    let received = poll_fn(|cx| receiving.poll_chunk(cx, mode)).await;
    received.map_err(|error| *error)
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// A message that is being sent in fragments.
///
/// End the message with [`finish`](Self::finish). Dropping a writer in the middle of a message
/// closes the connection, because no other message could follow.
///
/// ```no_run
/// # async fn f(ws: &mut linerate::WebSocket) -> linerate::Result<()> {
/// let mut writer = ws.writer(linerate::MessageKind::Text);
/// for line in ["one\n", "two\n"] {
///     writer.write(line.as_bytes()).await?;
/// }
/// writer.finish().await?;
/// # Ok(())
/// # }
/// ```
pub struct Writer<'a> {
    link: &'a Link,
    kind: MessageKind,
    begun: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(link: &'a Link, kind: MessageKind) -> Self {
        Self {
            link,
            kind,
            begun: false,
        }
    }

    /// Sends a fragment.
    ///
    /// A text message may be split anywhere, even within a code point; all of it together must be
    /// valid UTF-8.
    ///
    /// # Errors
    /// The connection is closing or closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends no part of the fragment.
    pub async fn write(&mut self, payload: &[u8]) -> Result<()> {
        self.queue(payload, false).await?;
        self.begun = true;
        Ok(())
    }

    /// Sends a Ping between two fragments, like [`WebSocket::ping`](crate::WebSocket::ping) between
    /// messages.
    ///
    /// # Errors
    /// The connection is closing or closed, or `payload` is longer than 125 bytes.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends nothing.
    pub async fn ping(&mut self, payload: &[u8]) -> Result<()> {
        let link = self.link;
        poll_fn(|cx| {
            link.poll_queue(cx, Urgency::Now, |outbox, engine| {
                outbox.push_ping(engine, payload)?;
                Ok(0)
            })
        })
        .await
    }

    /// Ends the message.
    ///
    /// # Errors
    /// The connection is closing or closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes drops the writer, which closes the connection if the
    /// message has been started.
    pub async fn finish(mut self) -> Result<()> {
        self.queue(b"", true).await?;
        self.begun = false;
        Ok(())
    }

    async fn queue(&mut self, payload: &[u8], fin: bool) -> Result<()> {
        let (link, kind) = (self.link, self.kind);
        poll_fn(|cx| {
            link.poll_queue(cx, Urgency::Now, |outbox, engine| {
                outbox.push_fragment(engine, kind, payload, fin)?;
                Ok(fin.into())
            })
        })
        .await
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if self.begun {
            // Closing with an empty reason cannot fail.
            _ = self
                .link
                .start_close(linerate_proto::CloseCode::INTERNAL_ERROR, "");
        }
    }
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
