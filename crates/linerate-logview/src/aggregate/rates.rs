//! The search for clients that exceed a limit of requests.
//!
//! The first pass over the requests counts those of each client. Then the times of as many keys as
//! fit into memory are gathered and sorted, in as many passes as that takes, because requests are
//! in the order of the log. A key with more requests than that is counted by seconds instead, in
//! several passes if its requests are spread over a long time.

mod keys;
mod report;

use std::ops::Range;

use super::dictionaries::Dictionaries;
use super::dictionary::{FIRST, NONE};
use super::filter::Filter;
use super::scan::{scan, scan_codes};
use crate::aggregate::agent_names::AgentNames;
use crate::asns::Asns;
use crate::query::{QueryError, RateQuery};
use crate::rate::curve::Curve;
use crate::rate::people::{Behaviour, Kind, kind};
use crate::rate::window::{Excess, Window};
use crate::spill::SpillError;
use crate::store::{AGENT, BLOCK_ROWS, PATH, Row, Store};
use keys::Keys;

/// How many requests a step examines: some milliseconds of work.
const STEP_ROWS: u64 = 64 * BLOCK_ROWS as u64;

/// How much a search keeps in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateSizes {
    /// The most times that are gathered.
    pub(super) times_max: usize,
    /// The number of seconds whose requests are counted at once, for keys with more.
    pub(super) seconds_max: usize,
}

impl Default for RateSizes {
    /// 32 MiB and 8 MiB.
    fn default() -> Self {
        Self {
            times_max: 4 << 20,
            seconds_max: 2 << 20,
        }
    }
}

/// What a search needs to know about a log.
#[derive(Clone, Copy)]
pub(super) struct RateSource<'a> {
    pub(super) dictionaries: &'a Dictionaries,
    pub(super) browsers: &'a AgentNames,
    pub(super) asns: Option<&'a Asns>,
}

/// A search under way. It covers the requests that were stored when it began.
#[derive(Debug)]
pub(super) struct RateSearch {
    query: RateQuery,
    top_max: usize,
    sizes: RateSizes,
    filter: Filter,
    stored: Range<u64>,
    /// The requests that this pass has not examined.
    rest: Range<u64>,
    examined: u64,
    keys: Keys,
    /// The requests of each key, once the first pass has ended.
    totals: Vec<Totals>,
    without_key: u64,
    pass: Pass,
    window: Window,
    curve: Curve,
    /// The keys that exceed the limit.
    excesses: Vec<(u32, Excess)>,
}

/// What is known about a key.
#[derive(Clone, Copy, Debug)]
struct Totals {
    requests: u64,
    errors: u64,
    programs: u64,
    first: i64,
    looks_like_people: bool,
}

#[derive(Debug)]
enum Pass {
    Clients(Clients),
    Done,
    Gather(Gathered),
    /// Counts the gathered times of keys, from this key on, which begin at this offset.
    Evaluate(Gathered, u32, usize),
    Seconds(Seconds),
}

/// The requests of values, by their codes from [`FIRST`].
#[derive(Debug)]
struct Clients {
    clients: Vec<(Behaviour, i64)>,
    /// By the codes of paths and of agents.
    kinds: Vec<Kind>,
    are_programs: Vec<bool>,
}

/// The times of the requests of some keys, one key after the other.
#[derive(Debug)]
struct Gathered {
    keys: Range<u32>,
    times: Vec<i64>,
    /// Where the times of each key end so far.
    ends: Vec<usize>,
}

/// The requests of one key in each second from `start` on.
#[derive(Debug)]
struct Seconds {
    key: u32,
    start: i64,
    counts: Vec<u32>,
    /// The first request of the key after these seconds.
    next: Option<i64>,
}

impl RateSearch {
    pub(super) fn new(
        query: RateQuery,
        top_max: usize,
        filter: Filter,
        stored: Range<u64>,
        source: RateSource<'_>,
        sizes: RateSizes,
    ) -> Result<Self, QueryError> {
        let keys = Keys::new(query.by, source.dictionaries, source.asns)?;
        let clients = Clients::new(keys.codes(), source);
        Ok(Self {
            query,
            top_max,
            sizes,
            filter,
            rest: stored.clone(),
            stored,
            examined: 0,
            keys,
            totals: Vec::new(),
            without_key: 0,
            pass: Pass::Clients(clients),
            window: Window::new(query.limit),
            curve: Curve::new(query.limit),
            excesses: Vec::new(),
        })
    }

    /// Examines some more requests. Returns true once the search is complete.
    pub(super) fn step(&mut self, store: &Store) -> Result<bool, SpillError> {
        let end = self.rest.end.min(self.rest.start.saturating_add(STEP_ROWS));
        let step = self.rest.start..end;
        self.rest.start = end;
        self.examined += step.end - step.start;
        let is_last = self.rest.is_empty();
        match std::mem::replace(&mut self.pass, Pass::Done) {
            Pass::Clients(mut clients) => {
                scan(store, &self.filter, step, |_, row| {
                    clients.count(row, &self.keys, &mut self.without_key);
                })?;
                if is_last {
                    self.totals = clients.totals(&self.keys);
                    self.begin(0);
                } else {
                    self.pass = Pass::Clients(clients);
                }
            }
            Pass::Done => return Ok(true),
            Pass::Gather(mut gathered) => {
                let (keys, column) = (&self.keys, self.keys.column);
                scan_codes(store, &self.filter, step, column, |code, time| {
                    if let Some(key) = keys.of(code) {
                        gathered.add(key, time);
                    }
                })?;
                let first = gathered.keys.start;
                self.pass = match is_last {
                    true => Pass::Evaluate(gathered, first, 0),
                    false => Pass::Gather(gathered),
                };
            }
            Pass::Evaluate(gathered, key, at) => self.evaluate(gathered, key, at),
            Pass::Seconds(mut seconds) => {
                // Those before have been counted.
                let from = std::mem::replace(&mut self.filter.from, seconds.start);
                let (keys, column) = (&self.keys, self.keys.column);
                let scanned = scan_codes(store, &self.filter, step, column, |code, time| {
                    if keys.of(code) == Some(seconds.key) {
                        seconds.add(time);
                    }
                });
                self.filter.from = from;
                scanned?;
                match is_last {
                    true => self.count_seconds(seconds),
                    false => self.pass = Pass::Seconds(seconds),
                }
            }
        }
        Ok(matches!(self.pass, Pass::Done))
    }

    /// Returns about which share of the work is done, 0 to 1.
    pub(super) fn fraction(&self) -> f64 {
        let rows = self.stored.end - self.stored.start;
        let passes = 1 + rows.div_ceil(self.sizes.times_max as u64);
        match rows * passes {
            0 => 1.0,
            all => (self.examined as f64 / all as f64).min(1.0),
        }
    }

    /// Returns approximately how many bytes of heap the search holds.
    pub(super) fn memory_bytes(&self) -> usize {
        let pass = match &self.pass {
            Pass::Clients(clients) => {
                clients.clients.capacity() * size_of::<(Behaviour, i64)>()
                    + clients.kinds.capacity()
                    + clients.are_programs.capacity()
            }
            Pass::Done => 0,
            Pass::Evaluate(gathered, ..) | Pass::Gather(gathered) => {
                gathered.times.capacity() * size_of::<i64>()
                    + gathered.ends.capacity() * size_of::<usize>()
            }
            Pass::Seconds(seconds) => seconds.counts.capacity() * size_of::<u32>(),
        };
        pass + self.filter.memory_bytes()
            + self.keys.memory_bytes()
            + self.totals.capacity() * size_of::<Totals>()
            + self.window.memory_bytes()
            + self.curve.memory_bytes()
            + self.excesses.capacity() * size_of::<(u32, Excess)>()
    }

    /// Begins to count the keys from this one on.
    fn begin(&mut self, first: u32) {
        self.rest = self.stored.clone();
        self.window.clear();
        let Some(of_first) = self.totals.get(first as usize) else {
            self.pass = Pass::Done;
            return;
        };
        let times_max = self.sizes.times_max as u64;
        self.pass = if of_first.requests > times_max {
            Pass::Seconds(Seconds {
                key: first,
                start: of_first.first,
                counts: vec![0; self.sizes.seconds_max],
                next: None,
            })
        } else {
            Pass::Gather(Gathered::new(first, &self.totals, times_max))
        };
    }

    /// Counts the gathered times of some keys.
    fn evaluate(&mut self, mut gathered: Gathered, mut key: u32, mut at: usize) {
        let mut room = STEP_ROWS as usize;
        while key < gathered.keys.end && room > 0 {
            let totals = self.totals[key as usize];
            let end = gathered.ends[(key - gathered.keys.start) as usize];
            let times = &mut gathered.times[at..end];
            times.sort_unstable();
            let is_people = totals.looks_like_people;
            self.window.count_all(times, is_people, &mut self.curve);
            self.end_key(key);
            room = room.saturating_sub(times.len() + 1);
            at += totals.requests as usize;
            key += 1;
        }
        if key < gathered.keys.end {
            self.pass = Pass::Evaluate(gathered, key, at);
        } else {
            // Its memory is free before the next keys need some.
            drop(gathered);
            self.begin(key);
        }
    }

    /// Counts the requests of some seconds of one key.
    fn count_seconds(&mut self, mut seconds: Seconds) {
        let key = seconds.key;
        let is_people = self.totals[key as usize].looks_like_people;
        for (second, count) in (0..).zip(&mut seconds.counts) {
            let count = u64::from(std::mem::take(count));
            if count > 0 {
                let before = self
                    .window
                    .count(seconds.start.saturating_add(second), count);
                self.curve.count(is_people, before, before + count);
            }
        }
        match seconds.next.take() {
            Some(next) => {
                seconds.start = next;
                self.rest = self.stored.clone();
                self.pass = Pass::Seconds(seconds);
            }
            None => {
                self.end_key(key);
                self.begin(key + 1);
            }
        }
    }

    fn end_key(&mut self, key: u32) {
        let totals = self.totals[key as usize];
        let excess = self.window.excess();
        self.window.clear();
        if totals.requests == 0 {
            return;
        }
        self.curve
            .end_key(totals.looks_like_people, excess.peak, totals.requests);
        if excess.over > 0 {
            self.excesses.push((key, excess));
        }
    }
}

impl Clients {
    fn new(codes: usize, source: RateSource<'_>) -> Self {
        let RateSource {
            dictionaries,
            browsers,
            ..
        } = source;
        let agents = dictionaries.of(AGENT);
        let others = [Kind::Other; FIRST as usize].into_iter();
        let mut are_programs = vec![false; FIRST as usize];
        // A log that does not record agents has none at all.
        are_programs[NONE as usize] = agents.len() > 0;
        are_programs.extend(browsers.of_agents(agents, <[u8]>::is_empty));
        Self {
            clients: vec![(Behaviour::default(), i64::MAX); codes],
            kinds: others
                .chain(dictionaries.of(PATH).values().map(kind))
                .collect(),
            are_programs,
        }
    }

    #[inline]
    fn count(&mut self, row: &Row, keys: &Keys, without_key: &mut u64) {
        let code = row.codes[keys.column];
        if keys.of(code).is_none() {
            *without_key += 1;
            return;
        }
        let (client, first) = &mut self.clients[(code - FIRST) as usize];
        let kind = self.kinds.get(row.codes[PATH] as usize);
        let is_program = self.are_programs.get(row.codes[AGENT] as usize);
        client.count(
            row.status,
            kind.copied().unwrap_or(Kind::Other),
            is_program.copied().unwrap_or(false),
        );
        *first = (*first).min(row.time);
    }

    /// Returns the requests of each key. A group of addresses looks like people if any of its
    /// addresses does.
    fn totals(&self, keys: &Keys) -> Vec<Totals> {
        let none = Totals {
            requests: 0,
            errors: 0,
            programs: 0,
            first: i64::MAX,
            looks_like_people: false,
        };
        let mut totals = vec![none; keys.len()];
        for (code, (client, first)) in (FIRST..).zip(&self.clients) {
            let Some(key) = keys.of(code) else {
                continue;
            };
            let totals = &mut totals[key as usize];
            totals.requests += client.requests;
            totals.errors += client.errors;
            totals.programs += client.programs;
            totals.first = totals.first.min(*first);
            totals.looks_like_people |= client.looks_like_people();
        }
        totals
    }
}

impl Gathered {
    /// Reserves memory for up to `times_max` times of keys, from `first` on.
    fn new(first: u32, totals: &[Totals], times_max: u64) -> Self {
        let mut ends = Vec::new();
        let mut sum = 0;
        for totals in &totals[first as usize..] {
            if sum + totals.requests > times_max {
                break;
            }
            ends.push(sum as usize);
            sum += totals.requests;
        }
        Self {
            keys: first..first + ends.len() as u32,
            times: vec![0; sum as usize],
            ends,
        }
    }

    #[inline]
    fn add(&mut self, key: u32, time: i64) {
        if self.keys.contains(&key) {
            let end = &mut self.ends[(key - self.keys.start) as usize];
            self.times[*end] = time;
            *end += 1;
        }
    }
}

impl Seconds {
    #[inline]
    fn add(&mut self, time: i64) {
        if time < self.start {
            return;
        }
        let second = usize::try_from(time.abs_diff(self.start)).ok();
        match second.and_then(|second| self.counts.get_mut(second)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.next = Some(self.next.map_or(time, |next| next.min(time))),
        }
    }
}
