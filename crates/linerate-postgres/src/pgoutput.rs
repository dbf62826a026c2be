//! Messages of the output plugin `pgoutput`, protocol version 1 (PostgreSQL documentation, "Logical
//! Replication Message Formats").
//!
//! Decoding allocates only the lists of columns and values, each of which is bounded by the message
//! that it is in.

use bytes::Buf;

use crate::lsn::Lsn;

/// A message. Texts and values refer to the bytes it was decoded from.
#[derive(Debug, PartialEq)]
pub(crate) enum Message<'a> {
    Begin {
        /// Where the transaction was committed.
        commit: Lsn,
        /// When, in microseconds since 2000.
        at: i64,
        transaction: u32,
    },
    Commit {
        /// The end of the transaction in the log.
        end: Lsn,
    },
    Delete {
        relation: u32,
        old: Tuple<'a>,
    },
    Insert {
        relation: u32,
        new: Tuple<'a>,
    },
    /// A message of `pg_logical_emit_message`.
    Logical {
        is_transactional: bool,
        at: Lsn,
        prefix: &'a str,
        content: &'a [u8],
    },
    /// A message that does not concern us: the origin of a transaction, or a type.
    Other,
    Relation(Relation),
    Truncate {
        relations: Vec<u32>,
    },
    Update {
        relation: u32,
        old: Option<Tuple<'a>>,
        new: Tuple<'a>,
    },
}

/// The values of a row, in the order of the columns.
#[derive(Debug, PartialEq)]
pub(crate) struct Tuple<'a> {
    /// True if only the columns of the replica identity have values.
    pub(crate) is_key: bool,
    pub(crate) values: Vec<Value<'a>>,
}

/// A value in a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Text(&'a [u8]),
    /// A large value that the update has not changed, and which the server therefore does not send.
    Unchanged,
}

/// A table, as it is when its changes are sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Relation {
    pub(crate) id: u32,
    pub(crate) schema: String,
    pub(crate) table: String,
    pub(crate) columns: Vec<Column>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The OID of the type.
    pub(crate) type_id: u32,
    /// True if the column is in the replica identity.
    pub(crate) is_key: bool,
}

/// The reason why a message cannot be decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// The message contains a value in a format that was not requested.
    #[error("pgoutput message has a value of kind {kind:#04x}")]
    Kind {
        /// The byte that states the format.
        kind: u8,
    },
    /// The message ends before it is complete.
    #[error("pgoutput message ends early")]
    Short,
    /// The kind of the message is unknown.
    #[error("pgoutput message has unknown type {tag:#04x}")]
    Tag {
        /// The first byte of the message.
        tag: u8,
    },
    /// A name is not UTF-8.
    #[error("pgoutput message has a name that is not UTF-8")]
    Utf8,
}

type Result<T> = std::result::Result<T, DecodeError>;

impl<'a> Message<'a> {
    /// Decodes a message.
    ///
    /// # Errors
    /// Returns an error if the message is malformed.
    pub(crate) fn decode(message: &'a [u8]) -> Result<Self> {
        let mut rest = Reader(message);
        Ok(match rest.u8()? {
            b'B' => Self::Begin {
                commit: rest.lsn()?,
                at: rest.u64()?.cast_signed(),
                transaction: rest.u32()?,
            },
            b'C' => {
                let (_flags, _commit) = (rest.u8()?, rest.lsn()?);
                Self::Commit { end: rest.lsn()? }
            }
            b'D' => {
                let relation = rest.u32()?;
                let is_key = rest.u8()? == b'K';
                let old = rest.tuple(is_key)?;
                Self::Delete { relation, old }
            }
            b'I' => {
                let (relation, _new) = (rest.u32()?, rest.u8()?);
                let new = rest.tuple(false)?;
                Self::Insert { relation, new }
            }
            b'M' => {
                let (flags, at, prefix) = (rest.u8()?, rest.lsn()?, rest.text()?);
                let length = rest.u32()? as usize;
                Self::Logical {
                    is_transactional: flags & 1 == 1,
                    at,
                    prefix,
                    content: rest.bytes(length)?,
                }
            }
            b'O' | b'Y' => Self::Other,
            b'R' => Self::Relation(rest.relation()?),
            b'T' => {
                let (count, _options) = (rest.u32()?, rest.u8()?);
                let relations = (0..count).map(|_| rest.u32());
                let relations = relations.collect::<Result<_>>()?;
                Self::Truncate { relations }
            }
            b'U' => {
                let (relation, kind) = (rest.u32()?, rest.u8()?);
                let old = match kind {
                    b'N' => None,
                    _ => Some(rest.tuple(kind == b'K')?),
                };
                if old.is_some() {
                    rest.u8()?;
                }
                let new = rest.tuple(false)?;
                Self::Update { relation, old, new }
            }
            tag => return Err(DecodeError::Tag { tag }),
        })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn u8(&mut self) -> Result<u8> {
        self.0.try_get_u8().map_err(|_| DecodeError::Short)
    }

    fn u16(&mut self) -> Result<u16> {
        self.0.try_get_u16().map_err(|_| DecodeError::Short)
    }

    fn u32(&mut self) -> Result<u32> {
        self.0.try_get_u32().map_err(|_| DecodeError::Short)
    }

    fn u64(&mut self) -> Result<u64> {
        self.0.try_get_u64().map_err(|_| DecodeError::Short)
    }

    fn lsn(&mut self) -> Result<Lsn> {
        self.u64().map(Lsn)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Reads a text that ends with a zero byte.
    fn text(&mut self) -> Result<&'a str> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = self.bytes(end.ok_or(DecodeError::Short)?)?;
        self.u8()?;
        std::str::from_utf8(text).map_err(|_| DecodeError::Utf8)
    }

    fn tuple(&mut self, is_key: bool) -> Result<Tuple<'a>> {
        let count = self.u16()?;
        let values = (0..count).map(|_| self.value()).collect::<Result<_>>()?;
        Ok(Tuple { is_key, values })
    }

    fn value(&mut self) -> Result<Value<'a>> {
        Ok(match self.u8()? {
            b'n' => Value::Null,
            b't' => {
                let length = self.u32()? as usize;
                Value::Text(self.bytes(length)?)
            }
            b'u' => Value::Unchanged,
            kind => return Err(DecodeError::Kind { kind }),
        })
    }

    fn relation(&mut self) -> Result<Relation> {
        let id = self.u32()?;
        let (schema, table) = (self.text()?, self.text()?);
        let (_identity, count) = (self.u8()?, self.u16()?);
        let columns = (0..count).map(|_| self.column()).collect::<Result<_>>()?;
        Ok(Relation {
            id,
            schema: schema.to_owned(),
            table: table.to_owned(),
            columns,
        })
    }

    fn column(&mut self) -> Result<Column> {
        let (flags, name) = (self.u8()?, self.text()?);
        let (type_id, _modifier) = (self.u32()?, self.u32()?);
        Ok(Column {
            name: name.to_owned(),
            type_id,
            is_key: flags & 1 == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, DecodeError, Lsn, Message, Relation, Tuple, Value};

    /// Each message, as a server sends it, and what it says.
    fn messages() -> Vec<(&'static [u8], Message<'static>)> {
        let tuple = |is_key, values: &[Value<'static>]| Tuple {
            is_key,
            values: values.to_vec(),
        };
        vec![
            (
                b"B\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x07\0\0\x02\xE5",
                Message::Begin {
                    commit: Lsn(0x20),
                    at: 7,
                    transaction: 741,
                },
            ),
            (
                b"C\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x30\0\0\0\0\0\0\0\x07",
                Message::Commit { end: Lsn(0x30) },
            ),
            (
                b"R\0\0\0\x09public\0t\0d\0\x01\x01id\0\0\0\0\x17\xff\xff\xff\xff",
                Message::Relation(Relation {
                    id: 9,
                    schema: "public".into(),
                    table: "t".into(),
                    columns: vec![Column {
                        name: "id".into(),
                        type_id: 23,
                        is_key: true,
                    }],
                }),
            ),
            (
                b"I\0\0\0\x09N\0\x02t\0\0\0\x0242n",
                Message::Insert {
                    relation: 9,
                    new: tuple(false, &[Value::Text(b"42"), Value::Null]),
                },
            ),
            (
                b"U\0\0\0\x09N\0\x01u",
                Message::Update {
                    relation: 9,
                    old: None,
                    new: tuple(false, &[Value::Unchanged]),
                },
            ),
            (
                b"U\0\0\0\x09K\0\x01nN\0\x01u",
                Message::Update {
                    relation: 9,
                    old: Some(tuple(true, &[Value::Null])),
                    new: tuple(false, &[Value::Unchanged]),
                },
            ),
            (
                b"D\0\0\0\x09O\0\x01t\0\0\0\x011",
                Message::Delete {
                    relation: 9,
                    old: tuple(false, &[Value::Text(b"1")]),
                },
            ),
            (
                b"T\0\0\0\x02\0\0\0\0\x09\0\0\0\x0A",
                Message::Truncate {
                    relations: vec![9, 10],
                },
            ),
            (
                b"M\x01\0\0\0\0\0\0\0\x11linerate:news\0\0\0\0\x02hi",
                Message::Logical {
                    is_transactional: true,
                    at: Lsn(0x11),
                    prefix: "linerate:news",
                    content: b"hi",
                },
            ),
        ]
    }

    #[test]
    fn each_message_is_decoded() {
        for (bytes, message) in messages() {
            assert_eq!(Message::decode(bytes), Ok(message));
        }
        assert_eq!(Message::decode(b"Y\0\0\0\x09"), Ok(Message::Other));
    }

    #[test]
    fn each_message_that_ends_early_is_an_error() {
        for (bytes, _) in messages() {
            for end in 0..bytes.len() {
                // The time at the end of a commit is not read.
                let is_complete = bytes[0] == b'C' && end >= 18;
                let decoded = Message::decode(&bytes[..end]);
                assert_eq!(decoded.is_err(), !is_complete, "{bytes:?} {end}");
            }
        }
    }

    #[test]
    fn counts_and_lengths_that_the_message_does_not_have_are_errors() {
        let short = Err(DecodeError::Short);
        assert_eq!(Message::decode(b"T\xff\xff\xff\xff\0\0\0\0\x09"), short);
        assert_eq!(Message::decode(b"I\0\0\0\x09N\xff\xffn"), short);
        assert_eq!(
            Message::decode(b"I\0\0\0\x09N\0\x01t\xff\xff\xff\xffx"),
            short
        );
        let kind = DecodeError::Kind { kind: b'b' };
        assert_eq!(Message::decode(b"I\0\0\0\x09N\0\x01b"), Err(kind));
        let tag = DecodeError::Tag { tag: b'S' };
        assert_eq!(Message::decode(b"S"), Err(tag));
        assert_eq!(
            Message::decode(b"M\0\0\0\0\0\0\0\0\0\xff\0"),
            Err(DecodeError::Utf8)
        );
    }
}
