//! The conversation with one client, which sends several files over one connection.

use std::{collections::HashMap, future::Future};

use linerate::{CloseCode, Error, MessageKind, Reader, Receiver, Sender};
use tokio::time::timeout;

use crate::{
    Announced, Store, UploadError, UploadId,
    error::ProtocolError,
    message::{ClientMessage, ServerMessage},
    shared::Shared,
    slot::{Claim, Progress, Slot},
};

/// The most bytes that are stored without an acknowledgement within a message, 1 MiB, unless the
/// window is small.
const ACK_BYTES: u64 = 1 << 20;

/// Receives the messages of a connection, passes bytes to the store, and answers.
pub(crate) struct Conversation<'a, S: Store> {
    shared: &'a Shared<S>,
    sender: &'a Sender,
    /// The uploads that continue, by the client's numbers.
    open: HashMap<u64, OpenUpload<S::File>>,
    /// The highest number that the client has used.
    newest: Option<u64>,
    /// The upload to which binary messages belong.
    selected: Option<u64>,
    /// How many more bytes may arrive for uploads that have ended: what can have been under way.
    discard_bytes_max: u64,
}

struct OpenUpload<F> {
    claim: Claim<F>,
    /// The number of stored bytes.
    bytes: u64,
    acked: u64,
}

/// How a conversation ended.
enum End {
    /// The client has closed the connection.
    Closed,
    /// Nothing arrived for too long.
    Idle,
    Lost(Error),
    Protocol(ProtocolError),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

impl From<ProtocolError> for End {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl<'a, S: Store> Conversation<'a, S> {
    pub(crate) fn new(shared: &'a Shared<S>, sender: &'a Sender) -> Self {
        Self {
            shared,
            sender,
            open: HashMap::new(),
            newest: None,
            selected: None,
            discard_bytes_max: 0,
        }
    }

    /// Holds the conversation until it ends, and closes the connection.
    pub(crate) async fn hold(mut self, receiver: &mut Receiver) -> linerate::Result<()> {
        let end = match self.hear(receiver).await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        // Other connections can continue the uploads from now on.
        self.open.clear();
        let (code, reason) = match end {
            End::Lost(error) => return Err(error),
            End::Closed => return Ok(()),
            End::Idle => (CloseCode::NORMAL, "idle"),
            End::Protocol(error) => {
                tracing::debug!(%error, "uploads ended");
                self.send_error(None, "protocol", error.to_string()).await?;
                (CloseCode::POLICY_VIOLATION, "protocol")
            }
        };
        self.sender.close(code, reason).await?;
        Ok(())
    }

    async fn hear(&mut self, receiver: &mut Receiver) -> Result<std::convert::Infallible, End> {
        let limits = &self.shared.limits;
        self.send(ServerMessage::Hello {
            file_bytes_max: limits.file_bytes_max,
            idle_s: limits.idle_max.as_secs(),
            uploads_max: limits.per_connection_max,
            window_bytes: limits.window_bytes,
        })
        .await?;
        loop {
            let next = receiver.reader_with_limit(Some(limits.window_bytes));
            let reader = self.while_not_idle(next).await?.ok_or(End::Closed)?;
            match reader.kind() {
                MessageKind::Binary => self.hear_bytes(reader).await?,
                MessageKind::Text => self.hear_text(reader).await?,
            }
        }
    }

    async fn hear_text(&mut self, mut reader: Reader<'_>) -> Result<(), End> {
        let bytes_max = self.shared.limits.text_bytes_max;
        let mut text = String::new();
        while let Some(piece) = self.while_not_idle(reader.chunk()).await? {
            text.push_str(piece.as_text().unwrap_or_default());
            if text.len() > bytes_max {
                return Err(ProtocolError::TextTooLong { bytes_max }.into());
            }
        }
        match ClientMessage::parse(&text)? {
            ClientMessage::Cancel { upload } => self.cancel(upload).await,
            ClientMessage::Data { upload, offset } => self.select(upload, offset).await,
            ClientMessage::Resume {
                upload,
                id,
                name,
                size,
            } => {
                self.use_number(upload)?;
                let found = self.resume(&id, Announced { name, size }).await;
                self.begin(upload, found).await
            }
            ClientMessage::Start { upload, name, size } => {
                self.use_number(upload)?;
                let created = self.start(Announced { name, size }).await;
                self.begin(upload, created).await
            }
        }
    }

    /// Receives a binary message, and passes its pieces to the store as they arrive.
    async fn hear_bytes(&mut self, mut reader: Reader<'_>) -> Result<(), End> {
        let number = self.selected.ok_or(ProtocolError::NotSelected)?;
        while let Some(piece) = self.while_not_idle(reader.chunk()).await? {
            self.take(number, piece.as_bytes()).await?;
        }
        self.acknowledge(number, 1).await
    }

    async fn take(&mut self, number: u64, piece: &[u8]) -> Result<(), End> {
        let limits = &self.shared.limits;
        let Some(upload) = self.open.get_mut(&number) else {
            return self.discard(piece.len() as u64);
        };
        match upload.claim.write(piece).await {
            Ok(bytes) => upload.bytes = bytes,
            Err(error) => return self.fail(number, error).await,
        }
        if upload.bytes == upload.claim.slot().announced.size {
            return self.finish(number).await;
        }
        self.acknowledge(number, ACK_BYTES.min(limits.window_bytes / 4).max(1))
            .await
    }

    /// Counts bytes of an upload that has ended. The client cannot have known this for more than
    /// what was under way.
    fn discard(&mut self, bytes: u64) -> Result<(), End> {
        let rest = self.discard_bytes_max.checked_sub(bytes);
        let bytes_max = self.discard_bytes_max;
        self.discard_bytes_max = rest.ok_or(ProtocolError::Discarded { bytes_max })?;
        Ok(())
    }

    /// Acknowledges what was stored if it is at least `bytes_min` more than before.
    async fn acknowledge(&mut self, number: u64, bytes_min: u64) -> Result<(), End> {
        let Some(upload) = self.open.get_mut(&number) else {
            return Ok(());
        };
        let bytes = upload.bytes;
        if bytes - upload.acked >= bytes_min {
            upload.acked = bytes;
            let upload = number;
            self.send(ServerMessage::Ack { upload, bytes }).await?;
        }
        Ok(())
    }

    /// Records a number that the client uses for the first time.
    fn use_number(&mut self, upload: u64) -> Result<(), ProtocolError> {
        if self.newest.is_some_and(|newest| upload <= newest) {
            return Err(ProtocolError::NumberUsed { upload });
        }
        self.newest = Some(upload);
        Ok(())
    }

    fn expect_used(&self, upload: u64) -> Result<(), ProtocolError> {
        match self.newest {
            Some(newest) if upload <= newest => Ok(()),
            _ => Err(ProtocolError::UnknownNumber { upload }),
        }
    }

    fn check(&self, announced: &Announced) -> Result<(), UploadError> {
        let limits = &self.shared.limits;
        if self.open.len() >= limits.per_connection_max {
            let max = limits.per_connection_max;
            return Err(UploadError::Busy { max });
        }
        if announced.size > limits.file_bytes_max {
            return Err(UploadError::TooLarge {
                bytes: announced.size,
                bytes_max: limits.file_bytes_max,
            });
        }
        if announced.name.len() > limits.name_bytes_max {
            let reason = "it is too long";
            return Err(UploadError::BadName { reason });
        }
        Ok(())
    }

    async fn start(&self, announced: Announced) -> Result<Claim<S::File>, UploadError> {
        self.check(&announced)?;
        let place = self.shared.registry.place()?;
        let id = UploadId::random();
        let file = self.shared.store.create(id, &announced).await?;
        let slot = Slot::new(id, announced, (file, 0), place);
        Ok(self.shared.registry.add(slot))
    }

    async fn resume(&self, id: &str, announced: Announced) -> Result<Claim<S::File>, UploadError> {
        self.check(&announced)?;
        let id = UploadId::parse(id).ok_or(UploadError::UnknownUpload)?;
        let registry = &self.shared.registry;
        if let Some(slot) = registry.find(id) {
            if slot.announced != announced {
                return Err(UploadError::Mismatch);
            }
            let claim = Claim::new(slot);
            if claim.progress().await.is_some() {
                return Ok(claim);
            }
            registry.remove(claim.slot());
        }
        let place = registry.place()?;
        let (file, bytes) = self.shared.store.reopen(id, &announced).await?;
        let slot = Slot::new(id, announced, (file, bytes), place);
        Ok(registry.add(slot))
    }

    /// Tells the client where an upload begins or continues, or that it failed.
    async fn begin(
        &mut self,
        upload: u64,
        claim: Result<Claim<S::File>, UploadError>,
    ) -> Result<(), End> {
        let claim = match claim {
            Ok(claim) => claim,
            Err(error) => return self.refuse(upload, &error).await,
        };
        let size = claim.slot().announced.size;
        let Some(progress) = claim.progress().await else {
            return self.refuse(upload, &UploadError::UnknownUpload).await;
        };
        let bytes = match progress {
            Progress::Done(_) => size,
            Progress::Open(bytes) => bytes,
        };
        let id = claim.slot().id.to_string();
        let acked = bytes;
        let opened = OpenUpload {
            claim,
            bytes,
            acked,
        };
        self.open.insert(upload, opened);
        let offset = bytes;
        self.send(ServerMessage::Ready { upload, id, offset })
            .await?;
        match bytes == size {
            true => self.finish(upload).await,
            false => Ok(()),
        }
    }

    /// Selects the upload to which the next binary messages belong.
    async fn select(&mut self, number: u64, offset: u64) -> Result<(), End> {
        self.expect_used(number)?;
        self.selected = Some(number);
        let expected = self.open.get(&number).map(|upload| upload.bytes);
        match expected {
            Some(expected) if expected != offset => {
                let error = UploadError::WrongOffset { offset, expected };
                self.fail(number, error).await
            }
            _ => Ok(()),
        }
    }

    async fn finish(&mut self, number: u64) -> Result<(), End> {
        let Some(upload) = self.open.get(&number) else {
            return Ok(());
        };
        match upload.claim.finish().await {
            Ok(result) => {
                self.end(number);
                let (upload, result) = (number, &result);
                Ok(self.send(ServerMessage::Done { upload, result }).await?)
            }
            Err(error) => self.fail(number, error).await,
        }
    }

    async fn cancel(&mut self, number: u64) -> Result<(), End> {
        self.expect_used(number)?;
        if let Some(upload) = self.end(number) {
            upload.claim.cancel().await;
            self.shared.registry.remove(upload.claim.slot());
        }
        Ok(())
    }

    /// Ends an upload of this connection with an error. What has arrived is kept, unless the store
    /// has failed.
    async fn fail(&mut self, number: u64, error: UploadError) -> Result<(), End> {
        let error = match error {
            UploadError::UnknownUpload => UploadError::expired(&self.shared.limits),
            error => error,
        };
        if let Some(upload) = self.end(number)
            && upload.claim.progress().await.is_none()
        {
            self.shared.registry.remove(upload.claim.slot());
        }
        self.refuse(number, &error).await
    }

    /// Removes an upload. The client may have sent bytes of it that are still under way.
    fn end(&mut self, number: u64) -> Option<OpenUpload<S::File>> {
        let upload = self.open.remove(&number)?;
        let under_way = self.shared.limits.window_bytes;
        self.discard_bytes_max = self.discard_bytes_max.saturating_add(under_way);
        Some(upload)
    }

    async fn refuse(&self, upload: u64, error: &UploadError) -> Result<(), End> {
        match error {
            UploadError::Storage(cause) => tracing::warn!(%cause, "cannot store an upload"),
            error => tracing::debug!(%error, "upload refused"),
        }
        let message = error.to_string();
        Ok(self.send_error(Some(upload), error.code(), message).await?)
    }

    async fn send_error(
        &self,
        upload: Option<u64>,
        code: &str,
        message: String,
    ) -> linerate::Result<()> {
        self.send(ServerMessage::Error {
            upload,
            code,
            message,
        })
        .await
    }

    async fn send(&self, message: ServerMessage<'_>) -> linerate::Result<()> {
        self.sender.send(message.to_json()).await
    }

    async fn while_not_idle<T>(
        &self,
        input: impl Future<Output = linerate::Result<T>>,
    ) -> Result<T, End> {
        let arrived = timeout(self.shared.limits.idle_max, input).await;
        Ok(arrived.map_err(|_| End::Idle)??)
    }
}
