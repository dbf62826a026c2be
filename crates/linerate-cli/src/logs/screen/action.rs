//! What the user can do.

use super::excerpt::Scroll;
use super::field::Edit;

/// What a key does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Action {
    /// Removes all filters and the period.
    ClearFilters,
    /// Closes what is open above the tables.
    Close,
    Edit(Edit),
    /// Selects all requests except those with the selected value.
    Exclude,
    /// Moves between the tables and the chart: the next one, or the previous one.
    FocusNext,
    FocusPrevious,
    FocusChart,
    Move(Move),
    OpenExcerpt,
    OpenHelp,
    OpenPrompt,
    /// Ends the period with the selected column of the chart.
    PeriodEnd,
    /// Begins the period with the selected column of the chart.
    PeriodStart,
    Quit,
    Scroll(Scroll),
    /// Applies what was typed.
    Submit,
    /// Selects the requests with the selected value, or no longer does.
    Toggle,
    Undo,
}

/// Where the selection moves within a table or the chart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Move {
    First,
    Last,
    Next,
    PageNext,
    PagePrevious,
    Previous,
}

/// What the keys refer to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    Chart,
    Excerpt,
    Help,
    /// A text is being typed.
    Prompt,
    Tables,
}
