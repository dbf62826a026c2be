//! From decoded changes to publications.

use foldhash::HashMap;
use linerate_hub::ChannelName;
use linerate_source::Record;
use std::sync::Arc;

use crate::{
    json,
    lsn::Lsn,
    options::{ANY_TABLE, TableOptions},
    pgoutput::{Relation, Tuple, Value},
    position::Position,
};

/// The time from 1970 to 2000, from which Postgres counts, in milliseconds.
const EPOCH_MS: i64 = 946_684_800_000;

/// A change that is ready to be published.
pub(crate) type Row = Record<Position>;

/// The transaction that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transaction {
    pub(crate) commit: Lsn,
    /// When it was committed, in microseconds since 2000.
    pub(crate) at: i64,
    pub(crate) id: u32,
}

impl Transaction {
    /// Returns the idempotency key of the change at `position`. It is different after a failover to
    /// a server that has lost transactions, even if the position is the same.
    pub(crate) fn key(&self, position: Position) -> String {
        format!("{position}:{}:{}", self.id, self.at)
    }
}

/// A change of a row, or of a table.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) operation: Operation,
    pub(crate) old: Option<Tuple<'a>>,
    pub(crate) new: Option<Tuple<'a>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operation {
    Create,
    Delete,
    Truncate,
    Update,
}

impl Operation {
    /// The letters of Debezium.
    const fn letter(self) -> char {
        match self {
            Self::Create => 'c',
            Self::Delete => 'd',
            Self::Truncate => 't',
            Self::Update => 'u',
        }
    }
}

/// The reason why a change cannot be published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    #[error("{0}")]
    Channel(#[from] linerate_hub::channel::ChannelNameError),
    #[error("table has no column {0}")]
    Missing(String),
    #[error("column {0} is null")]
    Null(String),
    #[error("column {0} is not a JSON object of texts")]
    Tags(String),
    #[error("a TRUNCATE has no value for column {0}, which the channel is named after")]
    Truncated(String),
    #[error("size of {bytes} bytes exceeds row_bytes_max = {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error(
        "column {0} is not sent with this change; run ALTER TABLE … REPLICA IDENTITY FULL, or include the column in the replica identity"
    )]
    Unsent(String),
}

/// The tables of a connection, as the server has described them.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    known: HashMap<u32, (Relation, Option<Arc<TableOptions>>)>,
}

impl Tables {
    /// Adds a table, or replaces it after a change of its columns.
    pub(crate) fn insert(&mut self, relation: Relation, options: &[Arc<TableOptions>]) {
        let name = format!("{}.{}", relation.schema, relation.table);
        let find = |name: &str| options.iter().find(|table| table.table == name);
        let found = find(&name).or_else(|| find(ANY_TABLE)).cloned();
        self.known.insert(relation.id, (relation, found));
    }

    /// Returns a table whose changes are published.
    pub(crate) fn find(&self, id: u32) -> Option<(&Relation, &TableOptions)> {
        let (relation, options) = self.known.get(&id)?;
        Some((relation, options.as_deref()?))
    }
}

/// Converts a change. Returns `None` if it is not to be published. Commits up to `suspect` may have
/// been published by an earlier reader.
pub(crate) fn row(
    (relation, options): (&Relation, &TableOptions),
    change: &Change<'_>,
    transaction: &Transaction,
    position: Position,
    suspect: Lsn,
) -> Result<Option<Row>, RowError> {
    let is_outbox = options.payload.is_some();
    if is_outbox && change.operation != Operation::Create {
        return Ok(None);
    }
    let get = |name: &str| value(relation, change, name);
    let text = |name: &str| {
        let (_, bytes) = get(name)?.ok_or_else(|| RowError::Null(name.to_owned()))?;
        Ok::<_, RowError>(String::from_utf8_lossy(bytes).into_owned())
    };
    let channel = options.channel.fill(text)?;
    let payload = match &options.payload {
        None => envelope(relation, change, transaction),
        Some(name) => {
            let (column, bytes) = get(name)?.ok_or_else(|| RowError::Null(name.clone()))?;
            json::payload(&relation.columns[column], bytes)
        }
    };
    let tags = match &options.tags {
        None => Vec::new(),
        Some(name) => match get(name)? {
            None => Vec::new(),
            Some((_, bytes)) => serde_json::from_slice::<std::collections::BTreeMap<_, _>>(bytes)
                .map_err(|_| RowError::Tags(name.clone()))?
                .into_iter()
                .collect(),
        },
    };
    let key = match &options.key {
        None => None,
        Some(name) => {
            get(name)?.map(|(_, bytes)| format!("key:{}", String::from_utf8_lossy(bytes)))
        }
    };
    Ok(Some(Row {
        channel: ChannelName::new(&channel)?,
        payload: payload.into(),
        tags,
        key: key.unwrap_or_else(|| transaction.key(position)),
        position,
        is_suspect: position.commit <= suspect,
    }))
}

/// Returns the index and the text of a column, from the new values or else from the old ones.
fn value<'a>(
    relation: &Relation,
    change: &Change<'a>,
    name: &str,
) -> Result<Option<(usize, &'a [u8])>, RowError> {
    let columns = &relation.columns;
    let at = columns.iter().position(|column| column.name == name);
    let at = at.ok_or_else(|| RowError::Missing(name.to_owned()))?;
    for tuple in change.new.iter().chain(&change.old) {
        if tuple.is_key && !columns[at].is_key {
            continue;
        }
        match tuple.values.get(at) {
            Some(Value::Text(text)) => return Ok(Some((at, text))),
            Some(Value::Null) => return Ok(None),
            Some(Value::Unchanged) | None => {}
        }
    }
    Err(match change.operation {
        Operation::Truncate => RowError::Truncated(name.to_owned()),
        _ => RowError::Unsent(name.to_owned()),
    })
}

/// Writes a change as Debezium does, without its schema.
fn envelope(relation: &Relation, change: &Change<'_>, transaction: &Transaction) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let head = format!(
        "{{\"op\":\"{}\",\"ts_ms\":{},\"source\":{{\"schema\":",
        change.operation.letter(),
        transaction.at / 1_000 + EPOCH_MS,
    );
    out.extend_from_slice(head.as_bytes());
    json::push_text(relation.schema.as_bytes(), &mut out);
    out.extend_from_slice(b",\"table\":");
    json::push_text(relation.table.as_bytes(), &mut out);
    let rest = format!(
        ",\"lsn\":\"{}\",\"txId\":{}}},\"before\":",
        transaction.commit, transaction.id
    );
    out.extend_from_slice(rest.as_bytes());
    let push = |tuple: &Option<Tuple<'_>>, out: &mut Vec<u8>| match tuple {
        Some(tuple) => json::push_row(&relation.columns, tuple, out),
        None => {
            out.extend_from_slice(b"null");
            Vec::new()
        }
    };
    push(&change.old, &mut out);
    out.extend_from_slice(b",\"after\":");
    let unchanged = push(&change.new, &mut out);
    if !unchanged.is_empty() {
        out.extend_from_slice(b",\"unchanged\":");
        serde_json::to_writer(&mut out, &unchanged).expect("texts can be written to memory");
    }
    out.push(b'}');
    out
}
