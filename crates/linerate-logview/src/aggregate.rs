//! Computes the figures of a log in bounded memory, as reported in a [`Summary`].

mod agent_names;
mod batch;
mod bots;
mod browsers;
mod by_code;
mod changes;
mod country_codes;
mod counts;
mod dictionaries;
mod dictionary;
mod distinct;
mod figures;
mod filter;
mod groups;
mod latency;
mod latency_series;
mod limits;
mod overflow;
mod patterns;
mod peaks;
mod ranking;
mod rates;
mod report;
mod samples;
mod scan;
mod search;
mod tallies;
mod tally;
mod timeline;
mod value_search;

use crate::format::{Format, FormatFit, Parser, Reason};
use crate::lines::{Line, LineSplitter, Marks};
use crate::query::{ChangesQuery, ListQuery, Query, QueryError, RateQuery, Rows, RowsQuery};
use crate::summary::{Changes, Damage, LatencySeries, Rates, Summary, ValueList};
pub use batch::Batch;
use figures::Figures;
pub use figures::{Answer, Detail, PACKED_REQUESTS_MAX, PackError, UnpackError};
pub use limits::Limits;
pub use search::Search;

/// Parses a log that arrives in pieces, and counts its contents.
///
/// The figures do not depend on how the log is cut into pieces. See the [crate] for an example.
#[derive(Debug)]
pub struct Aggregator {
    splitter: LineSplitter,
    parser: Parser,
    figures: Figures,
    bytes_read: u64,
    damaged: Vec<Damage>,
    /// How well the format of a file fits: that of the last file, or of one with an uncertain one.
    fit: Option<FormatFit>,
}

impl Aggregator {
    /// Creates an aggregator that has seen no input.
    pub fn new(limits: Limits) -> Self {
        Self {
            splitter: LineSplitter::new(limits.line_bytes_max),
            parser: Parser::new(Format::default()),
            bytes_read: 0,
            damaged: Vec::new(),
            fit: None,
            figures: Figures::new(limits),
        }
    }

    /// Parses the next piece of the log, of any size, and counts each line that it completes.
    pub fn handle_input(&mut self, input: &[u8]) {
        self.bytes_read += input.len() as u64;
        let Self {
            splitter,
            parser,
            figures,
            ..
        } = self;
        if parser.wants_marks() {
            splitter.handle_marked_input(input, |line, marks| count(figures, parser, line, marks));
        } else {
            splitter.handle_input(input, |line| count(figures, parser, line, None));
        }
        figures.settle();
    }

    /// Ends the log: counts the last line even if it has no line feed.
    pub fn handle_eof(&mut self) {
        let Self {
            splitter,
            parser,
            figures,
            ..
        } = self;
        splitter.handle_eof(|line| count(figures, parser, line, None));
        figures.settle();
    }

    /// Ends a file that is damaged: forgets an unfinished line, which may be wrong, and notes the
    /// damage for the summary.
    pub fn handle_damage(&mut self, damage: Damage) {
        self.splitter.discard_line();
        self.damaged.push(damage);
    }

    /// Counts the lines of a batch, which must be the next ones of the log. Another thread may have
    /// parsed them.
    pub fn merge(&mut self, batch: &Batch) {
        self.bytes_read += batch.bytes_read;
        self.figures.merge(batch);
    }

    /// Sets the format of all lines that follow. Call it between two files.
    pub fn set_format(&mut self, format: Format) {
        self.parser = Parser::new(format);
    }

    /// Records how well the detected format of a file fits. In a log of several files, one whose
    /// format is uncertain is remembered.
    pub fn set_fit(&mut self, fit: FormatFit) {
        if self.fit.as_ref().is_none_or(|fit| fit.certain) {
            self.fit = Some(fit);
        }
    }

    /// Returns how many lines were counted: requests, unparsed and blank lines.
    pub fn lines(&self) -> u64 {
        self.figures.lines()
    }

    /// Returns how many lines were requests.
    pub fn requests(&self) -> u64 {
        self.figures.requests()
    }

    /// Returns how many bytes were received, including those of an unfinished line.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns the figures so far, without an unfinished last line.
    ///
    /// This visits every distinct value once, so call it a few times a second rather than once per
    /// piece.
    pub fn summary(&self) -> Summary {
        Summary {
            format: self.parser.format().name().to_string(),
            bytes_read: self.bytes_read,
            damaged: self.damaged.clone(),
            format_fit: self.fit.clone(),
            ..self.figures.summary()
        }
    }

    /// Returns the figures of the requests that a query selects.
    ///
    /// The counts of lines that are not requests and the size of the log are those of the whole
    /// log. The columns are scanned once, at tens of millions of requests per second.
    ///
    /// # Errors
    ///
    /// Returns an error if the query exceeds a limit, or if what was kept of the log cannot answer
    /// it.
    pub fn figures(&self, query: &Query) -> Result<Summary, QueryError> {
        match self.complete(self.search(query)?)? {
            Answer::Figures(summary) => Ok(*summary),
            _ => unreachable!("a search for figures finds figures"),
        }
    }

    /// Returns the values that explain the difference between two periods.
    ///
    /// The columns are scanned once for each period. Counts are exact unless
    /// [`Changes::approximate`] is true.
    ///
    /// # Errors
    ///
    /// Returns an error if a period is empty, if the question exceeds a limit, or if what was kept
    /// of the log cannot answer it.
    pub fn changes(&self, query: &ChangesQuery) -> Result<Changes, QueryError> {
        match self.complete(self.search_changes(query)?)? {
            Answer::Changes(changes) => Ok(*changes),
            _ => unreachable!("a search for changes finds changes"),
        }
    }

    /// Returns the values of a field in the order of a figure, and how long their requests took.
    ///
    /// The columns are scanned twice if the log has durations. All values that are tracked are
    /// sorted, by exact figures.
    ///
    /// # Errors
    ///
    /// Returns an error if the field cannot be listed, if the question exceeds a limit, or if what
    /// was kept of the log cannot answer it.
    pub fn values(&self, query: &ListQuery) -> Result<ValueList, QueryError> {
        match self.complete(self.search_values(query)?)? {
            Answer::Values(values) => Ok(*values),
            _ => unreachable!("a search for values finds values"),
        }
    }

    /// Returns how long the requests that a query selects took over time.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`figures`](Self::figures).
    pub fn latency(&self, query: &Query) -> Result<LatencySeries, QueryError> {
        match self.complete(self.search_latency(query)?)? {
            Answer::Latency(latency) => Ok(*latency),
            _ => unreachable!("a search for latencies finds latencies"),
        }
    }

    /// Returns the clients that exceed a limit of requests, counting the requests that a query
    /// selects. Lists have up to [`Query::top_max`] values.
    ///
    /// Counts are exact, in whatever order the requests are. A log is scanned about once for every
    /// four million requests.
    ///
    /// # Errors
    ///
    /// Returns an error if the query exceeds a limit, if what was kept of the log cannot answer it,
    /// or if autonomous systems or rules are requested that are not available.
    pub fn rates(&self, query: &Query, rate: RateQuery) -> Result<Rates, QueryError> {
        match self.complete(self.search_rates(query, rate)?)? {
            Answer::Rates(rates) => Ok(*rates),
            _ => unreachable!("a search for rates finds rates"),
        }
    }

    /// Returns why no query can be answered, as [`figures`](Self::figures) would, or `None` if
    /// queries can be answered so far.
    pub fn refusal(&self) -> Option<QueryError> {
        self.figures.refusal()
    }

    /// Returns lines of the log, in order. Long lines are truncated to 2,000 characters.
    ///
    /// # Errors
    ///
    /// Returns an error if the query exceeds a limit or cannot be answered, or if the lines were
    /// not kept: see [`Limits::line_bytes_sum_max`].
    pub fn rows(&self, query: &RowsQuery) -> Result<Rows, QueryError> {
        match self.complete(self.search_rows(query)?)? {
            Answer::Rows(rows) => Ok(rows),
            _ => unreachable!("a search for lines finds lines"),
        }
    }

    /// Packs what queries need into bytes, from which [`unpack`](Self::unpack) answers the same
    /// queries, except for lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the log cannot be queried, or has more than [`PACKED_REQUESTS_MAX`]
    /// requests.
    pub fn pack(&self, detail: Detail) -> Result<Vec<u8>, PackError> {
        self.figures.pack(detail)
    }

    /// Creates an aggregator from a packed log. Its figures of requests are those of the log, but
    /// it knows neither the format nor the lines that are not requests.
    ///
    /// Memory is in proportion to the length of `packed`, whatever it contains.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a packed log.
    pub fn unpack(packed: &[u8]) -> Result<Self, UnpackError> {
        Ok(Self {
            splitter: LineSplitter::new(0),
            parser: Parser::new(Format::default()),
            figures: Figures::unpack(packed)?,
            bytes_read: 0,
            damaged: Vec::new(),
            fit: None,
        })
    }

    /// Begins to compute the figures of the requests that a query selects, for a caller that has
    /// other work to do in between. Continue with [`advance`](Self::advance).
    ///
    /// # Errors
    ///
    /// Returns an error if the query exceeds a limit or cannot be answered.
    pub fn search(&self, query: &Query) -> Result<Search, QueryError> {
        self.figures.search(query)
    }

    /// Begins to look for the values that explain the difference between two periods.
    pub(crate) fn search_changes(&self, query: &ChangesQuery) -> Result<Search, QueryError> {
        self.figures.search_changes(query)
    }

    /// Begins to look for the values of a field.
    pub(crate) fn search_values(&self, query: &ListQuery) -> Result<Search, QueryError> {
        self.figures.search_values(query)
    }

    /// Begins to measure how long requests took over time.
    pub(crate) fn search_latency(&self, query: &Query) -> Result<Search, QueryError> {
        self.figures.search_latency(query)
    }

    /// Begins to look for the lines that a query selects, as [`rows`](Self::rows) does.
    ///
    /// # Errors
    ///
    /// Returns an error if the query exceeds a limit or cannot be answered, or if lines are not
    /// kept.
    pub fn search_rows(&self, query: &RowsQuery) -> Result<Search, QueryError> {
        self.figures.search_rows(query)
    }

    /// Begins to look for the clients that exceed a limit.
    pub(crate) fn search_rates(
        &self,
        query: &Query,
        rate: RateQuery,
    ) -> Result<Search, QueryError> {
        self.figures
            .search_rates(query, rate, rates::RateSizes::default())
    }

    /// Examines some more requests for a search of this log: some milliseconds of work. Returns the
    /// answer once all have been examined.
    ///
    /// # Errors
    ///
    /// Returns an error if what was kept of the log cannot answer the query. The search is then
    /// over.
    pub fn advance(&self, search: &mut Search) -> Result<Option<Answer>, QueryError> {
        let answer = self.figures.advance(search)?;
        Ok(answer.map(|answer| match answer {
            Answer::Figures(summary) => Answer::Figures(Box::new(Summary {
                format: self.parser.format().name().to_string(),
                bytes_read: self.bytes_read,
                damaged: self.damaged.clone(),
                format_fit: self.fit.clone(),
                ..*summary
            })),
            other => other,
        }))
    }

    fn complete(&self, mut search: Search) -> Result<Answer, QueryError> {
        loop {
            if let Some(answer) = self.advance(&mut search)? {
                return Ok(answer);
            }
        }
    }

    /// Returns how many bytes of heap the aggregator holds, within a few KiB.
    pub fn memory_bytes(&self) -> usize {
        let damaged = self.damaged.iter().map(Damage::memory_bytes).sum::<usize>();
        self.splitter.memory_bytes()
            + self.parser.memory_bytes()
            + self.figures.memory_bytes()
            + damaged
    }

    /// Returns how many bytes the aggregator holds in a temporary file.
    pub fn spilled_bytes(&self) -> u64 {
        self.figures.spilled_bytes()
    }

    /// Returns by how many bytes of heap [`memory_bytes`](Self::memory_bytes) may grow while
    /// `log_bytes` bytes of a log are counted, including memory held only temporarily while lists
    /// grow.
    pub(crate) fn growth_bytes_max(&self, log_bytes: usize) -> usize {
        self.figures.growth_bytes_max(log_bytes)
    }
}

/// Counts a line.
// Inlined into the loop over lines, so that the record of a usual line never reaches memory.
#[inline(always)]
fn count(figures: &mut Figures, parser: &mut Parser, line: Line<'_>, marks: Option<Marks<'_>>) {
    if let (Line::Whole(text), Some(marks)) = (line, marks)
        && let Some(record) = parser.parse_usual(text, marks)
    {
        figures.count(&record, text);
    } else {
        count_unusual(figures, parser, line);
    }
}

#[inline(never)]
fn count_unusual(figures: &mut Figures, parser: &mut Parser, line: Line<'_>) {
    let (text, reason) = match line {
        Line::Whole(text) => match parser.parse(text) {
            Ok(record) => return figures.count(&record, text),
            Err(reason) => (text, reason),
        },
        Line::TooLong(text) => (text, Reason::TooLong),
    };
    figures.count_other(text, reason);
}

#[cfg(test)]
mod tests {
    mod changes;
    mod countries;
    mod cuts;
    mod figures;
    mod limits;
    mod packed;
    mod queries;
    mod rates;
    mod values;
}
