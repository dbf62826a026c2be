//! Keys, and what they do in each mode.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::action::{Action, Mode, Move};
use super::excerpt::Scroll;
use super::field::Edit;

/// Keys and what they do, for the help.
pub(super) const HELP: &[(&str, &str)] = &[
    ("Tab  ← →", "next or previous table; t: the chart"),
    ("↑ ↓  PgUp PgDn", "move within a table"),
    ("Enter", "filter by this value; again: remove the filter"),
    ("x", "exclude the requests with this value"),
    ("Backspace  u", "undo the last change of filters"),
    ("c", "remove all filters"),
    ("/", "type a filter, or a text to look for"),
    ("e", "show the lines of the selected requests"),
    ("t", "chart: ← → move, Enter selects a column,"),
    ("[  ]", "begin or end the period at this column"),
    ("q  Esc  Ctrl-C", "leave"),
];

/// Returns what a key does.
pub(super) fn action(mode: Mode, key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    if is_control && key.code == KeyCode::Char('c') {
        return Some(Action::Quit);
    }
    match mode {
        Mode::Prompt => in_prompt(key.code, is_control),
        _ if is_control || key.modifiers.contains(KeyModifiers::ALT) => None,
        Mode::Chart => in_chart(key.code),
        Mode::Excerpt => in_excerpt(key.code),
        Mode::Help => in_help(key.code),
        Mode::Tables => in_tables(key.code),
    }
}

fn in_tables(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Down | KeyCode::Char('j') => Action::Move(Move::Next),
        KeyCode::End | KeyCode::Char('G') => Action::Move(Move::Last),
        KeyCode::Home | KeyCode::Char('g') => Action::Move(Move::First),
        KeyCode::Left | KeyCode::Char('h') => Action::FocusPrevious,
        KeyCode::PageDown => Action::Move(Move::PageNext),
        KeyCode::PageUp => Action::Move(Move::PagePrevious),
        KeyCode::Right | KeyCode::Char('l') => Action::FocusNext,
        KeyCode::Up | KeyCode::Char('k') => Action::Move(Move::Previous),
        KeyCode::Char('x') => Action::Exclude,
        code => return anywhere(code),
    })
}

fn in_chart(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::End | KeyCode::Char('G') => Action::Move(Move::Last),
        KeyCode::Home | KeyCode::Char('g') => Action::Move(Move::First),
        KeyCode::Left | KeyCode::Char('h') => Action::Move(Move::Previous),
        KeyCode::PageDown => Action::Move(Move::PageNext),
        KeyCode::PageUp => Action::Move(Move::PagePrevious),
        KeyCode::Right | KeyCode::Char('l') => Action::Move(Move::Next),
        KeyCode::Down | KeyCode::Char('j' | 't') => Action::FocusNext,
        KeyCode::Up | KeyCode::Char('k') => Action::FocusPrevious,
        code => return anywhere(code),
    })
}

/// Returns what a key does both in the chart and in tables.
fn anywhere(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::BackTab => Action::FocusPrevious,
        KeyCode::Tab => Action::FocusNext,
        KeyCode::Backspace | KeyCode::Char('u') => Action::Undo,
        KeyCode::Enter => Action::Toggle,
        KeyCode::Esc | KeyCode::Char('q') => Action::Quit,
        KeyCode::F(1) | KeyCode::Char('?') => Action::OpenHelp,
        KeyCode::Char('/') => Action::OpenPrompt,
        KeyCode::Char('[') => Action::PeriodStart,
        KeyCode::Char(']') => Action::PeriodEnd,
        KeyCode::Char('c') => Action::ClearFilters,
        KeyCode::Char('e') => Action::OpenExcerpt,
        KeyCode::Char('t') => Action::FocusChart,
        _ => return None,
    })
}

fn in_excerpt(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Down | KeyCode::Enter | KeyCode::Char('j') => Action::Scroll(Scroll::Down),
        KeyCode::End | KeyCode::Char('G') => Action::Scroll(Scroll::End),
        KeyCode::Home | KeyCode::Char('g') => Action::Scroll(Scroll::Home),
        KeyCode::Left | KeyCode::Char('h') => Action::Scroll(Scroll::Left),
        KeyCode::PageDown | KeyCode::Char(' ') => Action::Scroll(Scroll::PageDown),
        KeyCode::PageUp => Action::Scroll(Scroll::PageUp),
        KeyCode::Right | KeyCode::Char('l') => Action::Scroll(Scroll::Right),
        KeyCode::Up | KeyCode::Char('k') => Action::Scroll(Scroll::Up),
        KeyCode::Char('/') => Action::OpenPrompt,
        KeyCode::Backspace | KeyCode::Char('u') => Action::Undo,
        KeyCode::Esc | KeyCode::Char('e' | 'q') => Action::Close,
        KeyCode::F(1) | KeyCode::Char('?') => Action::OpenHelp,
        _ => return None,
    })
}

fn in_help(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Enter | KeyCode::Esc | KeyCode::F(1) | KeyCode::Char('?' | 'q' | ' ') => {
            Some(Action::Close)
        }
        _ => None,
    }
}

fn in_prompt(code: KeyCode, is_control: bool) -> Option<Action> {
    Some(Action::Edit(match code {
        KeyCode::Enter => return Some(Action::Submit),
        KeyCode::Esc => return Some(Action::Close),
        KeyCode::Backspace => Edit::Backspace,
        KeyCode::Delete => Edit::Delete,
        KeyCode::End => Edit::End,
        KeyCode::Home => Edit::Home,
        KeyCode::Left => Edit::Left,
        KeyCode::Right => Edit::Right,
        KeyCode::Char('a') if is_control => Edit::Home,
        KeyCode::Char('e') if is_control => Edit::End,
        KeyCode::Char('u') if is_control => Edit::Clear,
        KeyCode::Char('w') if is_control => Edit::DeleteWord,
        KeyCode::Char(_) if is_control => return None,
        KeyCode::Char(char) => Edit::Insert(char.to_string()),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

    use super::{action, in_prompt};
    use crate::logs::screen::action::{Action, Mode, Move};
    use crate::logs::screen::excerpt::Scroll;
    use crate::logs::screen::field::Edit;

    const MODES: [Mode; 5] = [
        Mode::Chart,
        Mode::Excerpt,
        Mode::Help,
        Mode::Prompt,
        Mode::Tables,
    ];

    fn press(mode: Mode, code: KeyCode) -> Option<Action> {
        action(mode, KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn every_mode_can_be_left() {
        for mode in MODES {
            let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
            assert_eq!(action(mode, interrupt), Some(Action::Quit), "{mode:?}");
            let expected = match mode {
                Mode::Chart | Mode::Tables => Action::Quit,
                _ => Action::Close,
            };
            assert_eq!(press(mode, KeyCode::Esc), Some(expected), "{mode:?}");
        }
    }

    #[test]
    fn arrows_move_between_tables_and_rows_or_along_the_chart() {
        let (tables, chart) = (Mode::Tables, Mode::Chart);
        assert_eq!(press(tables, KeyCode::Down), Some(Action::Move(Move::Next)));
        assert_eq!(press(tables, KeyCode::Right), Some(Action::FocusNext));
        assert_eq!(press(chart, KeyCode::Right), Some(Action::Move(Move::Next)));
        assert_eq!(press(chart, KeyCode::Down), Some(Action::FocusNext));
        let sideways = Some(Action::Scroll(Scroll::Right));
        assert_eq!(press(Mode::Excerpt, KeyCode::Right), sideways);
        for mode in [tables, chart] {
            assert_eq!(press(mode, KeyCode::Tab), Some(Action::FocusNext));
            assert_eq!(press(mode, KeyCode::BackTab), Some(Action::FocusPrevious));
        }
    }

    #[test]
    fn letters_are_typed_in_a_prompt_and_commands_elsewhere() {
        let typed = Some(Action::Edit(Edit::Insert("q".into())));
        assert_eq!(press(Mode::Prompt, KeyCode::Char('q')), typed);
        assert_eq!(press(Mode::Tables, KeyCode::Char('q')), Some(Action::Quit));
        assert_eq!(in_prompt(KeyCode::Char('z'), true), None);
        let deleted = Some(Action::Edit(Edit::DeleteWord));
        assert_eq!(in_prompt(KeyCode::Char('w'), true), deleted);
        let alt = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT);
        assert_eq!(action(Mode::Tables, alt), None);
    }

    #[test]
    fn a_key_acts_when_it_is_pressed_and_not_when_it_is_released() {
        let mut key = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert_eq!(action(Mode::Tables, key), None);
    }
}
