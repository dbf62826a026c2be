//! Reads a replication slot and publishes its changes.
//!
//! **Guarantees.** Changes are published after their commit, and in the order of commits within a
//! channel. The slot is advanced only after the broker has accepted a change, so none is lost. A
//! change that is read twice, because a node or a server ended before the slot was advanced, has
//! the same idempotency key, which brokers remember for a few minutes. In durable channels, the
//! source also compares the position with the newest one in the channel's history. A change is then
//! not repeated after a longer outage either, as long as one of the newest 100 publications of the
//! channel came from this source.

use std::{convert::Infallible, sync::Arc};

use linerate_budget::Budget;
use linerate_source::{Attempts, Publisher, Sink, Status};

use crate::{
    connect::Connection,
    error::SourceError,
    lsn::Lsn,
    options::{ChangeOptions, TableOptions},
    reader::{Scope, read},
    session::{Session, Slot},
};

/// The minimum of the limit on messages, so that the description of any table fits: 1,600 columns
/// with names of 63 bytes.
const MESSAGE_BYTES_MIN: usize = 256 << 10;

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
        was_read: false,
        is_slot_lost: false,
        has_warned: false,
    };
    let mut attempts = Attempts::new(source.options.name.clone(), source.status.clone());
    loop {
        for server in &servers {
            let Err(error) = source.read(server).await;
            attempts.failed(error);
            if attempts.is_standby() {
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
    /// True if a connection read the slot at the latest attempt.
    was_read: bool,
    /// True if there was no slot to read, and the gap is not reported yet.
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
        self.status.note_reading(&self.options.name);
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
        let publisher = Publisher::new(
            self.options.name.clone(),
            self.sink.clone(),
            self.status.clone(),
            self.options.row_bytes_max,
        );
        let scope = Scope {
            options: &self.options,
            tables: &self.tables,
            status: &self.status,
            budget: &self.budget,
            session,
            publisher: &publisher,
            suspect,
            timeline,
        };
        read(connection, &scope, from).await
    }

    /// Makes sure that the slot can be read. Returns whether it is new.
    ///
    /// Changes before a new slot are not read. This is a gap even when the source starts: there may
    /// have been a slot while another process ran.
    async fn prepare_slot(&mut self, session: &Session) -> Result<bool, SourceError> {
        let slot = self.options.slot.clone();
        match session.slot(&slot).await? {
            Slot::Usable { is_read } if !self.is_slot_lost => {
                self.take_turn(is_read)?;
                return Ok(false);
            }
            Slot::Usable { .. } => {}
            unusable => {
                self.is_slot_lost = true;
                match (unusable, self.options.create_slot) {
                    (Slot::Lost, false) => return Err(SourceError::SlotLost { slot }),
                    (_, false) => return Err(SourceError::SlotMissing { slot }),
                    (Slot::Lost, true) => session.drop_slot(&slot).await?,
                    (_, true) => {}
                }
                if !session.create_slot(&slot).await? {
                    // The node that was faster reports the gap.
                    self.is_slot_lost = false;
                    return Ok(true);
                }
            }
        }
        self.status.note_gap();
        tracing::warn!(source = %self.options.name, slot, "slot is new: earlier changes are not published");
        self.sink.report_gap(self.patterns()).await;
        self.is_slot_lost = false;
        Ok(true)
    }

    /// Succeeds if it is this node's turn to read the slot. A reader that has lost its connection
    /// goes first, because it knows what it has published and not confirmed: other nodes wait for
    /// one more attempt.
    fn take_turn(&mut self, is_read: bool) -> Result<(), SourceError> {
        let was_read = std::mem::replace(&mut self.was_read, is_read);
        if is_read && was_read {
            // It is not this node's own connection, which the server had not yet ended.
            self.progress = None;
        }
        match is_read || (was_read && self.progress.is_none()) {
            true => Err(SourceError::Active),
            false => Ok(()),
        }
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
