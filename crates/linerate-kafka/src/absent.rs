//! The producer of a program without the client, which refuses every record.

use std::{future, sync::Arc};

use linerate_budget::Budget;

use crate::{
    options::ProducerOptions,
    produce::{NewRecord, ProduceError, ProducerStatus},
};

/// Refuses records, because the program was built without the feature `client`.
#[derive(Debug)]
pub struct Producer(Arc<ProducerStatus>);

impl Producer {
    /// Creates a producer that refuses records.
    pub fn new(_: ProducerOptions, status: Arc<ProducerStatus>, _: Budget) -> Self {
        Self(status)
    }

    /// Counts a record that is not stored.
    pub fn queue(&self, _: &NewRecord<'_>) {
        self.0.note_failed(false);
    }

    /// Refuses a record.
    ///
    /// # Errors
    /// Always.
    pub fn store(
        &self,
        _: &NewRecord<'_>,
    ) -> impl Future<Output = Result<(), ProduceError>> + Send + 'static + use<> {
        self.0.note_failed(true);
        let reason = "the program was built without Kafka".to_owned();
        future::ready(Err(ProduceError::NotStored(reason)))
    }
}
