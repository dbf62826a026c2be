//! Publishes messages on one NATS subject that others read.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_nats::{
    Client, HeaderMap,
    connection::State,
    jetstream::{
        self, Context,
        context::{GetStreamByNameErrorKind, PublishErrorKind},
        message::PublishMessage,
    },
};
use bytes::Bytes;
use futures_util::{StreamExt, future::try_join_all};
use tokio::sync::Mutex;

use super::{NatsConfigError, dial::Connector, subject};
use crate::{broker::BrokerError, options::BrokerOptions};

/// Publishes messages on a NATS subject. It connects when it has something to publish, and
/// reconnects by itself.
pub struct SubjectWriter {
    dial: Connector,
    subject: String,
    timeout: Duration,
    link: Mutex<Option<Link>>,
    /// True once the subject was found to belong to a stream.
    has_stream: AtomicBool,
}

/// A message of a [`SubjectWriter`].
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// A JetStream stream stores only one of the messages with the same ID.
    pub id: String,
    /// Further headers.
    pub headers: Vec<(&'static str, &'a str)>,
    /// The content.
    pub payload: Bytes,
}

#[derive(Clone)]
struct Link {
    client: Client,
    context: Context,
}

impl SubjectWriter {
    /// Prepares to publish on `subject` at the service at `url`, which is that of a
    /// [`Nats`](super::Nats) broker. `authorities` are the CA certificates to trust instead of
    /// those of the system, as PEM.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use linerate_broker::nats::SubjectWriter;
    ///
    /// let timeout = Duration::from_secs(5);
    /// SubjectWriter::new("nats://127.0.0.1:4222", "events", timeout, None)?;
    /// # Ok::<(), linerate_broker::nats::NatsConfigError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the URL, a file that it names or the subject is invalid.
    pub fn new(
        url: &str,
        subject: &str,
        timeout: Duration,
        authorities: Option<Vec<u8>>,
    ) -> Result<Self, NatsConfigError> {
        let options = BrokerOptions {
            command_timeout: timeout,
            dial_timeout: timeout,
            tls_authorities: authorities,
            ..BrokerOptions::default()
        };
        subject::check_subject(subject).map_err(NatsConfigError::Subject)?;
        Ok(Self {
            dial: Connector::new(url, &options)?,
            subject: subject.to_owned(),
            timeout,
            link: Mutex::default(),
            has_stream: AtomicBool::new(false),
        })
    }

    /// Publishes messages in order. If the subject belongs to a JetStream stream, this completes
    /// once the stream has stored them, and otherwise once the server has received them. The
    /// connection belongs to the runtime on which this is called first.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable or refuses. It is then unknown which messages
    /// were published.
    pub async fn publish(&self, messages: &[Message<'_>]) -> Result<(), BrokerError> {
        let link = self.link().await?;
        let published = tokio::time::timeout(self.timeout, self.publish_on(&link, messages));
        let published = match published.await {
            Ok(published) => published,
            Err(_) => Err(BrokerError::Timeout {
                deadline: self.timeout,
            }),
        };
        if published.is_err() {
            // What the client still buffers must not be sent later.
            *self.link.lock().await = None;
        }
        published
    }

    async fn publish_on(&self, link: &Link, messages: &[Message<'_>]) -> Result<(), BrokerError> {
        match link.context.stream_by_subject(self.subject.as_str()).await {
            Ok(stream) => {
                self.has_stream.store(true, Ordering::Relaxed);
                self.store(link, &stream, messages).await
            }
            Err(error) if error.kind() == GetStreamByNameErrorKind::NotFound => {
                self.send(link, messages).await
            }
            // JetStream is unavailable at the moment.
            Err(error) if self.has_stream.load(Ordering::Relaxed) || !link.is_up() => {
                Err(BrokerError::away(error))
            }
            // The server has no JetStream.
            Err(_) => self.send(link, messages).await,
        }
    }

    /// Publishes messages and waits until the stream has stored them.
    async fn store(
        &self,
        link: &Link,
        stream: &str,
        messages: &[Message<'_>],
    ) -> Result<(), BrokerError> {
        let mut sent = Vec::with_capacity(messages.len());
        for message in messages {
            let publish = PublishMessage::build()
                .payload(message.payload.clone())
                .headers(headers(message))
                .message_id(&message.id)
                .expected_stream(stream);
            let publish = link.context.send_publish(self.subject.clone(), publish);
            sent.push(publish.await.map_err(BrokerError::away)?);
        }
        let stored = try_join_all(sent.into_iter().map(IntoFuture::into_future)).await;
        stored.map(drop).map_err(|error| match error.kind() {
            PublishErrorKind::BrokenPipe | PublishErrorKind::TimedOut => BrokerError::away(error),
            _ => BrokerError::refused(error),
        })
    }

    /// Publishes messages and waits until the server has received them.
    async fn send(&self, link: &Link, messages: &[Message<'_>]) -> Result<(), BrokerError> {
        let client = &link.client;
        let inbox = client.new_inbox();
        let mut echo = client.subscribe(inbox.clone()).await;
        let echo = echo.as_mut().map_err(BrokerError::away)?;
        for message in messages {
            let (subject, payload) = (self.subject.clone(), message.payload.clone());
            let sent = client.publish_with_headers(subject, headers(message), payload);
            sent.await.map_err(BrokerError::refused)?;
        }
        // A server handles the messages of a connection in order.
        let sent = client.publish(inbox, Bytes::new()).await;
        sent.map_err(BrokerError::away)?;
        match echo.next().await {
            Some(_) => Ok(()),
            None => Err(BrokerError::away("connection was lost")),
        }
    }

    /// Returns the connection, which is opened if there is none.
    async fn link(&self) -> Result<Link, BrokerError> {
        let mut link = self.link.lock().await;
        if let Some(link) = link.as_ref().filter(|link| link.is_up()) {
            return Ok(link.clone());
        }
        let options = self.dial.connect_options().map_err(BrokerError::away)?;
        let connect = options.connect(self.dial.servers().to_vec());
        let client = match tokio::time::timeout(self.timeout, connect).await {
            Ok(client) => client.map_err(BrokerError::away)?,
            Err(_) => {
                let deadline = self.timeout;
                return Err(BrokerError::Timeout { deadline });
            }
        };
        let mut context = jetstream::new(client.clone());
        context.set_timeout(self.timeout);
        Ok(link.insert(Link { client, context }).clone())
    }
}

impl Link {
    fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }
}

impl fmt::Debug for SubjectWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubjectWriter")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

fn headers(message: &Message<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &message.headers {
        headers.insert(*name, *value);
    }
    headers
}
