//! Reads a replication connection, and publishes the changes in batches.

use std::{
    convert::Infallible,
    future::{Future, pending},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::{Buf, Bytes};
use linerate_budget::{Budget, Consumer, Lease, State};
use linerate_hub::ChannelName;
use linerate_source::{Publisher, Status};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::{
    connect::{Connection, Frame},
    error::SourceError,
    lsn::Lsn,
    options::{ChangeOptions, TableOptions},
    pgoutput::{DecodeError, Message},
    position::Position,
    rows::{Change, Operation, Row, RowError, Tables, Transaction, row},
    session::Session,
};

/// How often the server is told what has been published, at least.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// How long to wait for publications that are on their way when the connection was lost.
const FINISH_MAX: Duration = Duration::from_secs(5);

/// The maximum of a batch; while one is published, the next one is read.
const BATCH_ROWS_MAX: usize = 1_024;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The prefix of messages that name a channel.
const MESSAGE_PREFIX: &str = "linerate:";

/// What a reader works with.
pub(crate) struct Scope<'a> {
    pub(crate) options: &'a ChangeOptions,
    pub(crate) tables: &'a [Arc<TableOptions>],
    pub(crate) status: &'a Status,
    pub(crate) budget: &'a Budget,
    pub(crate) session: &'a Session,
    pub(crate) publisher: &'a Publisher<Position>,
    /// Transactions up to here may have been published by an earlier reader of the slot.
    pub(crate) suspect: Lsn,
    /// The timeline of the server.
    pub(crate) timeline: u32,
}

/// Publishes what the connection reads, until it is lost. Also returns up to where everything has
/// been published, at least `from`.
pub(crate) async fn read(
    connection: &mut Connection,
    scope: &Scope<'_>,
    from: Lsn,
) -> (Result<Infallible, SourceError>, Lsn) {
    let mut reader = Reader {
        scope,
        known: Tables::default(),
        transaction: None,
        index: 0,
        batch: Batch::default(),
        lease: scope.budget.lease(Consumer::Publications),
        confirmed: from,
    };
    let mut publishing = None;
    let ended = reader.run(connection, &mut publishing).await;
    if let Some(publishing) = publishing
        && let Ok(confirmed) = timeout(FINISH_MAX, publishing).await
    {
        reader.confirmed = reader.confirmed.max(confirmed);
    }
    (ended, reader.confirmed)
}

/// Rows that are read and not yet being published.
#[derive(Default)]
struct Batch {
    rows: Vec<Row>,
    bytes: usize,
    /// What can be confirmed once they are published.
    end: Lsn,
}

type Publishing<'a> = Pin<Box<dyn Future<Output = Lsn> + Send + 'a>>;

struct Reader<'a> {
    scope: &'a Scope<'a>,
    known: Tables,
    transaction: Option<Transaction>,
    /// The number of the next change in the transaction.
    index: u64,
    batch: Batch,
    /// The memory of the batch that is being read, and of the one that is being published.
    lease: Lease,
    confirmed: Lsn,
}

impl<'a> Reader<'a> {
    async fn run(
        &mut self,
        connection: &mut Connection,
        publishing: &mut Option<Publishing<'a>>,
    ) -> Result<Infallible, SourceError> {
        let mut ticks = interval(STATUS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut published_bytes = 0;
        loop {
            if publishing.is_none() {
                if self.batch.rows.is_empty() {
                    self.confirmed = self.confirmed.max(self.batch.end);
                } else {
                    let end = self.batch.end;
                    let batch = std::mem::take(&mut self.batch);
                    self.batch.end = end;
                    published_bytes = batch.bytes;
                    let publisher = self.scope.publisher;
                    *publishing = Some(Box::pin(async move {
                        publisher.publish(batch.rows).await;
                        batch.end
                    }));
                }
            }
            let is_idle = publishing.is_none();
            let has_room = self.batch.rows.len() < BATCH_ROWS_MAX
                && self.batch.bytes < BATCH_BYTES_MAX
                && (is_idle || self.scope.budget.state() != State::Critical);
            tokio::select! {
                end = poll(publishing) => {
                    *publishing = None;
                    self.lease.shrink(published_bytes as u64);
                    self.confirmed = self.confirmed.max(end);
                    self.confirm(connection).await?;
                }
                frame = connection.frame(), if has_room => {
                    let must_confirm = match frame? {
                        Frame::Data(data) => self.handle(data)?,
                        Frame::Oversized { head, bytes } => self.handle_oversized(&head, bytes),
                    };
                    if must_confirm {
                        self.confirm(connection).await?;
                    }
                }
                _ = ticks.tick() => {
                    self.confirm(connection).await?;
                    let newest = self.scope.session.newest().await?;
                    let lag = newest.0.saturating_sub(self.confirmed.0);
                    self.scope.status.set_lag_bytes(lag);
                }
            }
        }
    }

    async fn confirm(&self, connection: &mut Connection) -> Result<(), SourceError> {
        connection.confirm(self.confirmed).await
    }

    /// Handles a message of the server. Returns whether it asks for an answer.
    fn handle(&mut self, mut data: Bytes) -> Result<bool, SourceError> {
        let short = DecodeError::Short;
        match data.try_get_u8().map_err(|_| short)? {
            b'k' => {
                let end = Lsn(data.try_get_u64().map_err(|_| short)?);
                let _time = data.try_get_u64().map_err(|_| short)?;
                if self.transaction.is_none() {
                    self.batch.end = self.batch.end.max(end);
                }
                Ok(data.try_get_u8().map_err(|_| short)? == 1)
            }
            b'w' if data.len() >= 24 => {
                data.advance(24);
                self.decode(&data)?;
                Ok(false)
            }
            _ => Err(short.into()),
        }
    }

    fn decode(&mut self, data: &Bytes) -> Result<(), SourceError> {
        let change = |operation, old, new| Change {
            operation,
            old,
            new,
        };
        match Message::decode(data)? {
            Message::Begin {
                commit,
                at,
                transaction: id,
            } => {
                self.transaction = Some(Transaction { commit, at, id });
                self.index = 0;
            }
            Message::Commit { end } => {
                self.transaction = None;
                self.batch.end = self.batch.end.max(end);
            }
            Message::Relation(relation) => self.known.insert(relation, self.scope.tables),
            Message::Insert { relation, new } => {
                self.push(
                    relation,
                    change(Operation::Create, None, Some(new)),
                    data.len(),
                );
            }
            Message::Update { relation, old, new } => {
                self.push(
                    relation,
                    change(Operation::Update, old, Some(new)),
                    data.len(),
                );
            }
            Message::Delete { relation, old } => {
                self.push(
                    relation,
                    change(Operation::Delete, Some(old), None),
                    data.len(),
                );
            }
            Message::Truncate { relations } => {
                for relation in relations {
                    self.push(
                        relation,
                        change(Operation::Truncate, None, None),
                        data.len(),
                    );
                }
            }
            Message::Logical {
                is_transactional,
                at,
                prefix,
                content,
            } => {
                let channel = prefix.strip_prefix(MESSAGE_PREFIX);
                let content = data.slice_ref(content);
                self.push_message(
                    channel.filter(|_| self.scope.options.messages),
                    is_transactional,
                    at,
                    content,
                );
            }
            Message::Other => {}
        }
        Ok(())
    }

    /// Returns the position of the next change.
    fn next_position(&mut self, commit: Lsn) -> Position {
        self.index += 1;
        Position {
            timeline: self.scope.timeline,
            commit,
            index: self.index - 1,
        }
    }

    fn push(&mut self, relation: u32, change: Change<'_>, bytes: usize) {
        let Some(transaction) = self.transaction else {
            return;
        };
        let position = self.next_position(transaction.commit);
        let Some(table) = self.known.find(relation) else {
            return;
        };
        let bytes_max = self.scope.options.row_bytes_max;
        let made = match bytes > bytes_max {
            true => Err(RowError::TooLarge { bytes, bytes_max }),
            false => row(table, &change, &transaction, position, self.scope.suspect),
        };
        match made {
            Ok(Some(row)) => self.add(row),
            Ok(None) => {}
            Err(error) => self.refuse(&table.0.table, position, &error),
        }
    }

    fn push_message(
        &mut self,
        channel: Option<&str>,
        is_transactional: bool,
        at: Lsn,
        content: Bytes,
    ) {
        let alone = Transaction {
            commit: at,
            at: 0,
            id: 0,
        };
        let transaction = match self.transaction {
            Some(transaction) if is_transactional => transaction,
            _ => alone,
        };
        let position = match is_transactional {
            true => self.next_position(transaction.commit),
            false => Position {
                timeline: self.scope.timeline,
                commit: at,
                index: 0,
            },
        };
        let Some(channel) = channel else {
            return;
        };
        match ChannelName::new(channel) {
            // A copy, because the content shares the memory of what was read with it.
            Ok(channel) => self.add(Row {
                channel,
                payload: Bytes::copy_from_slice(&content),
                tags: Vec::new(),
                key: transaction.key(position),
                position,
                is_suspect: position.commit <= self.scope.suspect,
            }),
            Err(error) => self.refuse("pg_logical_emit_message", position, &error.into()),
        }
        if !is_transactional && self.transaction.is_none() {
            self.batch.end = self.batch.end.max(Lsn(at.0 + 1));
        }
    }

    fn add(&mut self, row: Row) {
        let bytes = row.payload.len() + size_of::<Row>();
        self.batch.bytes += bytes;
        self.lease.force(bytes as u64);
        self.batch.rows.push(row);
    }

    /// Skips a message that is too large. The changes after it keep their numbers.
    fn handle_oversized(&mut self, head: &[u8], bytes: usize) -> bool {
        let bytes_max = self.scope.options.row_bytes_max;
        let commit = self
            .transaction
            .map_or(Lsn(0), |transaction| transaction.commit);
        let position = self.next_position(commit);
        let id = head.get(26..30).and_then(|id| id.try_into().ok());
        let table = id.and_then(|id| self.known.find(u32::from_be_bytes(id)));
        let name = table.map_or_else(String::new, |(relation, _)| relation.table.clone());
        self.refuse(&name, position, &RowError::TooLarge { bytes, bytes_max });
        false
    }

    fn refuse(&self, table: &str, position: Position, error: &RowError) {
        let source = &self.scope.options.name;
        if let Some(refused) = self.scope.status.note_refused() {
            tracing::warn!(source, table, %position, %error, refused, "changes cannot be published; skipped");
        }
    }
}

/// Waits for a batch that is being published.
async fn poll(publishing: &mut Option<Publishing<'_>>) -> Lsn {
    match publishing {
        Some(publishing) => publishing.await,
        None => pending().await,
    }
}
