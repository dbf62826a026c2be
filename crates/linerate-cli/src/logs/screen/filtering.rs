//! Which selection is applied, which one was asked for, and what was applied before.

use super::message::Question;
use super::selection::Selection;

/// How many changes can be undone.
const HISTORY_MAX: usize = 100;

/// The selection whose figures are shown, and the questions to the engine.
///
/// A selection is applied when its figures arrive, and not before, so that what is shown always
/// belongs together.
#[derive(Debug, Default)]
pub(super) struct Filtering {
    pub(super) applied: Selection,
    pub(super) pending: Option<Pending>,
    /// What was applied before, the latest last.
    history: Vec<Selection>,
    questions: Vec<Question>,
    /// The most values in each list of figures.
    rows_max: usize,
    applied_id: u64,
    lines_id: u64,
    last_id: u64,
}

/// A selection whose figures were asked for.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) selection: Selection,
    /// The share of the requests that was examined, 0 to 1.
    pub(super) fraction: f64,
    id: u64,
    is_undo: bool,
}

/// Which question an answer belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Asked {
    /// The one whose figures are shown.
    Applied,
    /// An earlier one, whose answer is not needed any more.
    Earlier,
    /// The one that was pending.
    Pending,
}

impl Filtering {
    /// Asks for the figures of all requests, and then for those of a selection.
    pub(super) fn new(rows_max: usize, selection: Selection) -> Self {
        let mut filtering = Self {
            rows_max,
            ..Self::default()
        };
        filtering.applied_id = filtering.ask(&Selection::default());
        filtering.apply(selection);
        filtering
    }

    /// Asks for the figures of a selection, unless it is applied already.
    pub(super) fn apply(&mut self, selection: Selection) {
        if selection != self.applied {
            self.pend(selection, false);
        }
    }

    /// Asks for the figures of the selection that was applied before. Returns false if there was
    /// none.
    pub(super) fn undo(&mut self) -> bool {
        let before = self.history.last().cloned();
        let can_undo = before.is_some();
        before.into_iter().for_each(|it| self.pend(it, true));
        can_undo
    }

    /// Cancels the pending selection. Returns false if there is none.
    pub(super) fn cancel(&mut self) -> bool {
        let is_pending = self.pending.take().is_some();
        if is_pending {
            self.ask_again();
        }
        is_pending
    }

    /// Asks for lines of the applied selection that contain a text.
    pub(super) fn ask_lines(&mut self, text: String, offset: u64) {
        self.last_id += 1;
        self.lines_id = self.last_id;
        self.questions.push(Question::Lines {
            id: self.last_id,
            query: self.applied.query(0),
            text,
            offset,
        });
    }

    /// Returns whether lines with this ID are the ones that were asked for last.
    pub(super) fn wants_lines(&self, id: u64) -> bool {
        id == self.lines_id
    }

    /// Accepts figures: if they are those of the pending selection, it is applied.
    pub(super) fn accept(&mut self, id: u64) -> Asked {
        let Some(pending) = self.pending.take_if(|it| it.id == id) else {
            return match id == self.applied_id {
                true => Asked::Applied,
                false => Asked::Earlier,
            };
        };
        let before = std::mem::replace(&mut self.applied, pending.selection);
        self.applied_id = id;
        match pending.is_undo {
            true => _ = self.history.pop(),
            false => self.history.push(before),
        }
        if self.history.len() > HISTORY_MAX {
            self.history.remove(0);
        }
        Asked::Pending
    }

    /// Handles a refusal. If the applied selection is refused, because the log has grown, all
    /// requests are selected from now on, as the engine does.
    pub(super) fn refuse(&mut self, id: u64) -> Asked {
        if self.pending.take_if(|it| it.id == id).is_some() {
            self.ask_again();
            return Asked::Pending;
        }
        if id != self.applied_id {
            return Asked::Earlier;
        }
        self.history.clear();
        self.applied = Selection::default();
        Asked::Applied
    }

    pub(super) fn note_progress(&mut self, id: u64, fraction: f64) {
        if let Some(pending) = self.pending.as_mut().filter(|it| it.id == id) {
            pending.fraction = fraction;
        }
    }

    /// Removes and returns the questions for the engine.
    pub(super) fn take_questions(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.questions)
    }

    fn pend(&mut self, selection: Selection, is_undo: bool) {
        let id = self.ask(&selection);
        self.pending = Some(Pending {
            selection,
            fraction: 0.0,
            id,
            is_undo,
        });
    }

    /// Asks for the figures of the applied selection. The engine keeps the last figures up to date,
    /// which may be those of another selection that was asked for since.
    fn ask_again(&mut self) {
        self.applied_id = self.ask(&self.applied.clone());
    }

    fn ask(&mut self, selection: &Selection) -> u64 {
        self.last_id += 1;
        self.questions.push(Question::Figures {
            id: self.last_id,
            query: selection.query(self.rows_max),
        });
        self.last_id
    }
}
