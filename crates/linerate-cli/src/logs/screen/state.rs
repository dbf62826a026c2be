//! The state of the view. It changes by the user's actions and the engine's updates, and asks the
//! engine questions.

use linerate_logview::{query::QueryError, summary::Summary};

use super::action::{Action, Mode, Move};
use super::columns::Columns;
use super::excerpt::Excerpt;
use super::field::TextField;
use super::filtering::{Asked, Filtering};
use super::message::{Progress, Update};
use super::panels::panels;
use super::selection::{Selection, typed};
use super::tables::{Tables, moved};
use crate::terminal::with_causes;

/// Everything that is drawn.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The name of the log.
    pub(super) name: String,
    pub(super) has_countries: bool,
    pub(super) progress: Progress,
    /// The figures of the requests that are selected.
    pub(super) figures: Option<Box<Summary>>,
    pub(super) filtering: Filtering,
    pub(super) tables: Tables,
    /// The selected time in the chart, if the chart has the focus.
    pub(super) chart_at: Option<i64>,
    pub(super) prompt: Option<Prompt>,
    pub(super) excerpt: Option<Excerpt>,
    pub(super) is_help_open: bool,
    pub(super) notice: Option<Notice>,
    pub(super) sizes: Sizes,
    /// Why reading has failed.
    pub(super) failure: Option<anyhow::Error>,
    /// True if the user has left the view.
    pub(super) has_ended: bool,
}

/// A filter that is being typed.
#[derive(Clone, Debug, Default)]
pub(super) struct Prompt {
    pub(super) field: TextField,
    /// Why the filter is refused, and the column of the reason if it is known.
    pub(super) problem: Option<(Option<usize>, String)>,
}

/// A message to the user, until the next action.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// How much was visible when the view was drawn last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    /// The width of the chart in columns; 0 if it is not visible.
    pub(super) chart: usize,
    /// The number of rows of a table.
    pub(super) rows: usize,
    /// The number of lines of the excerpt.
    pub(super) lines: usize,
}

impl State {
    /// Creates the state of a log that begins with a selection.
    pub(super) fn new(name: String, rows_max: usize, selection: Selection) -> Self {
        Self {
            name,
            filtering: Filtering::new(rows_max, selection),
            ..Self::default()
        }
    }

    /// Returns what the keys refer to.
    pub(super) fn mode(&self) -> Mode {
        let finds = self.excerpt.as_ref().is_some_and(|it| it.typed.is_some());
        if self.is_help_open {
            Mode::Help
        } else if self.prompt.is_some() || finds {
            Mode::Prompt
        } else if self.excerpt.is_some() {
            Mode::Excerpt
        } else if self.chart_at.is_some() {
            Mode::Chart
        } else {
            Mode::Tables
        }
    }

    /// Returns the columns of the chart as they were drawn last; `None` if it was not visible.
    pub(super) fn columns(&self) -> Option<Columns> {
        let timeline = &self.figures.as_ref()?.timeline;
        Columns::of(timeline, self.sizes.chart).filter(|_| self.sizes.chart > 0)
    }

    pub(super) fn act(&mut self, action: Action) {
        self.notice = None;
        match action {
            Action::ClearFilters => self.filtering.apply(Selection::default()),
            Action::Close => self.close(),
            Action::Edit(edit) => {
                if self.prompt.is_some() {
                    self.filtering.cancel();
                }
                if let Some(field) = self.field() {
                    field.edit(edit);
                }
                self.check_prompt();
            }
            Action::Exclude => self.filter_by_row("!="),
            Action::FocusChart => {
                if !self.focus_chart() {
                    let text = "no chart: there are no requests, or the terminal is too small";
                    self.notice = Some(Notice::of(text));
                }
            }
            Action::FocusNext => self.focus_next(),
            Action::FocusPrevious => self.focus_previous(),
            Action::Move(to) => self.move_cursor(to),
            Action::OpenExcerpt => self.excerpt = Some(Excerpt::default()),
            Action::OpenHelp => self.is_help_open = true,
            Action::OpenPrompt => match &mut self.excerpt {
                Some(excerpt) => excerpt.typed = Some(TextField::default()),
                None => self.prompt = Some(Prompt::default()),
            },
            Action::PeriodEnd | Action::PeriodStart => self.cut_period(&action),
            Action::Quit => self.has_ended = true,
            Action::Scroll(scroll) => {
                if let Some(excerpt) = &mut self.excerpt {
                    excerpt.scroll(scroll);
                }
            }
            Action::Submit => self.submit(),
            Action::Toggle if self.chart_at.is_some() => self.select_column(),
            Action::Toggle => self.filter_by_row("=="),
            Action::Undo => self.undo(),
        }
        self.load_lines();
    }

    pub(super) fn update(&mut self, update: Update) {
        match update {
            Update::Failed(error) => {
                let text = format!("reading has failed: {}", with_causes(&error));
                self.notice = Some(Notice::error(text));
                self.failure = Some(error);
            }
            Update::Figures { id, summary } => self.show(id, summary),
            Update::Lines { id, rows } if self.filtering.wants_lines(id) => {
                if let Some(excerpt) = &mut self.excerpt {
                    match rows {
                        Ok(rows) => excerpt.load(rows),
                        Err(error) => excerpt.refuse(error.to_string()),
                    }
                }
            }
            Update::Lines { .. } => {}
            Update::Progress(progress) => self.progress = progress,
            Update::Refused { id, error } => self.refuse(id, &error),
            Update::Searching { id, fraction } => self.filtering.note_progress(id, fraction),
        }
        self.load_lines();
    }

    /// Returns whether the log has no requests and will not get any.
    pub(super) fn is_hopeless(&self) -> bool {
        self.failure.is_some() && self.progress.requests == 0
    }

    /// Asks for lines of the excerpt that are visible but not loaded.
    pub(super) fn load_lines(&mut self) {
        let lines = self.sizes.lines;
        let Some(excerpt) = &mut self.excerpt else {
            return;
        };
        excerpt.height = lines;
        if let Some(offset) = excerpt.missing() {
            self.ask_lines(offset);
        }
    }

    fn show(&mut self, id: u64, summary: Box<Summary>) {
        match self.filtering.accept(id) {
            Asked::Applied => {}
            Asked::Earlier => return,
            Asked::Pending => {
                self.prompt.take_if(|prompt| prompt.is_submitted());
                if let Some(excerpt) = &mut self.excerpt {
                    // These are lines of other requests.
                    excerpt.find(excerpt.text.clone());
                }
            }
        }
        self.tables.replace(panels(&summary));
        self.figures = Some(summary);
        if let Some(offset) = self.excerpt.as_mut().and_then(Excerpt::refresh) {
            self.ask_lines(offset);
        }
    }

    fn refuse(&mut self, id: u64, error: &QueryError) {
        let prompt = self.prompt.as_mut().filter(|it| it.is_submitted());
        match (self.filtering.refuse(id), prompt) {
            (Asked::Pending, Some(prompt)) => prompt.problem = Some((None, error.to_string())),
            (Asked::Pending, None) => self.notice = Some(Notice::error(error.to_string())),
            (Asked::Applied, _) => {
                let text = format!("the filters were removed: {error}");
                self.notice = Some(Notice::error(text));
            }
            (Asked::Earlier, _) => {}
        }
    }

    /// Returns the text that is being typed.
    fn field(&mut self) -> Option<&mut TextField> {
        match (&mut self.prompt, &mut self.excerpt) {
            (Some(prompt), _) => Some(&mut prompt.field),
            (None, Some(excerpt)) => excerpt.typed.as_mut(),
            (None, None) => None,
        }
    }

    fn check_prompt(&mut self) {
        let has_countries = self.has_countries;
        if let Some(prompt) = &mut self.prompt {
            let text = prompt.field.text();
            prompt.problem = match text.trim().is_empty() {
                true => None,
                false => typed(&text, has_countries).err(),
            };
        }
    }

    fn close(&mut self) {
        if self.is_help_open {
            self.is_help_open = false;
        } else if self.prompt.take().is_some() {
            self.filtering.cancel();
        } else if let Some(excerpt) = &mut self.excerpt
            && excerpt.typed.take().is_none()
        {
            self.excerpt = None;
        }
    }

    fn submit(&mut self) {
        if let Some(excerpt) = &mut self.excerpt {
            if let Some(field) = excerpt.typed.take() {
                excerpt.find(field.text());
            }
            return;
        }
        let Some(prompt) = &self.prompt else { return };
        let text = prompt.field.text();
        if text.trim().is_empty() {
            self.prompt = None;
            return;
        }
        match typed(&text, self.has_countries) {
            Ok(filter) if self.filtering.applied.filters.contains(&filter) => self.prompt = None,
            Ok(filter) => self
                .filtering
                .apply(self.filtering.applied.toggled(&filter)),
            Err(problem) => {
                if let Some(prompt) = &mut self.prompt {
                    prompt.problem = Some(problem);
                }
            }
        }
    }

    fn filter_by_row(&mut self, comparison: &str) {
        let Some(row) = self.tables.selected() else {
            return;
        };
        match row.target.filter(comparison) {
            Ok(filter) => self
                .filtering
                .apply(self.filtering.applied.toggled(&filter)),
            Err(reason) => self.notice = Some(Notice::of(reason)),
        }
    }

    fn ask_lines(&mut self, offset: u64) {
        let text = self.excerpt.as_ref().map(|it| it.text.clone());
        self.filtering.ask_lines(text.unwrap_or_default(), offset);
    }

    fn undo(&mut self) {
        if let Some(excerpt) = &mut self.excerpt {
            if !excerpt.text.is_empty() {
                excerpt.find(String::new());
            }
        } else if !self.filtering.cancel() && !self.filtering.undo() {
            self.notice = Some(Notice::of("nothing to undo"));
        }
    }

    /// Moves the focus to the chart. Returns false if it is not visible.
    fn focus_chart(&mut self) -> bool {
        let last = self.columns().map(|columns| columns.end.saturating_sub(1));
        self.chart_at = last;
        last.is_some()
    }

    /// Moves the focus to the next table; from the last one to the chart, and from there to the
    /// first.
    fn focus_next(&mut self) {
        let was_chart = self.chart_at.take().is_some();
        if was_chart || (!self.tables.focus_next() && !self.focus_chart()) {
            self.tables.focus_first();
        }
    }

    fn focus_previous(&mut self) {
        let was_chart = self.chart_at.take().is_some();
        if was_chart || (!self.tables.focus_previous() && !self.focus_chart()) {
            self.tables.focus_last();
        }
    }

    fn move_cursor(&mut self, to: Move) {
        let (Some(at), Some(columns)) = (self.chart_at, self.columns()) else {
            self.tables.move_cursor(to, self.sizes.rows);
            return;
        };
        let count = columns.all.len();
        let column = moved(columns.at(at), to, count.div_ceil(8), count - 1);
        self.chart_at = Some(columns.period(column).from);
    }

    fn select_column(&mut self) {
        if let (Some(at), Some(columns)) = (self.chart_at, self.columns()) {
            let period = columns.period(columns.at(at));
            self.filtering.apply(self.filtering.applied.within(period));
        }
    }

    fn cut_period(&mut self, side: &Action) {
        let (Some(at), Some(columns)) = (self.chart_at, self.columns()) else {
            if self.focus_chart() {
                let text = "← → choose a column; [ begins the period there, ] ends it";
                self.notice = Some(Notice::of(text));
            }
            return;
        };
        let period = columns.period(columns.at(at));
        let mut cut = self.filtering.applied.clone();
        match side {
            Action::PeriodStart => cut.from = Some(period.from),
            _ => cut.until = Some(period.until),
        }
        match cut.from.zip(cut.until) {
            Some((from, until)) if from >= until => {
                self.notice = Some(Notice::of("the period would end before it begins"));
            }
            _ => self.filtering.apply(cut),
        }
    }
}

impl Prompt {
    /// Returns whether the pending filter was typed here. Typing cancels any other.
    fn is_submitted(&self) -> bool {
        !self.field.text().is_empty()
    }
}

impl Notice {
    fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_error: false,
        }
    }

    fn error(text: String) -> Self {
        Self {
            text,
            is_error: true,
        }
    }
}

#[cfg(test)]
mod tests;
