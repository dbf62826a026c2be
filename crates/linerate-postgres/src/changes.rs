//! Reads a replication slot and publishes its changes.
//!
//! **Guarantees.** Changes are published after their commit, and in the order of commits within a
//! channel. The slot is advanced only after the broker has accepted a change, so none is lost. A
//! change that is read twice, because a node or a server ended before the slot was advanced, has
//! the same idempotency key, which brokers remember for a few minutes. In durable channels, the
//! source also compares the position with the newest one in the channel's history. A change is then
//! not repeated after a longer outage either, as long as one of the newest 100 publications of the
//! channel came from this source.

use std::{
    convert::Infallible,
    future::{Future, pending},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::{Buf, Bytes};
use foldhash::{HashMap, HashMapExt};
use linerate_budget::{Budget, Consumer, Lease, State};
use linerate_hub::ChannelName;
use tokio::{
    sync::Mutex,
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    attempts::Attempts,
    connect::{Connection, Frame},
    error::SourceError,
    lsn::Lsn,
    options::{ChangeOptions, TableOptions},
    pgoutput::Message,
    position::Position,
    publish::Publisher,
    rows::{Change, Operation, Row, RowError, Tables, Transaction, row},
    session::{Session, Slot},
    sink::Sink,
    status::{SourceState, Status, count},
};

/// How often the server is told what has been published, at least.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// How long to wait for publications that are on their way when the connection was lost.
const FINISH_MAX: Duration = Duration::from_secs(5);

/// The maximum of a batch; while one is published, the next one is read.
const BATCH_ROWS_MAX: usize = 1_024;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The minimum of the limit on messages, so that the description of any table fits: 1,600 columns
/// with names of 63 bytes.
const MESSAGE_BYTES_MIN: usize = 256 << 10;

/// The prefix of messages that name a channel.
const MESSAGE_PREFIX: &str = "linerate:";

/// Reads changes and publishes them, until this future is dropped.
pub async fn run(options: ChangeOptions, sink: Arc<dyn Sink>, status: Arc<Status>, budget: Budget) {
    let servers = options.server.servers();
    let mut source = Source {
        tables: options.tables.iter().cloned().map(Arc::new).collect(),
        options,
        sink,
        status,
        budget,
        progress: None,
        is_slot_lost: false,
        has_warned: false,
    };
    let mut attempts = Attempts::new(source.options.name.clone(), source.status.clone());
    loop {
        for server in &servers {
            let Err(error) = source.read(server).await;
            attempts.failed(error);
            if attempts.is_standby() {
                source.progress = None;
                break;
            }
        }
        attempts.pause().await;
    }
}

struct Source {
    options: ChangeOptions,
    tables: Vec<Arc<TableOptions>>,
    sink: Arc<dyn Sink>,
    status: Arc<Status>,
    budget: Budget,
    /// If this node was the last to read: the timeline, and up to where everything has been
    /// published.
    progress: Option<(u32, Lsn)>,
    /// True if there was no slot to read, so that changes are missing once there is one.
    is_slot_lost: bool,
    has_warned: bool,
}

impl Source {
    /// Reads until the connection is lost.
    async fn read(&mut self, server: &tokio_postgres::Config) -> Result<Infallible, SourceError> {
        let tls = &self.options.tls;
        let (session, _) = Session::connect(server, tls).await?;
        session.check(&self.options).await?;
        // A server that has crashed has forgotten what was confirmed last. The node that knows it
        // goes first.
        if self.progress.is_none() && session.has_just_started().await? {
            return Err(SourceError::Active);
        }
        let is_new = self.prepare_slot(&session).await?;
        let bytes_max = self.options.row_bytes_max.max(MESSAGE_BYTES_MIN);
        let mut connection = Connection::open(server, &self.options.tls, bytes_max).await?;
        let timeline = connection.timeline().await?;
        let progress = self
            .progress
            .filter(|progress| progress.0 == timeline && !is_new);
        let from = progress.map_or(Lsn(0), |progress| progress.1);
        connection.start(&self.options, from).await?;
        count(&self.status.connections);
        self.status.enter(&self.options.name, SourceState::Reading);
        if !std::mem::replace(&mut self.has_warned, true) && session.keeps_log_forever().await {
            tracing::warn!(
                source = %self.options.name,
                "max_slot_wal_keep_size is not limited: Postgres keeps its log while no node reads the slot, and may fill the disk"
            );
        }
        let suspect = session.newest().await?;
        let (ended, confirmed) = self
            .follow(&session, &mut connection, timeline, from, suspect)
            .await;
        self.progress = Some((timeline, confirmed));
        ended
    }

    /// Publishes what the connection reads, until it is lost. Also returns up to where everything
    /// has been published.
    async fn follow(
        &self,
        session: &Session,
        connection: &mut Connection,
        timeline: u32,
        from: Lsn,
        suspect: Lsn,
    ) -> (Result<Infallible, SourceError>, Lsn) {
        let publisher = Publisher {
            source: self.options.name.clone(),
            sink: self.sink.clone(),
            status: self.status.clone(),
            row_bytes_max: self.options.row_bytes_max,
            suspect,
            newest: Mutex::new(HashMap::new()),
        };
        let mut reader = Reader {
            source: self,
            session,
            publisher: &publisher,
            timeline,
            known: Tables::default(),
            transaction: None,
            index: 0,
            batch: Batch::default(),
            lease: self.budget.lease(Consumer::Publications),
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

    /// Makes sure that the slot can be read. Returns whether it is new.
    ///
    /// Changes before a new slot are not read. This is a gap even when the source starts: there may
    /// have been a slot while another process ran.
    async fn prepare_slot(&mut self, session: &Session) -> Result<bool, SourceError> {
        let slot = self.options.slot.clone();
        match session.slot(&slot).await? {
            Slot::Usable if !self.is_slot_lost => return Ok(false),
            Slot::Usable => {}
            Slot::Lost if self.options.create_slot => session.drop_slot(&slot).await?,
            Slot::Missing if self.options.create_slot => {}
            Slot::Lost => {
                self.is_slot_lost = true;
                return Err(SourceError::SlotLost { slot });
            }
            Slot::Missing => {
                self.is_slot_lost = true;
                return Err(SourceError::SlotMissing { slot });
            }
        }
        if session.create_slot(&slot).await? || self.is_slot_lost {
            self.is_slot_lost = false;
            count(&self.status.gaps);
            tracing::warn!(source = %self.options.name, slot, "slot is new: earlier changes are not published");
            self.sink.report_gap(self.patterns()).await;
        }
        Ok(true)
    }

    /// Returns patterns of the channels that the source may publish in.
    fn patterns(&self) -> Vec<String> {
        if self.options.messages {
            return vec!["*".to_owned()];
        }
        let tables = self.tables.iter();
        tables.map(|table| table.channel.pattern()).collect()
    }
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
    source: &'a Source,
    session: &'a Session,
    publisher: &'a Publisher,
    timeline: u32,
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
                    let publisher = self.publisher;
                    *publishing = Some(Box::pin(async move {
                        publisher.publish(batch.rows).await;
                        batch.end
                    }));
                }
            }
            let is_idle = publishing.is_none();
            let has_room = self.batch.rows.len() < BATCH_ROWS_MAX
                && self.batch.bytes < BATCH_BYTES_MAX
                && (is_idle || self.source.budget.state() != State::Critical);
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
                    let newest = self.session.newest().await?;
                    let lag = newest.0.saturating_sub(self.confirmed.0);
                    self.source.status.lag_bytes.store(lag, Ordering::Relaxed);
                }
            }
        }
    }

    async fn confirm(&self, connection: &mut Connection) -> Result<(), SourceError> {
        let confirmed = self.confirmed;
        self.source
            .status
            .confirmed
            .store(confirmed.0, Ordering::Relaxed);
        connection.confirm(confirmed).await
    }

    /// Handles a message of the server. Returns whether it asks for an answer.
    fn handle(&mut self, mut data: Bytes) -> Result<bool, SourceError> {
        let short = crate::pgoutput::DecodeError::Short;
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
            Message::Relation(relation) => self.known.insert(relation, &self.source.tables),
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
                    channel.filter(|_| self.source.options.messages),
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
            timeline: self.timeline,
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
        let bytes_max = self.source.options.row_bytes_max;
        let made = match bytes > bytes_max {
            true => Err(RowError::TooLarge { bytes, bytes_max }),
            false => row(table, &change, &transaction, position),
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
                timeline: self.timeline,
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
                key: None,
                position,
                transaction: (transaction.id, transaction.at),
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
        let bytes_max = self.source.options.row_bytes_max;
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
        let source = &self.source.options.name;
        if let Some(refused) = self.source.status.note_refused() {
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
