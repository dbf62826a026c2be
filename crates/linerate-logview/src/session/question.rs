//! Questions about the figures, and their answers.

use std::collections::VecDeque;

use serde_json::Value;
use thiserror::Error;

use super::{
    SessionError,
    message::{FilterPosition, RowsRequest, ServerMessage},
};
use crate::{
    aggregate::Aggregator,
    query::{Query, QueryError},
};

/// The most questions that may wait for answers. A caller that polls after each message has at most
/// one waiting.
pub(super) const QUESTIONS_MAX: usize = 16;

/// The most bytes of an answer: enough for 1,000 lines of 2,000 characters, each escaped.
pub(super) const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A client's question about the figures.
#[derive(Debug)]
pub(super) enum Question {
    /// Asks for the figures of some requests.
    Figures { seq: u64, query: Value },
    /// Asks for lines.
    Rows(RowsRequest),
}

/// Questions that have not been answered yet, in order.
#[derive(Debug, Default)]
pub(super) struct Questions(VecDeque<Question>);

impl Questions {
    /// Adds a question, or fails if [`QUESTIONS_MAX`] are waiting already.
    pub(super) fn push(&mut self, question: Question) -> Result<(), SessionError> {
        if self.0.len() == QUESTIONS_MAX {
            return Err(SessionError::TooManyQuestions {
                questions_max: QUESTIONS_MAX,
            });
        }
        self.0.push_back(question);
        Ok(())
    }

    /// Returns whether no question is waiting.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Answers the next question from the current figures.
    pub(super) fn poll_answer(&mut self, log: &Aggregator) -> Option<String> {
        let question = self.0.pop_front()?;
        Some(question.answer(log))
    }
}

impl Question {
    fn answer(self, log: &Aggregator) -> String {
        let (Self::Figures { seq, .. } | Self::Rows(RowsRequest { seq, .. })) = self;
        let answer = self.try_answer(log).and_then(|answer| {
            let json = answer.to_json_within(ANSWER_BYTES_MAX);
            json.ok_or(Refusal::TooLarge)
        });
        answer.unwrap_or_else(|refusal| {
            let refused = ServerMessage::Refused {
                seq,
                code: refusal.code(),
                message: refusal.to_string(),
                place: refusal.place(),
            };
            refused.to_json()
        })
    }

    fn try_answer(self, log: &Aggregator) -> Result<ServerMessage, Refusal> {
        match self {
            Self::Figures { seq, query } => {
                let query: Query = serde_json::from_value(query).map_err(Refusal::Malformed)?;
                let summary = Box::new(log.figures(&query).map_err(Refusal::Query)?);
                Ok(ServerMessage::Figures { seq, summary })
            }
            Self::Rows(RowsRequest {
                seq,
                query,
                offset,
                limit,
            }) => {
                let query: Query = serde_json::from_value(query).map_err(Refusal::Malformed)?;
                let rows = log.rows(&query, offset, limit).map_err(Refusal::Query)?;
                Ok(ServerMessage::Rows { seq, rows })
            }
        }
    }
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
