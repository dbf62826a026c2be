//! A request as it is counted and stored, with codes for values.

use crate::query::Field;

/// The string fields of every line, in the order of their codes in a row.
pub(crate) const TEXTS: [Field; 6] = [
    Field::Address,
    Field::Agent,
    Field::Host,
    Field::Method,
    Field::Path,
    Field::Referrer,
];

pub(crate) const ADDRESS: usize = 0;
pub(crate) const AGENT: usize = 1;
pub(crate) const HOST: usize = 2;
pub(crate) const METHOD: usize = 3;
pub(crate) const PATH: usize = 4;
pub(crate) const REFERRER: usize = 5;

/// A request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Row {
    pub(crate) time: i64,
    pub(crate) bytes_sent: u64,
    /// In microseconds.
    pub(crate) duration: Option<u64>,
    /// The codes of the values, in the order of [`TEXTS`].
    pub(crate) codes: [u32; TEXTS.len()],
    pub(crate) status: u16,
}
