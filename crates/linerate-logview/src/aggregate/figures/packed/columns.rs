//! The requests of a report as columns.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::numbers::{self, Reader};
use super::{UnpackError, malformed};
use crate::aggregate::dictionaries::Dictionaries;
use crate::aggregate::dictionary::FIRST;
use crate::query::encoding::STATUSES;
use crate::store::{ADDRESS, AGENT, PATH, Row, TEXTS};

/// The times that a log can have: from two days before 1970 to two days after the year 9999.
const TIMES: std::ops::Range<i64> = -2 * 86_400..253_402_300_800 + 2 * 86_400;

/// Sorts requests so that similar ones are next to each other, within the same time.
pub(super) fn sort(rows: &mut [Row]) {
    rows.sort_unstable_by_key(|row| {
        let [address, agent, host, method, path, referrer] = row.codes;
        let texts = [path, method, referrer, agent, host];
        let numbers = (row.bytes_sent, row.duration);
        (row.time, address, texts, row.status, numbers)
    });
}

/// Rounds the sizes and durations of sorted requests, and sorts them again.
pub(super) fn round(rows: &mut [Row]) {
    for similar in
        rows.chunk_by_mut(|a, b| (a.time, a.codes, a.status) == (b.time, b.codes, b.status))
    {
        let sum: u128 = similar.iter().map(|row| u128::from(row.bytes_sent)).sum();
        let count = similar.len() as u128;
        let (mean, rest) = (sum / count, sum % count);
        for (at, row) in (0..).zip(similar) {
            // At most the largest size, so it fits.
            row.bytes_sent = (mean + u128::from(at < rest)) as u64;
            row.duration = row.duration.map(rounded);
        }
    }
    sort(rows);
}

/// Rounds a number down to its five highest bits.
fn rounded(number: u64) -> u64 {
    let dropped = (u64::BITS - number.leading_zeros()).saturating_sub(5);
    number >> dropped << dropped
}

/// Appends requests, whose times are multiples of `seconds` and in order.
pub(super) fn write(rows: &[Row], seconds: u32, out: &mut Vec<u8>) {
    let mut column = Vec::with_capacity(rows.len());
    let mut write = |number: &mut dyn FnMut(&Row) -> u64, bytes_min, out: &mut Vec<u8>| {
        column.clear();
        column.extend(rows.iter().map(number));
        numbers::write(&column, bytes_min, out);
    };
    let first = rows.first().map_or(0, |row| row.time);
    out.extend(first.to_le_bytes());
    out.extend(seconds.to_le_bytes());
    numbers::write_count(rows.len(), out);
    let mut before = first;
    let mut step = |row: &Row| {
        let step = row.time - std::mem::replace(&mut before, row.time);
        step.unsigned_abs() / u64::from(seconds)
    };
    write(&mut step, 1, out);
    for text in (0..TEXTS.len()).filter(|&text| text != AGENT) {
        write(&mut |row| row.codes[text].into(), 0, out);
    }
    let mut agents = Latest::default();
    let mut agent = |row: &Row| agents.shortened(agent_key(row), row.codes[AGENT].into());
    write(&mut agent, 0, out);
    write(&mut |row| row.status.into(), 0, out);
    let mut sizes = Latest::default();
    write(
        &mut |row| sizes.shortened(size_key(row), row.bytes_sent),
        0,
        out,
    );
    let duration = |row: &Row| row.duration.map_or(0, |it| it.saturating_add(1));
    write(&mut { duration }, 0, out);
}

/// Reads requests whose values are in the dictionaries. Returns the number of seconds of which
/// their times are multiples, and the requests.
pub(super) fn read(
    reader: &mut Reader<'_>,
    dictionaries: &Dictionaries,
) -> Result<(u32, Vec<Row>), UnpackError> {
    let first = i64::from_le_bytes(reader.array()?);
    let time_step_s = u32::from_le_bytes(reader.array()?);
    let seconds = i64::from(time_step_s);
    let steps = reader.counted_numbers()?;
    let count = steps.len();
    let mut rows = Vec::with_capacity(count);
    let mut time = first;
    for step in steps {
        let step = i64::try_from(step).ok();
        let later = step.and_then(|step| time.checked_add(step.checked_mul(seconds)?));
        time = later
            .filter(|time| TIMES.contains(time))
            .ok_or(malformed("a time"))?;
        rows.push(Row {
            time,
            ..Row::default()
        });
    }
    let code_max = |text: usize| dictionaries.of(text).len() + FIRST as usize - 1;
    for text in (0..TEXTS.len()).filter(|&text| text != AGENT) {
        let codes = reader.codes(count, code_max(text))?;
        rows.iter_mut()
            .zip(codes)
            .for_each(|(row, code)| row.codes[text] = code);
    }
    let mut agents = Latest::default();
    for (row, number) in rows.iter_mut().zip(reader.numbers(count)?) {
        let code = u32::try_from(agents.restored(agent_key(row), number)).ok();
        row.codes[AGENT] = code
            .filter(|&code| code as usize <= code_max(AGENT))
            .ok_or(malformed("an agent"))?;
    }
    let statuses = reader.codes(count, STATUSES - 1)?;
    for (row, status) in rows.iter_mut().zip(statuses) {
        row.status = status as u16;
    }
    let mut sizes = Latest::default();
    for (row, number) in rows.iter_mut().zip(reader.numbers(count)?) {
        row.bytes_sent = sizes.restored(size_key(row), number);
    }
    for (row, number) in rows.iter_mut().zip(reader.numbers(count)?) {
        row.duration = number.checked_sub(1);
    }
    Ok((time_step_s, rows))
}

/// A client nearly always has the same agent.
fn agent_key(row: &Row) -> (u32, u16) {
    (row.codes[ADDRESS], 0)
}

/// A file nearly always has the same size.
fn size_key(row: &Row) -> (u32, u16) {
    (row.codes[PATH], row.status)
}

/// The latest number for each key. A number that repeats the latest one of its key becomes 0, and
/// any other one becomes itself plus one.
#[derive(Default)]
struct Latest(HashMap<(u32, u16), u64, RandomState>);

impl Latest {
    /// The highest number, 2^64 - 1, is treated as one less.
    fn shortened(&mut self, key: (u32, u16), number: u64) -> u64 {
        let number = number.min(u64::MAX - 1);
        match self.0.insert(key, number) {
            Some(latest) if latest == number => 0,
            None if number == 0 => 0,
            _ => number + 1,
        }
    }

    fn restored(&mut self, key: (u32, u16), number: u64) -> u64 {
        let latest = self.0.entry(key).or_default();
        if number > 0 {
            *latest = number - 1;
        }
        *latest
    }
}
