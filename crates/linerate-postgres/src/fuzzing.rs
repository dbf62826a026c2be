//! Private parsers, for fuzzers.

use std::{io::Cursor, sync::Arc};

use bytes::BytesMut;
use linerate_source::Template;
use serde_json::Value;
use tokio::{
    io::{join, sink},
    runtime::Builder,
};

use crate::{
    connect::{Connection, Frame, HEAD_BYTES},
    lsn::Lsn,
    options::{ANY_TABLE, TableOptions},
    pgoutput::Message,
    position::Position,
    rows::{Change, Operation, Tables, Transaction, row},
};

/// The limit on messages.
const MESSAGE_BYTES_MAX: usize = 64;

/// Reads `data` as what a server sends after the start of replication, or as decoded messages, each
/// after a byte with its length; its first byte says which.
///
/// # Panics
/// A message is longer than allowed, or a change is published as something that is not JSON.
pub fn postgres(data: &[u8]) {
    match data.split_first() {
        Some((choice, data)) if choice % 2 == 0 => frames(data),
        Some((_, data)) => changes(data),
        None => {}
    }
}

fn frames(data: &[u8]) {
    let socket = join(Cursor::new(data.to_vec()), sink());
    let mut connection = Connection {
        socket: Box::new(socket),
        input: BytesMut::new(),
        output: BytesMut::new(),
        skip: 0,
        message_bytes_max: MESSAGE_BYTES_MAX,
    };
    let runtime = Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without I/O can be built");
    runtime.block_on(async {
        while let Ok(frame) = connection.frame().await {
            match frame {
                Frame::Data(data) => assert!(data.len() <= MESSAGE_BYTES_MAX),
                Frame::Oversized { head, bytes } => {
                    assert!(bytes > MESSAGE_BYTES_MAX && head.len() <= HEAD_BYTES);
                }
            }
        }
    });
}

fn changes(mut data: &[u8]) {
    let options = [None, Some("b")].map(|payload| {
        Arc::new(TableOptions {
            table: payload.map_or("s.a", |_| ANY_TABLE).to_owned(),
            channel: Template::new("c:{a}").expect("the template is valid"),
            payload: payload.map(str::to_owned),
            tags: payload.map(|_| "t".to_owned()),
            key: payload.map(|_| "k".to_owned()),
        })
    });
    let mut tables = Tables::default();
    while let Some((length, rest)) = data.split_first() {
        let (message, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        data = rest;
        let (relation, change) = match Message::decode(message) {
            Ok(Message::Relation(relation)) => {
                tables.insert(relation, &options);
                continue;
            }
            Ok(Message::Insert { relation, new }) => {
                (relation, (Operation::Create, None, Some(new)))
            }
            Ok(Message::Update { relation, old, new }) => {
                (relation, (Operation::Update, old, Some(new)))
            }
            Ok(Message::Delete { relation, old }) => {
                (relation, (Operation::Delete, Some(old), None))
            }
            _ => continue,
        };
        let (operation, old, new) = change;
        let change = Change {
            operation,
            old,
            new,
        };
        let Some(table) = tables.find(relation) else {
            continue;
        };
        let transaction = Transaction {
            commit: Lsn(1),
            at: 0,
            id: 7,
        };
        let position = Position {
            timeline: 1,
            commit: Lsn(1),
            index: 0,
        };
        let row = row(table, &change, &transaction, position, Lsn(0));
        if let (Ok(Some(row)), None) = (row, &table.1.payload) {
            let json = serde_json::from_slice::<Value>(&row.payload);
            json.expect("a change is published as JSON");
        }
    }
}
