//! A few thousand requests stored in columns.

use super::bits;
use crate::query::Field;
use crate::query::encoding::{from_time, to_time};

/// The number of requests in a block: few enough that their times and sizes are similar, but so
/// many that the block header does not matter.
pub(crate) const ROWS_MAX: usize = 4_096;

/// The number of columns: those of [`TEXTS`], and four more.
pub(crate) const COLUMNS: usize = TEXTS.len() + 4;
pub(crate) const BYTES_SENT: usize = TEXTS.len();
/// The duration plus one, or 0 if there is none.
pub(crate) const DURATION: usize = TEXTS.len() + 1;
pub(crate) const STATUS: usize = TEXTS.len() + 2;
/// Offset so that unsigned numbers have the order of the times.
pub(crate) const TIME: usize = TEXTS.len() + 3;

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

/// Requests in columns.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    columns: [Column; COLUMNS],
    rows: usize,
    /// True if times never decrease. The column then stores the difference of each to the previous
    /// one.
    times_rise: bool,
    /// The packed columns, one after the other. Empty if they are in a file.
    packed: Box<[u8]>,
    /// Where they are, if they are in a file.
    spilled: Option<Extent>,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Extent {
    pub(crate) at: u64,
    pub(crate) bytes: usize,
}

/// The position and the range of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Column {
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
    start: u32,
    width: u32,
}

impl Block {
    /// Packs up to [`ROWS_MAX`] requests, using `packed` as a buffer.
    ///
    /// A block keeps a copy of exactly the size that it needs, because with some allocators a list
    /// that has grown keeps all of its memory even when it is shrunk.
    pub(crate) fn new(rows: &[Row], packed: &mut Vec<u8>) -> Self {
        let mut block = Self {
            columns: [Column::default(); COLUMNS],
            rows: rows.len(),
            times_rise: rows.is_sorted_by_key(|row| row.time),
            packed: Box::default(),
            spilled: None,
        };
        packed.clear();
        for text in 0..TEXTS.len() {
            block.columns[text] = pack(rows, |row| row.codes[text].into(), packed);
        }
        block.columns[BYTES_SENT] = pack(rows, |row| row.bytes_sent, packed);
        block.columns[DURATION] = pack(rows, duration, packed);
        block.columns[STATUS] = pack(rows, |row| row.status.into(), packed);
        block.columns[TIME] = match block.times_rise {
            true => pack_rising(rows, packed),
            false => pack(rows, |row| from_time(row.time), packed),
        };
        block.packed = packed.as_slice().into();
        block
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns how many bytes of heap the block holds.
    pub(crate) fn bytes(&self) -> usize {
        self.packed.len()
    }

    /// Returns where the packed columns are, if they are in a file.
    pub(crate) fn spilled(&self) -> Option<Extent> {
        self.spilled
    }

    /// Returns the packed columns.
    pub(crate) fn content(&self) -> &[u8] {
        &self.packed
    }

    /// Drops the packed columns, which were written to a file at `at`.
    pub(crate) fn unload(&mut self, at: u64) {
        let bytes = std::mem::take(&mut self.packed).len();
        self.spilled = Some(Extent { at, bytes });
    }

    /// Returns the block with the packed columns that were read from the file.
    pub(crate) fn with_content(&self, packed: Box<[u8]>) -> Self {
        Self {
            packed,
            spilled: None,
            ..*self
        }
    }

    pub(crate) fn column(&self, column: usize) -> &Column {
        &self.columns[column]
    }

    /// Returns the earliest and the latest time.
    pub(crate) fn times(&self) -> (i64, i64) {
        let time = &self.columns[TIME];
        (to_time(time.lowest), to_time(time.highest))
    }

    /// Reads all numbers of a column into a list. They must be below 2^32.
    pub(crate) fn read_codes(&self, column: usize, into: &mut Vec<u32>) {
        let Column { lowest, width, .. } = self.columns[column];
        into.clear();
        bits::for_each(self.packed(column), width, self.rows, |number| {
            into.push((lowest + number) as u32);
        });
    }

    /// Reads all numbers of a column into a list.
    pub(crate) fn read_numbers(&self, column: usize, into: &mut Vec<u64>) {
        let Column { lowest, width, .. } = self.columns[column];
        let are_steps = column == TIME && self.times_rise;
        into.clear();
        let mut before = lowest;
        bits::for_each(self.packed(column), width, self.rows, |number| {
            before = if are_steps { before } else { lowest } + number;
            into.push(before);
        });
    }

    /// Reads all times into a list.
    pub(crate) fn read_times(&self, into: &mut Vec<i64>) {
        let Column { lowest, width, .. } = self.columns[TIME];
        into.clear();
        let mut time = lowest;
        bits::for_each(self.packed(TIME), width, self.rows, |number| {
            time = if self.times_rise { time } else { lowest } + number;
            into.push(to_time(time));
        });
    }

    /// Reads all requests into a list, column by column, which is faster than one by one.
    pub(crate) fn read_rows(&self, times: &[i64], into: &mut Vec<Row>) {
        into.clear();
        into.extend(times.iter().map(|&time| Row {
            time,
            ..Row::default()
        }));
        for text in 0..TEXTS.len() {
            self.read(text, into, |row, number| row.codes[text] = number as u32);
        }
        self.read(BYTES_SENT, into, |row, number| row.bytes_sent = number);
        self.read(DURATION, into, |row, number| {
            row.duration = number.checked_sub(1);
        });
        self.read(STATUS, into, |row, number| row.status = number as u16);
    }

    /// Returns a request whose time is known.
    #[inline]
    pub(crate) fn row_at(&self, at: usize, time: i64) -> Row {
        Row {
            time,
            bytes_sent: self.number(BYTES_SENT, at),
            duration: self.number(DURATION, at).checked_sub(1),
            codes: std::array::from_fn(|text| self.number(text, at) as u32),
            status: self.number(STATUS, at) as u16,
        }
    }

    /// Returns a request.
    #[cfg(test)]
    pub(crate) fn row(&self, at: usize) -> Row {
        let mut times = Vec::new();
        self.read_times(&mut times);
        self.row_at(at, times[at])
    }

    #[inline]
    fn read(&self, column: usize, rows: &mut [Row], put: impl Fn(&mut Row, u64)) {
        let Column { lowest, width, .. } = self.columns[column];
        let mut rows = rows.iter_mut();
        bits::for_each(self.packed(column), width, self.rows, |number| {
            if let Some(row) = rows.next() {
                put(row, lowest + number);
            }
        });
    }

    #[inline]
    fn number(&self, column: usize, at: usize) -> u64 {
        let Column { lowest, width, .. } = self.columns[column];
        lowest + bits::get(self.packed(column), width, at)
    }

    #[inline]
    fn packed(&self, column: usize) -> &[u8] {
        &self.packed[self.columns[column].start as usize..]
    }
}

/// Appends the difference of each number of a column to the lowest one.
#[inline]
fn pack(rows: &[Row], number: impl Fn(&Row) -> u64, packed: &mut Vec<u8>) -> Column {
    let (mut lowest, mut highest) = (u64::MAX, 0);
    for row in rows {
        let number = number(row);
        lowest = lowest.min(number);
        highest = highest.max(number);
    }
    let width = bits::width(highest.saturating_sub(lowest));
    let start = packed.len() as u32;
    let numbers = rows.iter().map(|row| number(row) - lowest);
    bits::pack(numbers, width, packed);
    Column {
        lowest,
        highest,
        start,
        width,
    }
}

/// Appends the difference of each time to the previous one.
fn pack_rising(rows: &[Row], packed: &mut Vec<u8>) -> Column {
    let times = || rows.iter().map(|row| from_time(row.time));
    let first = times().next().unwrap_or(0);
    let steps = || {
        times().scan(first, |before, time| {
            Some(time - std::mem::replace(before, time))
        })
    };
    let width = bits::width(steps().max().unwrap_or(0));
    let start = packed.len() as u32;
    bits::pack(steps(), width, packed);
    Column {
        lowest: first,
        highest: times().next_back().unwrap_or(0),
        start,
        width,
    }
}

fn duration(row: &Row) -> u64 {
    row.duration
        .map_or(0, |duration| duration.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Block;
    use crate::store::{ADDRESS, Row};

    fn any_row() -> impl Strategy<Value = Row> {
        let durations = prop::option::of(0..u64::MAX);
        (
            any::<i64>(),
            any::<u64>(),
            durations,
            any::<[u32; 6]>(),
            0u16..1_000,
        )
            .prop_map(|(time, bytes_sent, duration, codes, status)| Row {
                time,
                bytes_sent,
                duration,
                codes,
                status,
            })
    }

    proptest! {
        #[test]
        fn any_rows_survive_the_round_trip(mut rows in prop::collection::vec(any_row(), 1..50), sorted: bool) {
            if sorted {
                rows.sort_by_key(|row| row.time);
            }
            let block = Block::new(&rows, &mut Vec::new());
            let (mut codes, mut times, mut all) = (Vec::new(), Vec::new(), Vec::new());
            block.read_codes(ADDRESS, &mut codes);
            block.read_times(&mut times);
            block.read_rows(&times, &mut all);
            prop_assert_eq!(&all, &rows);
            for (at, row) in rows.iter().enumerate() {
                prop_assert_eq!(block.row(at), *row);
                prop_assert_eq!(codes[at], row.codes[ADDRESS]);
            }
            let first = rows.iter().map(|row| row.time).min().unwrap();
            let last = rows.iter().map(|row| row.time).max().unwrap();
            prop_assert_eq!(block.times(), (first, last));
        }
    }

    #[test]
    fn equal_rows_take_no_bytes() {
        let block = Block::new(&[Row::default(); 100], &mut Vec::new());
        assert_eq!(block.bytes(), 0);
        assert_eq!(block.row(99), Row::default());
    }

    #[test]
    fn rising_times_take_the_bits_of_their_differences() {
        let rows: Vec<Row> = (0..1_000)
            .map(|n| Row {
                time: 1_611_280_000 + n,
                ..Row::default()
            })
            .collect();
        assert_eq!(Block::new(&rows, &mut Vec::new()).bytes(), 1_000 / 8 + 8);
    }
}
