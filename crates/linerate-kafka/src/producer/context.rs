//! What librdkafka reports of records and of the connection.

use std::sync::Arc;

use rdkafka::{
    client::ClientContext,
    config::RDKafkaLogLevel,
    error::KafkaError,
    message::DeliveryResult,
    producer::{NoCustomPartitioner, ProducerContext},
};
use tokio::sync::oneshot;

use super::{queue::Queue, report};
use crate::{
    options::ProducerOptions,
    produce::{ProduceError, ProducerStatus},
};

/// A record that librdkafka holds.
#[derive(Debug)]
pub(super) struct Ticket {
    /// Its memory.
    pub(super) bytes: usize,
    /// Receives what became of it. `None` if the caller does not wait.
    pub(super) waiter: Option<oneshot::Sender<Result<(), ProduceError>>>,
}

/// Receives the calls of librdkafka, on a thread of its own.
pub(super) struct Context {
    pub(super) options: Arc<ProducerOptions>,
    pub(super) status: Arc<ProducerStatus>,
    pub(super) queue: Queue,
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        let (kafka, topic) = (&self.options.name, &self.options.topic);
        tracing::debug!(%kafka, %topic, ?level, facility, message, "librdkafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let (kafka, topic) = (&self.options.name, &self.options.topic);
        tracing::debug!(%kafka, %topic, %error, reason, "Kafka reports an error");
    }
}

impl ProducerContext<NoCustomPartitioner> for Context {
    type DeliveryOpaque = Box<Ticket>;

    fn delivery(&self, result: &DeliveryResult<'_>, ticket: Box<Ticket>) {
        self.queue.remove(ticket.bytes);
        let result = match result {
            Ok(_) => {
                self.status.note_stored();
                Ok(())
            }
            Err((error, _)) => {
                let reason = match error.rdkafka_error_code() {
                    Some(code) => code.to_string(),
                    None => error.to_string(),
                };
                let error = ProduceError::NotStored(reason);
                report(&self.options, &self.status, &error, ticket.waiter.is_some());
                Err(error)
            }
        };
        if let Some(waiter) = ticket.waiter {
            // The receiver is gone if the caller does not wait any more.
            _ = waiter.send(result);
        }
    }
}
