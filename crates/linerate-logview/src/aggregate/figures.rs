//! Everything that is kept of a log: counters, names and columns.

mod packed;

use super::agent_names::AgentNames;
use super::batch::Batch;
use super::changes::changes;
use super::country_codes::CountryCodes;
use super::dictionaries::{Dictionaries, values};
use super::dictionary::{NONE, OTHER};
use super::filter::{Filter, Names};
use super::groups::Groups;
use super::latency_series::LatencySeries;
use super::limits::Limits;
use super::rates::{RateSearch, RateSizes, RateSource};
use super::report::Report;
use super::samples::Samples;
use super::scan::scan;
use super::search::{Comparison, Search, Wanted};
use super::tallies::Tallies;
use super::timeline::{Span, Timeline};
use super::value_search::ValueSearch;
use super::{bots, browsers};
use crate::excerpt::excerpt;
use crate::format::{Reason, Record};
use crate::query::{ChangesQuery, ListQuery, Query, QueryError, RateQuery, Rows, RowsQuery};
use crate::store::{ADDRESS, AGENT, HOST, METHOD, Row, TEXTS};
use crate::store::{LineSearch, LineStore, Store};
use crate::summary::{self, Changes, Filterable, Rates, Summary, ValueList};

pub use packed::{Detail, PACKED_REQUESTS_MAX, PackError, UnpackError};

/// The most characters of each line that is returned.
const ROW_CHARS_MAX: usize = 2_000;

/// All figures, kept separate from the splitter because it lends out the lines.
#[derive(Debug)]
pub(super) struct Figures {
    blank: u64,
    samples: Samples,
    dictionaries: Dictionaries,
    bots: AgentNames,
    browsers: AgentNames,
    systems: AgentNames,
    countries: Option<CountryCodes>,
    tallies: Tallies,
    store: Store,
    lines: LineStore,
    limits: Limits,
    /// Times are multiples of this many seconds: 1, except in a packed log.
    time_step_s: u32,
    /// Requests that are neither counted nor stored yet. Counting a few at a time, counter by
    /// counter, is faster than counting them one by one.
    fresh: Vec<Row>,
}

/// The answer to a query.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// What has changed between two periods.
    Changes(Box<Changes>),
    /// The figures of the selected requests.
    Figures(Box<Summary>),
    /// How long the selected requests took over time.
    Latency(Box<summary::LatencySeries>),
    /// The clients that exceed a limit.
    Rates(Box<Rates>),
    /// The requested lines.
    Rows(Rows),
    /// The values of a field.
    Values(Box<ValueList>),
}

/// How many requests are counted at a time: few enough to stay in the first-level cache.
const FRESH_MAX: usize = 256;

impl Figures {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            blank: 0,
            samples: Samples::new(limits.samples_max, limits.sample_chars_max),
            dictionaries: Dictionaries::new(&limits),
            bots: AgentNames::new(bots::name),
            browsers: AgentNames::new(browsers::browser),
            systems: AgentNames::new(browsers::system),
            countries: limits.countries.clone().map(CountryCodes::new),
            tallies: Tallies::new(
                Timeline::new(limits.timeline_buckets_max),
                limits.minutes_max,
            ),
            store: Store::new(
                limits.column_bytes_max,
                limits.columns_age,
                limits.spill.clone(),
            ),
            lines: LineStore::new(limits.line_bytes_sum_max),
            limits,
            time_step_s: 1,
            fresh: Vec::new(),
        }
    }

    /// Counts a request and its line. Until [`settle`](Self::settle) is called, only the number of
    /// lines is up to date.
    #[inline(always)]
    pub(super) fn count(&mut self, record: &Record<'_>, line: &[u8]) {
        let row = self.dictionaries.row(record);
        self.count_row(&row, |text| values(record)[text]);
        if self.lines.is_on() {
            self.lines.push(self.lines(), line);
        }
    }

    /// Counts the lines of a batch, in order.
    pub(super) fn merge(&mut self, batch: &Batch) {
        let before = self.lines();
        let codes: [Vec<u32>; TEXTS.len()] = std::array::from_fn(|text| {
            let dictionary = self.dictionaries.of_mut(text);
            let values = batch.dictionaries.of(text).values();
            let codes = values.map(|value| dictionary.code(value));
            // In a batch, every value has its own code.
            [NONE, OTHER].into_iter().chain(codes).collect()
        });
        for request in &batch.requests {
            let mut row = request.row;
            for (code, codes) in row.codes.iter_mut().zip(&codes) {
                *code = codes[*code as usize];
            }
            self.count_row(&row, |text| {
                batch.dictionaries.of(text).value(request.row.codes[text])
            });
            if self.lines.is_on() {
                self.lines.push(before + request.line, batch.line(request));
            }
        }
        self.blank += batch.blank;
        self.samples.merge(&batch.samples, before);
        self.settle();
    }

    /// Counts a line that is not a request.
    #[cold]
    pub(super) fn count_other(&mut self, text: &[u8], reason: Reason) {
        if text.is_empty() && reason != Reason::TooLong {
            self.blank += 1;
        } else {
            let line = self.lines() + 1;
            self.samples.count(line, text, reason);
        }
    }

    /// Ends a piece of input: completes the work that was deferred.
    pub(super) fn settle(&mut self) {
        self.count_fresh();
        let agents = self.dictionaries.of(AGENT);
        self.bots.classify(agents);
        for agent in agents.values_from(self.browsers.agents()) {
            let (browser, system) = browsers::names(agent);
            self.browsers.add(browser);
            self.systems.add(system);
        }
        if let Some(countries) = &mut self.countries {
            countries.look_up(self.dictionaries.of(ADDRESS));
        }
    }

    pub(super) fn lines(&self) -> u64 {
        self.requests() + self.samples.unparsed() + self.blank
    }

    pub(super) fn requests(&self) -> u64 {
        self.tallies.requests + self.fresh.len() as u64
    }

    pub(super) fn summary(&self) -> Summary {
        self.report(&self.tallies, self.limits.top_max)
    }

    /// Begins to compute the figures of the requests that a query selects.
    pub(super) fn search(&self, query: &Query) -> Result<Search, QueryError> {
        let filter = self.filter(query)?;
        let wanted = Wanted::Figures {
            tallies: Box::new(self.tallies_of(&filter)),
            top_max: query.top_max,
        };
        Ok(Search::new(filter, self.store.stored(), wanted))
    }

    /// Begins to look for lines.
    pub(super) fn search_rows(&self, query: &RowsQuery) -> Result<Search, QueryError> {
        query.check()?;
        if !self.lines.is_on() {
            return Err(QueryError::RowsNotKept);
        }
        let text = &query.containing;
        let wanted = Wanted::Rows {
            requests: Vec::new(),
            search: (!text.is_empty()).then(|| LineSearch::new(text)),
            offset: query.offset,
            rows_max: query.limit,
        };
        let filter = self.filter(&query.query)?;
        Ok(Search::new(filter, self.store.stored(), wanted))
    }

    /// Begins to look for the clients that exceed a limit.
    pub(super) fn search_rates(
        &self,
        query: &Query,
        rate: RateQuery,
        sizes: RateSizes,
    ) -> Result<Search, QueryError> {
        let rates = RateSearch::new(
            rate,
            query.top_max,
            self.filter(query)?,
            self.store.stored(),
            self.rate_source(),
            sizes,
        )?;
        let wanted = Wanted::Rates(Box::new(rates));
        Ok(Search::new(Filter::default(), 0..0, wanted))
    }

    /// Begins to look for the values of a field.
    pub(super) fn search_values(&self, query: &ListQuery) -> Result<Search, QueryError> {
        let field = query.checked_field()?;
        let filter = self.filter(&query.selection())?;
        let groups = Groups::new(field, &self.names())?;
        let wanted = Wanted::Values(Box::new(ValueSearch::new(field, query, groups)));
        Ok(Search::new(filter, self.store.stored(), wanted))
    }

    /// Begins to measure how long the requests that a query selects took over time.
    pub(super) fn search_latency(&self, query: &Query) -> Result<Search, QueryError> {
        let filter = self.filter(query)?;
        let wanted = Wanted::Latency(Box::new(LatencySeries::new(self.span_of(&filter))));
        Ok(Search::new(filter, self.store.stored(), wanted))
    }

    /// Begins to look for the values that explain the difference between two periods.
    pub(super) fn search_changes(&self, query: &ChangesQuery) -> Result<Search, QueryError> {
        let before = self.filter(&query.of(query.before)?)?;
        let after = self.filter(&query.of(query.after)?)?;
        let comparison = Comparison {
            query: query.clone(),
            before: self.tallies_of(&before),
            after: self.tallies_of(&after),
            next: Some(after),
        };
        let wanted = Wanted::Changes(Box::new(comparison));
        Ok(Search::new(before, self.store.stored(), wanted))
    }

    /// Examines some more requests. Returns the answer once all have been examined.
    pub(super) fn advance(&self, search: &mut Search) -> Result<Option<Answer>, QueryError> {
        match self.step(search)? {
            true => self.answer(search).map(Some),
            false => Ok(None),
        }
    }

    /// Examines some more requests. Returns true once all have been examined.
    fn step(&self, search: &mut Search) -> Result<bool, QueryError> {
        // Meanwhile, the requests may have exceeded their limit.
        if let Some(error) = self.refusal() {
            return Err(error);
        }
        if let Wanted::Rates(rates) = &mut search.wanted {
            return rates.step(&self.store).map_err(QueryError::SpillUnreadable);
        }
        let step = search.step();
        let (mut numbers, mut rows) = (Vec::new(), Vec::new());
        let mut are_kept = true;
        // Taken out because the search counts the requests that its filter selects.
        let filter = std::mem::take(&mut search.filter);
        let scanned = scan(&self.store, &filter, step, |number, row| {
            numbers.push(number);
            rows.push(*row);
            if rows.len() >= FRESH_MAX {
                are_kept &= self.add_to(search, &mut numbers, &rows);
                numbers.clear();
                rows.clear();
            }
        });
        search.filter = filter;
        scanned.map_err(QueryError::SpillUnreadable)?;
        are_kept &= self.add_to(search, &mut numbers, &rows);
        match are_kept {
            true => Ok(search.end_step(&self.dictionaries)),
            false => Err(self.rows_full()),
        }
    }

    /// Adds selected requests to a search; those whose lines lack the searched text are left out.
    /// Returns false if some of the lines are not kept.
    fn add_to(&self, search: &mut Search, numbers: &mut Vec<u64>, rows: &[Row]) -> bool {
        if let Wanted::Rows {
            search: Some(text), ..
        } = &mut search.wanted
        {
            let Some(found) = self.lines.containing(numbers, text) else {
                return false;
            };
            let mut found = found.into_iter();
            numbers.retain(|_| found.next().unwrap_or(false));
        }
        search.add(numbers, rows);
        true
    }

    fn rows_full(&self) -> QueryError {
        QueryError::RowsFull {
            lines: self.lines.kept(),
            bytes_max: self.lines.bytes_max(),
        }
    }

    fn answer(&self, search: &Search) -> Result<Answer, QueryError> {
        match &search.wanted {
            Wanted::Changes(comparison) => {
                let query = &comparison.query;
                let report = |tallies| self.report_of(tallies, query.top_max);
                let found = changes(query, report(&comparison.before), report(&comparison.after));
                Ok(Answer::Changes(Box::new(found)))
            }
            Wanted::Figures { tallies, top_max } => {
                Ok(Answer::Figures(Box::new(self.report(tallies, *top_max))))
            }
            Wanted::Latency(latency) => Ok(Answer::Latency(Box::new(latency.summary()))),
            Wanted::Rates(rates) => {
                let rates = rates.answer(self.rate_source(), self.time_step_s)?;
                Ok(Answer::Rates(Box::new(rates)))
            }
            Wanted::Values(values) => {
                let list = values.list(&self.dictionaries);
                Ok(Answer::Values(Box::new(list)))
            }
            Wanted::Rows { requests, .. } => {
                let show = |line: &[u8]| excerpt(line, ROW_CHARS_MAX);
                let rows = self.lines.rows(requests, show);
                if rows.len() < requests.len() {
                    return Err(self.rows_full());
                }
                let total = search.found();
                Ok(Answer::Rows(Rows { total, rows }))
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.names_bytes() + self.store.memory_bytes() + self.lines.memory_bytes()
    }

    pub(super) fn spilled_bytes(&self) -> u64 {
        self.store.spilled_bytes()
    }

    /// Returns by how many bytes the memory may grow while `log_bytes` bytes of a log are counted.
    pub(super) fn growth_bytes_max(&self, log_bytes: usize) -> usize {
        /// The growth of a timeline in one step, and the initial capacity of lists.
        const FIRST_BYTES: usize = 8 << 20;
        /// The memory of rows and line offsets per byte of a log with the shortest possible lines.
        const PER_BYTE: usize = 32;
        let names = self.names_bytes();
        // Lists grow by doubling, and while one grows, its old and new memory coexist.
        let doubled = names.min(self.limits.names_bytes_max().saturating_sub(names)) + names / 4;
        let kept = self.store.growth_bytes_max() + self.lines.growth_bytes_max();
        doubled + kept + FIRST_BYTES + log_bytes.saturating_mul(PER_BYTE)
    }

    /// Returns how many bytes of heap everything except rows and lines occupies.
    fn names_bytes(&self) -> usize {
        self.dictionaries.memory_bytes()
            + self.bots.memory_bytes()
            + self.browsers.memory_bytes()
            + self.systems.memory_bytes()
            + self
                .countries
                .as_ref()
                .map_or(0, CountryCodes::memory_bytes)
            + self.tallies.memory_bytes()
            + self.fresh.capacity() * size_of::<Row>()
    }

    #[inline(always)]
    fn count_row<'a>(&mut self, row: &Row, value: impl Fn(usize) -> &'a [u8]) {
        if row.codes.contains(&OTHER) {
            self.tallies.count_others(row, value);
        }
        self.fresh.push(*row);
        if self.fresh.len() >= FRESH_MAX {
            self.count_fresh();
        }
    }

    fn count_fresh(&mut self) {
        self.tallies.count_all(&self.fresh);
        self.store.extend(&self.fresh);
        self.fresh.clear();
    }

    fn names(&self) -> Names<'_> {
        Names {
            dictionaries: &self.dictionaries,
            bots: &self.bots,
            browsers: &self.browsers,
            systems: &self.systems,
            countries: self.countries.as_ref(),
        }
    }

    fn filter(&self, query: &Query) -> Result<Filter, QueryError> {
        let filter = Filter::new(query, &self.names(), |text| {
            let others = self.tallies.by_code[text].get(OTHER as usize);
            others.is_some_and(|tally| tally.requests > 0)
        })?;
        match self.refusal() {
            None => Ok(filter),
            Some(error) => Err(error),
        }
    }

    /// Returns why no query can be answered, or `None` if that is possible.
    pub(super) fn refusal(&self) -> Option<QueryError> {
        let overflow = self.store.overflow()?;
        Some(match overflow.spill.clone() {
            Some(reason) => QueryError::SpillFull { reason },
            None => QueryError::ColumnsFull {
                requests: self.requests(),
                requests_kept: overflow.requests,
                bytes_max: self.store.bytes_max(),
            },
        })
    }

    /// Returns counters of the requests that the filter selects, which are zero.
    fn tallies_of(&self, filter: &Filter) -> Tallies {
        Tallies::new(self.timeline_of(filter), self.limits.minutes_max)
    }

    /// Returns an empty timeline of the time that the filter covers, so that the requests it
    /// selects are shown where they are in the log.
    fn timeline_of(&self, filter: &Filter) -> Timeline {
        let buckets_max = self.limits.timeline_buckets_max;
        match self.span_of(filter) {
            Some(span) => Timeline::of_span(buckets_max, span),
            None => Timeline::new(buckets_max),
        }
    }

    fn rate_source(&self) -> RateSource<'_> {
        RateSource {
            dictionaries: &self.dictionaries,
            browsers: &self.browsers,
            asns: self.limits.asns.as_ref(),
        }
    }

    /// Returns the time that the filter covers.
    fn span_of(&self, filter: &Filter) -> Option<Span> {
        self.tallies.timeline.span_between(filter.from, filter.last)
    }

    fn report_of<'a>(&'a self, tallies: &'a Tallies, top_max: usize) -> Report<'a> {
        Report {
            dictionaries: &self.dictionaries,
            tallies,
            bots: &self.bots,
            countries: self.countries.as_ref(),
            top_max,
        }
    }

    fn report(&self, tallies: &Tallies, top_max: usize) -> Summary {
        let report = self.report_of(tallies, top_max);
        let panels = report.panels();
        let (addresses, paths) = (&panels.address, &panels.path);
        let timeline = &tallies.timeline;
        Summary {
            lines: self.lines(),
            requests: tallies.requests,
            unparsed: self.samples.unparsed(),
            blank: self.blank,
            unparsed_reasons: self.samples.by_reason(),
            unparsed_samples: self.samples.list().to_vec(),
            bytes_read: 0,
            damaged: Vec::new(),
            format_fit: None,
            bytes_sent: tallies.bytes_sent,
            unique_addresses: addresses.distinct,
            unique_addresses_exact: addresses.exact,
            unique_paths: paths.distinct,
            paths_exact: paths.exact,
            paths_not_counted: paths.not_counted,
            requests_without_path: tallies.requests_without_path,
            statuses: tallies.statuses.by_code(),
            status_classes: tallies.statuses.by_class(),
            methods: report.methods(),
            top_paths: paths
                .top
                .iter()
                .map(|it| (it.value.clone(), it.requests))
                .collect(),
            first_time: timeline.first_time(),
            last_time: timeline.last_time(),
            timeline: timeline.summary(self.dictionaries.of(METHOD), self.dictionaries.of(HOST)),
            format: String::new(),
            approximate: report.is_approximate(),
            bots: report.bots(),
            browsers: report.agent_names(&self.browsers),
            systems: report.agent_names(&self.systems),
            country_names: self.countries.as_ref().map(CountryCodes::names),
            latency: tallies.durations.summary(),
            error_paths: report.error_paths(),
            firewall: report.firewall(),
            filterable: Filterable {
                refusal: self.refusal().map(|error| error.to_string()),
                ..self.store.summary()
            },
            rows_kept: self.lines.summary(self.requests()),
            panels,
        }
    }
}
