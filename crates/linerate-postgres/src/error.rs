//! The reasons why a source cannot read.

use std::{io, time::Duration};

use linerate_source::Trouble;

use crate::pgoutput::DecodeError;

/// The reason why a source cannot read at the moment. It tries again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Another node reads.
    #[error("another node reads")]
    Active,
    /// The server refused the connection, or it could not be opened.
    #[error("cannot connect to Postgres: {0}")]
    Connect(String),
    /// The connection was lost.
    #[error("connection to Postgres was lost: {0}")]
    Lost(#[from] io::Error),
    /// A message cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The publication does not exist.
    #[error(
        "publication {publication} does not exist; run: CREATE PUBLICATION {publication} FOR TABLE …"
    )]
    Publication {
        /// The publication.
        publication: String,
    },
    /// The server refused a request.
    #[error("Postgres refused: {0}")]
    Refused(String),
    /// The slot does not exist.
    #[error(
        "replication slot {slot} does not exist; run: SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput'), or set create_slot = true"
    )]
    SlotMissing {
        /// The slot.
        slot: String,
    },
    /// The server has removed the log that the slot needs.
    #[error(
        "replication slot {slot} is lost, because the server has removed its log (max_slot_wal_keep_size); run: SELECT pg_drop_replication_slot('{slot}'), or set create_slot = true"
    )]
    SlotLost {
        /// The slot.
        slot: String,
    },
    /// The server does not write what logical decoding needs.
    #[error(
        "wal_level is {level}; run: ALTER SYSTEM SET wal_level = logical, and restart Postgres"
    )]
    WalLevel {
        /// The current level.
        level: String,
    },
}

impl SourceError {
    pub(crate) fn no_answer(within: Duration) -> Self {
        Self::Lost(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", within.as_secs()),
        ))
    }
}

impl From<SourceError> for Trouble {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Active => Self::Standby,
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<tokio_postgres::Error> for SourceError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(refusal) => Self::Refused(refusal.message().to_owned()),
            None => Self::Lost(io::Error::other(error)),
        }
    }
}
