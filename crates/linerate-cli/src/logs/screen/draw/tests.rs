use ratatui::crossterm::event::KeyCode::{self, Char, Down, Enter, Tab};

use crate::logs::screen::stage::{Stage, twenty_minutes};

fn stage(size: (u16, u16)) -> Stage {
    Stage::new(&twenty_minutes(), size)
}

#[test]
fn the_view_fits_a_terminal_of_80_columns() {
    let mut stage = stage((80, 24));
    stage.press([Tab, Tab, Down]);
    let screen = stage.screen();
    for expected in [
        " linerate logs  access.log combined",
        "1,200 requests",
        "40.0 % errors",
        "all requests, 2021-01-22 01:00:00 – 01:19:59 UTC",
        "Requests over time   each column is 20 seconds, peak 20",
        "4xx ",
        "5xx ",
        "2021-01-22 01:00:00 UTC",
        " Statuses ━",
        "requests   share",
        "▸      400  33.3 %",
        "Enter filter",
    ] {
        assert!(screen.contains(expected), "{expected:?}");
    }
    assert_eq!(screen.lines().count(), 24);
    stage.press([Enter]);
    let screen = stage.screen();
    for expected in [
        " 400 of 1,200 requests",
        "  status == 404",
        "✓      400  100.0 %",
    ] {
        assert!(screen.contains(expected), "{expected:?} in\n{screen}");
    }
}

#[test]
fn one_path_is_not_called_paths() {
    let mut stage = stage((120, 40));
    stage.press([Enter]);
    let screen = stage.screen();
    assert!(screen.contains("   1 path\n"), "{screen}");
}

#[test]
fn a_large_terminal_shows_many_tables_at_once() {
    let screen = stage((200, 50)).screen();
    let tables = [
        "Paths",
        "Addresses",
        "Statuses",
        "Agents",
        "Referrers",
        "Methods",
    ];
    for name in tables {
        assert!(screen.contains(&format!("{name} ")), "{name} in\n{screen}");
    }
    assert!(screen.matches('╭').count() >= 5, "{screen}");
}

#[test]
fn no_size_of_the_terminal_is_a_problem() {
    let mut stage = stage((80, 24));
    let modes: [&[KeyCode]; 6] = [
        &[],
        &[Char('t')],
        &[Tab, Char('/'), Char('=')],
        &[KeyCode::Esc, Char('?')],
        &[KeyCode::Esc, Char('e'), KeyCode::Right],
        &[Char('/'), Char('x')],
    ];
    for keys in modes {
        stage.press(keys.iter().copied());
        for height in [1, 2, 5, 6, 7, 9, 10, 12, 16, 20, 24, 60] {
            for width in [1, 19, 20, 40, 60, 200] {
                stage.resize(width, height);
            }
        }
        stage.resize(80, 24);
    }
    let screen = stage.resize(40, 10).join("\n");
    assert!(screen.contains("lines"), "{screen}");
    assert!(stage.resize(19, 5).join("").contains("terminal too"));
}

#[test]
fn a_small_terminal_shows_rows_and_keys() {
    let screen = stage((40, 10)).screen();
    for expected in ["Paths", "requests", "▸", "Enter filter"] {
        assert!(screen.contains(expected), "{expected:?} in\n{screen}");
    }
    // The chart does not fit, so that it cannot have the focus.
    let mut stage = stage((40, 10));
    stage.press([Char('t')]);
    assert!(stage.screen().contains("no chart"));
    stage.press([KeyCode::BackTab, Tab]);
    assert_eq!(stage.state.tables.focus(), 0);
}

#[test]
fn what_steers_a_terminal_is_never_drawn() {
    let hostile = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{2066}\r\u{8}";
    let log = format!(
        "{}192.0.2.7 - {hostile} [22/Jan/2021:01:00:00 +0000] \"GET /{hostile} HTTP/1.1\" 200 1 \"{hostile}\" \"{hostile}\"\n{hostile}\n",
        twenty_minutes()
    );
    let mut stage = Stage::new(&log, (200, 60));
    stage.state.name = hostile.to_owned();
    let check = |stage: &mut Stage| {
        let screen = stage.screen();
        let steers = |char: char| char.is_control() || "\u{202e}\u{2066}".contains(char);
        let lines = screen.lines();
        assert!(!lines.flat_map(str::chars).any(steers), "{screen}");
        screen
    };
    assert!(check(&mut stage).contains("\\u{1b}]0;x\\u{7}"));
    let count = stage.state.tables.panels().len();
    for _ in 0..count {
        stage.press([KeyCode::End, Tab]);
        check(&mut stage);
    }
    stage.press([Char('e'), KeyCode::End]);
    assert!(check(&mut stage).contains("\\u{202e}"));
    stage.press([Char('/')]);
    stage.submit(hostile);
    check(&mut stage);
    stage.press([KeyCode::Esc, Char('/')]);
    stage.submit(hostile);
    check(&mut stage);
}

#[test]
fn without_colours_the_selection_and_errors_can_still_be_seen() {
    let mut stage = stage((80, 24));
    stage.press([Tab, Tab, Down]);
    stage.draw(false);
    let buffer = stage.buffer();
    let has_color = |cell: &ratatui::buffer::Cell| {
        let plain = ratatui::style::Color::Reset;
        cell.fg != plain || cell.bg != plain
    };
    assert!(!buffer.content().iter().any(has_color));
    let screen = stage.draw(false).join("\n");
    assert!(screen.contains("▸ ") && screen.contains("4xx") && screen.contains("errors"));
    stage.draw(true);
    assert!(stage.buffer().content().iter().any(has_color));
}

#[test]
fn an_error_is_shown_at_the_field() {
    let mut stage = stage((80, 24));
    stage.press([Char('/')]);
    stage.submit("status = 404");
    let screen = stage.screen();
    assert!(
        screen.contains(" Filter: status = 404\n✗ column 8: found =, expected =="),
        "{screen}"
    );
    assert!(screen.contains(" all requests, "), "{screen}");
}

#[test]
fn keys_are_listed_on_demand() {
    let mut stage = stage((80, 24));
    stage.press([Char('?')]);
    let screen = stage.screen();
    for expected in ["Keys", "Backspace  u", "undo the last change", "Ctrl-C"] {
        assert!(screen.contains(expected), "{expected:?} in\n{screen}");
    }
    stage.press([KeyCode::Esc]);
    assert!(!stage.screen().contains("undo the last change"));
}
