//! Questions about the figures, and their answers.

use std::{collections::VecDeque, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use super::{
    Limits, SessionError,
    message::{ClientMessage, FilterPosition, Question, RatesRequest, RowsRequest, ServerMessage},
};
use crate::{
    aggregate::{Aggregator, Answer, Search},
    query::{QueryError, RowsQuery},
};

/// The most questions that may wait for answers. A caller that polls after each message has at most
/// one waiting.
pub(super) const QUESTIONS_MAX: usize = 16;

/// The most bytes of an answer: enough for 1,000 lines of 2,000 characters, each escaped.
pub(super) const ANSWER_BYTES_MAX: usize = 16 << 20;

/// How often a client is told how far a search is.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Questions that have not been answered yet, in order.
#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: VecDeque<Question>,
    running: Option<RunningSearch>,
}

/// The question that is being answered.
#[derive(Debug)]
struct RunningSearch {
    seq: u64,
    search: Search,
    /// When the client was last told how far the search is, or when it began.
    reported: Duration,
}

impl Questions {
    /// Adds a question, or fails if [`QUESTIONS_MAX`] are waiting already.
    pub(super) fn push(&mut self, question: Question) -> Result<(), SessionError> {
        if self.waiting.len() == QUESTIONS_MAX {
            return Err(SessionError::TooManyQuestions {
                questions_max: QUESTIONS_MAX,
            });
        }
        self.waiting.push_back(question);
        Ok(())
    }

    /// Drops a question that the client has withdrawn.
    pub(super) fn drop(&mut self, seq: u64) {
        self.running.take_if(|running| running.seq == seq);
        self.waiting.retain(|question| question.seq() != seq);
    }

    /// Returns whether all questions are answered.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running.is_none()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let running = self.running.as_ref();
        running.map_or(0, |it| it.search.memory_bytes())
    }

    /// Works on the next question for some milliseconds. Returns its answer, or how far the search
    /// is if [`REPORT_INTERVAL`] has passed, or `None` if there is nothing to say yet.
    pub(super) fn poll_answer(&mut self, log: &Aggregator, now: Duration) -> Option<String> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => {
                let question = self.waiting.pop_front()?;
                let seq = question.seq();
                match question.begin(log) {
                    Ok(search) => RunningSearch {
                        seq,
                        search,
                        reported: now,
                    },
                    Err(refusal) => return Some(refusal.to_json(seq)),
                }
            }
        };
        let seq = running.seq;
        match log.advance(&mut running.search) {
            Ok(None) => {
                let is_due = now >= running.reported + REPORT_INTERVAL;
                let report = is_due.then(|| {
                    running.reported = now;
                    let fraction = running.search.fraction();
                    ServerMessage::Searching { seq, fraction }.to_json()
                });
                self.running = Some(running);
                report
            }
            Ok(Some(answer)) => {
                let message = match answer {
                    Answer::Changes(changes) => ServerMessage::Changes { seq, changes },
                    Answer::Figures(summary) => ServerMessage::Figures { seq, summary },
                    Answer::Latency(latency) => ServerMessage::Latency { seq, latency },
                    Answer::Rates(rates) => ServerMessage::Rates { seq, rates },
                    Answer::Rows(rows) => ServerMessage::Rows { seq, rows },
                    Answer::Values(list) => ServerMessage::Values { seq, list },
                };
                let json = message.to_json_within(ANSWER_BYTES_MAX);
                Some(json.unwrap_or_else(|| Refusal::TooLarge.to_json(seq)))
            }
            Err(error) => Some(Refusal::Query(error).to_json(seq)),
        }
    }
}

/// Answers a question about a log that does not grow, such as one that was
/// [unpacked](Aggregator::unpack). The question and the answer are text messages of the protocol.
///
/// Returns `None` if the message does not ask anything.
pub fn answer(log: &Aggregator, message: &str) -> Option<String> {
    let Ok(ClientMessage::Ask(question)) = ClientMessage::parse(message, &Limits::default()) else {
        return None;
    };
    let mut questions = Questions::default();
    questions.push(question).ok()?;
    while !questions.is_empty() {
        // No time passes, so there are no reports of how far the search is.
        let answer = questions.poll_answer(log, Duration::ZERO);
        if answer.is_some() {
            return answer;
        }
    }
    None
}

impl Question {
    fn seq(&self) -> u64 {
        let (Self::Changes { seq, .. }
        | Self::Latency { seq, .. }
        | Self::Query { seq, .. }
        | Self::Rates(RatesRequest { seq, .. })
        | Self::Rows(RowsRequest { seq, .. })
        | Self::Values { seq, .. }) = self;
        *seq
    }

    fn begin(self, log: &Aggregator) -> Result<Search, Refusal> {
        match self {
            Self::Changes { query, .. } => log.search_changes(&parsed(query)?),
            Self::Latency { query, .. } => log.search_latency(&parsed(query)?),
            Self::Query { query, .. } => log.search(&parsed(query)?),
            Self::Rates(RatesRequest { query, rates, .. }) => {
                log.search_rates(&parsed(query)?, parsed(rates)?)
            }
            Self::Rows(RowsRequest {
                query,
                containing,
                offset,
                limit,
                ..
            }) => log.search_rows(&RowsQuery {
                query: parsed(query)?,
                containing,
                offset,
                limit,
            }),
            Self::Values { query, .. } => log.search_values(&parsed(query)?),
        }
        .map_err(Refusal::Query)
    }
}

fn parsed<Q: DeserializeOwned>(query: Value) -> Result<Q, Refusal> {
    serde_json::from_value(query).map_err(Refusal::Malformed)
}

/// Why a question is not answered.
#[derive(Debug, Error)]
enum Refusal {
    #[error("malformed query: {0}")]
    Malformed(serde_json::Error),
    #[error(transparent)]
    Query(QueryError),
    #[error("the answer exceeds {ANSWER_BYTES_MAX} bytes; ask for fewer values or lines")]
    TooLarge,
}

impl Refusal {
    fn to_json(&self, seq: u64) -> String {
        let refused = ServerMessage::Refused {
            seq,
            code: self.code(),
            message: self.to_string(),
            place: self.place(),
        };
        refused.to_json()
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::Query(error) => error.code(),
            Self::TooLarge => "answer_too_large",
        }
    }

    /// Returns which filter is wrong, and where.
    fn place(&self) -> Option<FilterPosition> {
        match self {
            Self::Query(QueryError::Filter(error)) => Some(FilterPosition {
                filter: error.filter,
                column: error.column,
            }),
            _ => None,
        }
    }
}
