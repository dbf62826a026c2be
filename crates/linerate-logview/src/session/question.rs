//! Questions about the figures, and their answers.

use std::collections::VecDeque;

use serde_json::Value;

use super::{SessionError, message::Reply};
use crate::{
    aggregate::Aggregator,
    query::{Query, QueryError},
};

/// How many questions may wait for their answers. A caller that polls after each message has one at
/// most.
pub(super) const QUESTIONS_MAX: usize = 16;

/// Something that a client asks about the figures.
#[derive(Debug)]
pub(super) enum Question {
    /// For the figures of some requests.
    Figures { seq: u64, query: Value },
    /// For lines.
    Rows { seq: u64 },
}

/// Questions that were not answered yet, in their order.
#[derive(Debug, Default)]
pub(super) struct Questions(VecDeque<Question>);

impl Questions {
    /// Adds a question, if there is room for one more.
    pub(super) fn push(&mut self, question: Question) -> Result<(), SessionError> {
        if self.0.len() == QUESTIONS_MAX {
            return Err(SessionError::TooManyQuestions {
                questions_max: QUESTIONS_MAX,
            });
        }
        self.0.push_back(question);
        Ok(())
    }

    /// Answers the next question from the figures as they are.
    pub(super) fn poll_answer(&mut self, log: &Aggregator) -> Option<String> {
        let question = self.0.pop_front()?;
        Some(question.answer(log).to_json())
    }
}

impl Question {
    fn answer(self, log: &Aggregator) -> Reply {
        match self {
            Self::Figures { seq, query } => match serde_json::from_value::<Query>(query) {
                Ok(query) => match log.figures(&query) {
                    Ok(summary) => Reply::Figures {
                        seq,
                        summary: Box::new(summary),
                    },
                    Err(error) => refused(seq, &error),
                },
                Err(error) => Reply::Refused {
                    seq,
                    code: "malformed",
                    message: format!("the query is none: {error}"),
                },
            },
            Self::Rows { seq } => refused(seq, &QueryError::RowsNotKept),
        }
    }
}

fn refused(seq: u64, error: &QueryError) -> Reply {
    Reply::Refused {
        seq,
        code: error.code(),
        message: error.to_string(),
    }
}
