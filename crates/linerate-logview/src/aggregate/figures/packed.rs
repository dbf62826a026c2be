//! What queries need of a log, packed into bytes for a report that is opened later.
//!
//! All requests are kept, but not their order within the same time, their lines, or the lines that
//! are not requests. The bytes are not compressed yet, but in an order that compresses well.

use thiserror::Error;

use super::Figures;
use crate::aggregate::agent_names::AgentNames;
use crate::aggregate::country_codes::CountryCodes;
use crate::aggregate::dictionaries::Dictionaries;
use crate::aggregate::dictionary::{Dictionary, FIRST, NONE, OTHER};
use crate::aggregate::limits::Limits;
use crate::aggregate::samples::Samples;
use crate::aggregate::tallies::Tallies;
use crate::aggregate::timeline::Timeline;
use crate::query::QueryError;
use crate::store::{ADDRESS, AGENT, LineStore, Row, Store, TEXTS};
use numbers::Reader;

mod columns;
mod numbers;

const MAGIC: [u8; 8] = *b"lrpack1\n";

/// The most requests that are packed: a browser examines them in a fraction of a second.
pub const PACKED_REQUESTS_MAX: u64 = 4_000_000;

/// How many requests are counted at a time.
const COUNTED_MAX: usize = 256;

/// How exactly requests are packed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Detail {
    /// Times are rounded down to multiples of this many seconds. Values below 1 count as 1.
    pub seconds: u32,
    /// The most values of each field that can be told apart: the most frequent ones.
    pub values_max: usize,
    /// True if sizes and durations are less exact: requests with the same time, values and status
    /// get their mean size, so that sums stay exact, and durations are rounded down by up to 6 %.
    pub rounds_numbers: bool,
}

/// Why a log cannot be packed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PackError {
    /// It cannot be queried.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// It has too many requests.
    #[error("the log has {requests} requests; at most {PACKED_REQUESTS_MAX} can be packed")]
    TooManyRequests {
        /// How many it has.
        requests: u64,
    },
}

/// Why bytes are not a packed log.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum UnpackError {
    /// A part is not what it must be.
    #[error("{what} of the packed log is invalid")]
    Malformed {
        /// The part.
        what: &'static str,
    },
    /// The bytes end early.
    #[error("the packed log is truncated")]
    Truncated,
    /// They were packed by another version, or are something else.
    #[error("not a packed log of this version")]
    Version,
}

fn malformed(what: &'static str) -> UnpackError {
    UnpackError::Malformed { what }
}

/// The values of a field that are packed.
struct Chosen<'a> {
    dictionary: &'a Dictionary,
    /// Their codes in the log, the most frequent value first.
    codes: Vec<u32>,
    /// Their packed codes, by their codes in the log.
    packed: Vec<u32>,
}

impl<'a> Chosen<'a> {
    fn values(&self) -> impl Iterator<Item = &'a [u8]> + Clone {
        let dictionary = self.dictionary;
        self.codes.iter().map(move |&code| dictionary.value(code))
    }
}

impl Figures {
    /// Packs the requests that are stored.
    ///
    /// # Errors
    /// Returns an error if the log cannot be queried or has too many requests.
    pub(in crate::aggregate) fn pack(&self, detail: Detail) -> Result<Vec<u8>, PackError> {
        if let Some(error) = self.refusal() {
            return Err(error.into());
        }
        let stored = self.store.stored();
        let requests = stored.end - stored.start;
        if requests > PACKED_REQUESTS_MAX {
            return Err(PackError::TooManyRequests { requests });
        }
        let chosen: [_; TEXTS.len()] =
            std::array::from_fn(|text| self.chosen(text, detail.values_max));
        let seconds = detail.seconds.max(1);
        let mut rows = self.packed_rows(&chosen, seconds)?;
        columns::sort(&mut rows);
        if detail.rounds_numbers {
            columns::round(&mut rows);
        }

        let mut out = MAGIC.to_vec();
        for chosen in &chosen {
            numbers::write_texts(chosen.values(), &mut out);
        }
        for names in [&self.bots, &self.browsers, &self.systems] {
            let (names, codes) = names.of(chosen[AGENT].values());
            write_named(&names, codes.into_iter(), &mut out);
        }
        out.push(self.countries.is_some().into());
        if let Some(countries) = &self.countries {
            let addresses = chosen[ADDRESS].codes.iter();
            let codes = addresses.map(|&address| countries.code_of(address));
            write_named(countries.codes(), codes, &mut out);
            let names = countries.names();
            let texts = countries.codes().values().map(|code| {
                let name = str::from_utf8(code).ok().and_then(|code| names.get(code));
                name.map_or(&b""[..], |name| name.as_bytes())
            });
            numbers::write_texts(texts.collect::<Vec<_>>().into_iter(), &mut out);
        }
        columns::write(&rows, seconds, &mut out);
        Ok(out)
    }

    /// Returns what queries need, without the lines and counts of what is not a request. Uses
    /// memory in proportion to the length of `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a packed log.
    pub(in crate::aggregate) fn unpack(bytes: &[u8]) -> Result<Self, UnpackError> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(MAGIC.len()) != Ok(&MAGIC) {
            return Err(UnpackError::Version);
        }
        let mut dictionaries = Dictionaries::unlimited();
        for text in 0..TEXTS.len() {
            *dictionaries.of_mut(text) = reader.dictionary()?;
        }
        let agents = dictionaries.of(AGENT).len();
        let mut names = || {
            let (names, by_agent) = read_named(&mut reader, agents)?;
            Ok(AgentNames::of_known(names, by_agent))
        };
        let (bots, browsers, systems) = (names()?, names()?, names()?);
        let countries = match reader.array()? {
            [0] => None,
            _ => {
                let addresses = dictionaries.of(ADDRESS).len();
                let (codes, by_address) = read_named(&mut reader, addresses)?;
                let names = reader.texts()?.into_iter();
                let names: Vec<_> = names
                    .map(|name| String::from_utf8_lossy(name).into_owned())
                    .collect();
                if names.len() != codes.len() {
                    return Err(malformed("a country"));
                }
                Some(CountryCodes::of_known(codes, names, by_address))
            }
        };
        let (time_step_s, rows) = columns::read(&mut reader, &dictionaries)?;
        reader.finish()?;

        let limits = Limits::default();
        let timeline = Timeline::new(limits.timeline_buckets_max);
        let mut figures = Self {
            blank: 0,
            samples: Samples::new(0, 0),
            dictionaries,
            bots,
            browsers,
            systems,
            countries,
            tallies: Tallies::new(timeline, limits.minutes_max),
            store: Store::new(usize::MAX, false, None),
            lines: LineStore::new(0),
            limits,
            time_step_s,
            fresh: Vec::new(),
        };
        for rows in rows.chunks(COUNTED_MAX) {
            figures.tallies.count_all(rows);
            figures.store.extend(rows);
        }
        Ok(figures)
    }

    /// Chooses the most frequent values of a field.
    fn chosen(&self, text: usize, values_max: usize) -> Chosen<'_> {
        let dictionary = self.dictionaries.of(text);
        let tallies = &self.tallies.by_code[text];
        let requests = |code: u32| tallies.get(code as usize).map_or(0, |it| it.requests);
        let mut codes: Vec<u32> = (FIRST..).take(dictionary.len()).collect();
        codes.sort_by_key(|&code| std::cmp::Reverse(requests(code)));
        codes.truncate(values_max);
        let mut packed = vec![OTHER; dictionary.len() + FIRST as usize];
        packed[NONE as usize] = NONE;
        for (at, &code) in (FIRST..).zip(&codes) {
            packed[code as usize] = at;
        }
        Chosen {
            dictionary,
            codes,
            packed,
        }
    }

    fn packed_rows(&self, chosen: &[Chosen<'_>], seconds: u32) -> Result<Vec<Row>, QueryError> {
        let mut all = Vec::new();
        let (mut times, mut rows) = (Vec::new(), Vec::new());
        let seconds = i64::from(seconds);
        for block in self.store.blocks() {
            let block = self.store.load(block);
            let block = block.map_err(QueryError::SpillUnreadable)?;
            block.read_times(&mut times);
            block.read_rows(&times, &mut rows);
            for row in &mut rows {
                row.time = row.time.div_euclid(seconds).saturating_mul(seconds);
                for (code, chosen) in row.codes.iter_mut().zip(chosen) {
                    *code = chosen.packed[*code as usize];
                }
            }
            all.extend_from_slice(&rows);
        }
        Ok(all)
    }
}

/// Appends names, and which of them each value has.
fn write_named(names: &Dictionary, codes: impl Iterator<Item = u32>, out: &mut Vec<u8>) {
    numbers::write_texts(names.values().collect::<Vec<_>>().into_iter(), out);
    let codes: Vec<u64> = codes.map(u64::from).collect();
    numbers::write(&codes, 0, out);
}

/// Reads names, and which of them each of `count` values has.
fn read_named(
    reader: &mut Reader<'_>,
    count: usize,
) -> Result<(Dictionary, Vec<u32>), UnpackError> {
    let names = reader.dictionary()?;
    let codes = reader.codes(count, names.len() + FIRST as usize - 1)?;
    match codes.contains(&OTHER) {
        true => Err(malformed("a name")),
        false => Ok((names, codes)),
    }
}
