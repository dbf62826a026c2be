//! The ordinary connection of a source: checks, and the slot.

use std::{future::poll_fn, sync::Arc, time::Duration};

use postgres_protocol::escape::{escape_identifier, escape_literal};
use rustls::ClientConfig;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_postgres::{
    AsyncMessage, Client, Config, Notification, SimpleQueryMessage, error::SqlState,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{connect::CONNECT_MAX, error::SourceError, lsn::Lsn, options::ChangeOptions};

/// How soon the last reader returns after a start of the server; longer than the delay between its
/// attempts.
const RETURNS_WITHIN: Duration = Duration::from_secs(3);

/// The maximum time until the server has answered a query.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The first of the two numbers of our advisory locks: "line" in ASCII.
const LOCKS: u32 = 0x6c69_6e65;

/// The number of notifications that are read before they are taken. The server keeps further ones.
const NOTIFICATIONS_MAX: usize = 256;

/// A session for queries. Dropping it closes the connection.
pub(crate) struct Session {
    client: Client,
    driver: JoinHandle<()>,
}

/// What the server says about the slot.
pub(crate) enum Slot {
    Lost,
    Missing,
    Usable {
        /// True if a connection reads it.
        is_read: bool,
    },
}

impl Session {
    /// Connects. Also returns what arrives for the channels that the session listens to, which ends
    /// with the connection.
    pub(crate) async fn connect(
        server: &Config,
        tls: &Arc<ClientConfig>,
    ) -> Result<(Self, mpsc::Receiver<Notification>), SourceError> {
        let tls = MakeRustlsConnect::new((**tls).clone());
        let connected = timeout(CONNECT_MAX, server.connect(tls)).await;
        let connected = connected.map_err(|_| SourceError::no_answer(CONNECT_MAX))?;
        let (client, mut connection) = connected.map_err(|error| {
            let reason = match error.as_db_error() {
                Some(refusal) => refusal.message().to_owned(),
                None => std::error::Error::source(&error)
                    .map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}")),
            };
            SourceError::Connect(reason)
        })?;
        let (sender, notifications) = mpsc::channel(NOTIFICATIONS_MAX);
        // An error also ends the queries of the client.
        let driver = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(notification) = message
                    && sender.send(notification).await.is_err()
                {
                    return;
                }
            }
        });
        Ok((Self { client, driver }, notifications))
    }

    /// Runs statements.
    async fn run(
        &self,
        sql: &str,
    ) -> Result<Result<Vec<SimpleQueryMessage>, tokio_postgres::Error>, SourceError> {
        let answered = timeout(ANSWER_MAX, self.client.simple_query(sql)).await;
        answered.map_err(|_| SourceError::no_answer(ANSWER_MAX))
    }

    /// Returns the first row of an answer, as texts.
    async fn row(&self, sql: &str) -> Result<Option<Vec<Option<String>>>, SourceError> {
        let messages = self.run(sql).await??;
        let row = messages.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let texts = |row: tokio_postgres::SimpleQueryRow| {
            let columns = 0..row.len();
            columns.map(|at| row.get(at).map(str::to_owned)).collect()
        };
        Ok(row.map(texts))
    }

    async fn text(&self, sql: &str) -> Result<Option<String>, SourceError> {
        let row = self.row(sql).await?.unwrap_or_default();
        Ok(row.into_iter().next().flatten())
    }

    /// Checks what the source needs of the server.
    pub(crate) async fn check(&self, options: &ChangeOptions) -> Result<(), SourceError> {
        let level = self.text("SHOW wal_level").await?.unwrap_or_default();
        if level != "logical" {
            return Err(SourceError::WalLevel { level });
        }
        let publication = &options.publication;
        let sql = format!(
            "SELECT 1 FROM pg_publication WHERE pubname = {}",
            escape_literal(publication)
        );
        if self.text(&sql).await?.is_none() {
            let publication = publication.clone();
            return Err(SourceError::Publication { publication });
        }
        Ok(())
    }

    /// Returns whether the server has started so recently that the last reader may not have
    /// returned.
    pub(crate) async fn has_just_started(&self) -> Result<bool, SourceError> {
        let sql = format!(
            "SELECT clock_timestamp() - pg_postmaster_start_time() < interval '{} s'",
            RETURNS_WITHIN.as_secs()
        );
        Ok(self.text(&sql).await?.as_deref() == Some("t"))
    }

    /// Returns true if the server keeps its log for a slot without a limit.
    pub(crate) async fn keeps_log_forever(&self) -> bool {
        let keep = self.text("SHOW max_slot_wal_keep_size").await;
        keep.is_ok_and(|keep| keep.as_deref() == Some("-1"))
    }

    pub(crate) async fn slot(&self, slot: &str) -> Result<Slot, SourceError> {
        let sql = format!(
            "SELECT CASE wal_status WHEN 'lost' THEN 'lost' ELSE active::text END \
             FROM pg_replication_slots WHERE slot_name = {}",
            escape_literal(slot)
        );
        Ok(match self.text(&sql).await?.as_deref() {
            None => Slot::Missing,
            Some("lost") => Slot::Lost,
            Some(active) => Slot::Usable {
                is_read: active == "true",
            },
        })
    }

    /// Creates the slot. Returns false if another node was faster.
    pub(crate) async fn create_slot(&self, slot: &str) -> Result<bool, SourceError> {
        let sql = format!(
            "SELECT pg_create_logical_replication_slot({}, 'pgoutput')",
            escape_literal(slot)
        );
        match self.run(&sql).await? {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(&SqlState::DUPLICATE_OBJECT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn drop_slot(&self, slot: &str) -> Result<(), SourceError> {
        let sql = format!("SELECT pg_drop_replication_slot({})", escape_literal(slot));
        match self.run(&sql).await? {
            Err(error) if error.code() != Some(&SqlState::UNDEFINED_OBJECT) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Listens to a channel.
    pub(crate) async fn listen(&self, channel: &str) -> Result<(), SourceError> {
        let listen = format!("LISTEN {}", escape_identifier(channel));
        self.row(&listen).await.map(drop)
    }

    /// Becomes the only reader of a source, until the session ends. Returns false if another
    /// session is.
    pub(crate) async fn try_lock(&self, source: u32) -> Result<bool, SourceError> {
        let sql = format!(
            "SELECT pg_try_advisory_lock({LOCKS}, {})",
            source.cast_signed()
        );
        Ok(self.text(&sql).await?.as_deref() == Some("t"))
    }

    /// Returns the process and the start of the session, which identify it.
    pub(crate) async fn identity(&self) -> Result<String, SourceError> {
        let sql = "SELECT pid || ':' || extract(epoch FROM backend_start) \
                   FROM pg_stat_activity WHERE pid = pg_backend_pid()";
        Ok(self.text(sql).await?.unwrap_or_default())
    }

    /// Checks whether the server answers.
    pub(crate) async fn ping(&self) -> Result<(), SourceError> {
        self.row("SELECT 1").await.map(drop)
    }

    /// Returns the newest position of the server's log.
    pub(crate) async fn newest(&self) -> Result<Lsn, SourceError> {
        let sql = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() \
                   ELSE pg_current_wal_insert_lsn() END";
        let text = self.text(sql).await?.unwrap_or_default();
        Ok(text.parse().unwrap_or_default())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
