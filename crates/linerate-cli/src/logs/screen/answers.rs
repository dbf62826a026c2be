//! Answers to the view's questions, computed in steps between which the log is read.

use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use linerate_logview::{
    aggregate::{Answer, Search},
    query::{Query, QueryError, RowsQuery},
    summary::Summary,
};

use super::super::counter::Counter;
use super::excerpt::LOADED_MAX;
use super::message::{Closed, Event, Question, Update};

/// How long the engine works on answers before it reads on.
const SLICE: Duration = Duration::from_millis(20);
/// The shortest time between two answers to the same question while the log grows.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);
/// How much longer than the last answer the next one is delayed, so that most of the time remains
/// for reading.
const REFRESH_SHARE: u32 = 5;

/// The questions, and their answers under way.
pub(super) struct Answers {
    events: SyncSender<Event>,
    /// The question that is answered again whenever the log has grown.
    current: Figures,
    /// The search for the current or the next figures.
    figures: Option<FiguresSearch>,
    lines: Option<(u64, Search)>,
    /// True if the log has grown since the current question was answered.
    has_grown: bool,
    refresh_at: Instant,
}

#[derive(Clone)]
struct Figures {
    id: u64,
    query: Query,
}

struct FiguresSearch {
    question: Figures,
    search: Search,
    began: Instant,
    /// True if the same question was answered before.
    is_refresh: bool,
}

impl Answers {
    /// Begins with the question for all figures, whose ID is 0.
    pub(super) fn new(events: SyncSender<Event>) -> Self {
        Self {
            events,
            current: Figures {
                id: 0,
                query: Query::default(),
            },
            figures: None,
            lines: None,
            has_grown: true,
            refresh_at: Instant::now(),
        }
    }

    pub(super) fn note_growth(&mut self) {
        self.has_grown = true;
    }

    /// Returns for how long there is nothing to do.
    pub(super) fn idle_time(&self) -> Duration {
        match self.figures.is_some() || self.lines.is_some() {
            true => Duration::ZERO,
            false if self.has_grown => self.refresh_at.saturating_duration_since(Instant::now()),
            false => Duration::MAX,
        }
    }

    pub(super) fn ask(&mut self, log: &mut Counter, question: Question) -> Result<(), Closed> {
        match question {
            Question::Figures { id, query } => self.begin(log, Figures { id, query }, false),
            Question::Lines {
                id,
                query,
                text,
                offset,
            } => {
                self.lines = None;
                let wanted = RowsQuery {
                    query,
                    containing: text,
                    offset,
                    limit: LOADED_MAX,
                };
                match log.settled().search_rows(&wanted) {
                    Ok(search) => self.lines = Some((id, search)),
                    Err(error) => return self.send(lines_refused(id, error)),
                }
                Ok(())
            }
        }
    }

    /// Works on the answers for a short time, or until they are complete.
    pub(super) fn work(&mut self, log: &mut Counter) -> Result<(), Closed> {
        let began = Instant::now();
        if self.figures.is_none() && self.has_grown && began >= self.refresh_at {
            self.begin(log, self.current.clone(), true)?;
        }
        while began.elapsed() < SLICE && (self.figures.is_some() || self.lines.is_some()) {
            self.advance_lines(log)?;
            self.advance_figures(log)?;
        }
        match &self.figures {
            Some(search) if !search.is_refresh => self.send(Update::Searching {
                id: search.question.id,
                fraction: search.search.fraction(),
            }),
            _ => Ok(()),
        }
    }

    fn begin(
        &mut self,
        log: &mut Counter,
        question: Figures,
        is_refresh: bool,
    ) -> Result<(), Closed> {
        let began = Instant::now();
        self.figures = None;
        self.has_grown = false;
        let is_all = Query {
            top_max: question.query.top_max,
            ..Query::default()
        } == question.query;
        let log = log.settled();
        if is_all {
            // The figures of all requests are counted while they are read.
            let summary = Box::new(log.summary());
            return self.complete(question, began, summary);
        }
        match log.search(&question.query) {
            Ok(search) => {
                self.figures = Some(FiguresSearch {
                    question,
                    search,
                    began,
                    is_refresh,
                });
                Ok(())
            }
            Err(error) => self.refuse(&question, error),
        }
    }

    fn advance_figures(&mut self, log: &Counter) -> Result<(), Closed> {
        let Some(mut search) = self.figures.take() else {
            return Ok(());
        };
        match log.log().advance(&mut search.search) {
            Ok(Some(Answer::Figures(summary))) => {
                self.complete(search.question, search.began, summary)
            }
            Ok(_) => {
                self.figures = Some(search);
                Ok(())
            }
            Err(error) => self.refuse(&search.question, error),
        }
    }

    fn advance_lines(&mut self, log: &Counter) -> Result<(), Closed> {
        let Some((id, mut search)) = self.lines.take() else {
            return Ok(());
        };
        match log.log().advance(&mut search) {
            Ok(Some(Answer::Rows(rows))) => self.send(Update::Lines { id, rows: Ok(rows) }),
            Ok(_) => {
                self.lines = Some((id, search));
                Ok(())
            }
            Err(error) => self.send(lines_refused(id, error)),
        }
    }

    /// Sends figures. Their question is the current one from now on.
    fn complete(
        &mut self,
        question: Figures,
        began: Instant,
        summary: Box<Summary>,
    ) -> Result<(), Closed> {
        let id = question.id;
        self.current = question;
        let delay = (began.elapsed() * REFRESH_SHARE).max(REFRESH_INTERVAL);
        self.refresh_at = Instant::now() + delay;
        self.send(Update::Figures { id, summary })
    }

    /// Refuses a question. If it was the current one, the figures of all requests are current from
    /// now on.
    fn refuse(&mut self, question: &Figures, error: QueryError) -> Result<(), Closed> {
        if self.current.id == question.id {
            self.current.query = Query {
                top_max: question.query.top_max,
                ..Query::default()
            };
            self.has_grown = true;
        }
        self.send(Update::Refused {
            id: question.id,
            error,
        })
    }

    fn send(&self, update: Update) -> Result<(), Closed> {
        self.events.send(Event::Update(update)).map_err(|_| Closed)
    }
}

fn lines_refused(id: u64, error: QueryError) -> Update {
    Update::Lines {
        id,
        rows: Err(error),
    }
}
