use linerate_logview::aggregate::Limits;
use ratatui::crossterm::event::KeyCode::{self, Backspace, Char, Down, Enter, Esc, Left, Tab};

use crate::logs::screen::action::Mode;
use crate::logs::screen::message::Update;
use crate::logs::screen::stage::{Stage, twenty_minutes};

const SIZE: (u16, u16) = (80, 24);

fn stage() -> Stage {
    Stage::new(&twenty_minutes(), SIZE)
}

fn filters(stage: &Stage) -> Vec<&str> {
    stage
        .state
        .filtering
        .applied
        .filters
        .iter()
        .map(|it| &**it)
        .collect()
}

fn count(is_counted: impl Fn(&str) -> bool) -> u64 {
    let log = twenty_minutes();
    log.lines().filter(|line| is_counted(line)).count() as u64
}

#[test]
fn enter_filters_by_the_selected_value_and_again_removes_the_filter() {
    let mut stage = stage();
    assert_eq!(stage.requests(), 1_200);
    stage.press([Tab, Down, Enter]);
    assert_eq!(filters(&stage), ["address == \"192.0.2.1\""]);
    assert_eq!(
        stage.requests(),
        count(|line| line.starts_with("192.0.2.1 "))
    );
    stage.press([Tab, Enter]);
    assert_eq!(filters(&stage).len(), 2);
    let of_both = |line: &str| line.starts_with("192.0.2.1 ") && line.contains("\" 404 ");
    let of_other = |line: &str| line.starts_with("192.0.2.1 ") && line.contains("\" 200 ");
    assert_eq!(stage.requests(), count(of_both).max(count(of_other)));
    // The tables have only this value now.
    stage.press([Enter]);
    assert_eq!(filters(&stage), ["address == \"192.0.2.1\""]);
    stage.press([KeyCode::BackTab, Enter]);
    assert_eq!((filters(&stage).len(), stage.requests()), (0, 1_200));
}

#[test]
fn every_change_of_filters_can_be_undone_in_order() {
    let mut stage = stage();
    stage.press([Enter, Tab, Enter, Char('c')]);
    assert_eq!(stage.requests(), 1_200);
    for expected in [2, 1, 0] {
        stage.press([Backspace]);
        assert_eq!(filters(&stage).len(), expected);
    }
    stage.press([Char('u')]);
    assert_eq!(stage.state.notice.as_ref().unwrap().text, "nothing to undo");
    assert_eq!(stage.requests(), 1_200);
}

#[test]
fn other_values_remain_if_one_is_excluded() {
    let mut stage = stage();
    stage.press([Tab, Tab, Char('x')]);
    assert_eq!(filters(&stage), ["status != 200"]);
    assert_eq!(stage.requests(), count(|line| !line.contains("\" 200 ")));
}

#[test]
fn typed_filters_are_checked_before_they_are_applied() {
    let mut stage = stage();
    stage.press([Char('/')]);
    stage.submit("status = 404");
    let prompt = stage.state.prompt.as_ref().unwrap();
    assert_eq!(prompt.problem.as_ref().unwrap().0, Some(8));
    assert!(stage.state.filtering.applied.is_all() && stage.state.filtering.pending.is_none());
    assert_eq!(stage.state.mode(), Mode::Prompt);
    stage.press([Left, Left, Left, Left, Char('=')]);
    assert!(stage.state.prompt.as_ref().unwrap().problem.is_none());
    stage.press([Enter]);
    assert_eq!(filters(&stage), ["status == 404"]);
    assert_eq!(stage.requests(), count(|line| line.contains("\" 404 ")));
    stage.press([Char('/')]);
    stage.submit("curl");
    assert_eq!(stage.state.mode(), Mode::Tables);
    let of_both = |line: &str| line.contains("\" 404 ") && line.contains("curl");
    assert_eq!(stage.requests(), count(of_both));
}

#[test]
fn a_filter_that_the_log_cannot_answer_is_never_applied() {
    let mut limits = Limits::default();
    limits.paths_max = 2;
    let mut stage = Stage::with_limits(&twenty_minutes(), SIZE, limits);
    stage.press([Char('/')]);
    stage.submit("path.contains(\"api\")");
    let prompt = stage.state.prompt.as_ref().unwrap();
    let (_, problem) = prompt.problem.as_ref().unwrap();
    assert!(problem.contains("values of path"), "{problem}");
    assert!(stage.state.filtering.applied.is_all() && stage.requests() == 1_200);
    stage.press([Esc]);
    assert_eq!(stage.state.mode(), Mode::Tables);
    assert!(stage.state.filtering.pending.is_none() && stage.state.prompt.is_none());
}

#[test]
fn figures_follow_the_log_and_keep_their_filter() {
    let mut stage = stage();
    stage.press([Tab, Tab, Down, Enter]);
    let before = stage.requests();
    assert_eq!(filters(&stage), ["status == 404"]);
    stage.grow("::1 - - [22/Jan/2021:01:30:00 +0000] \"GET / HTTP/1.1\" 404 1\n");
    assert_eq!(stage.requests(), before + 1);
}

#[test]
fn filters_are_removed_with_a_message_once_the_log_cannot_answer_them() {
    let mut limits = Limits::default();
    limits.paths_max = 6;
    let mut stage = Stage::with_limits(&twenty_minutes(), SIZE, limits);
    stage.press([Char('/')]);
    stage.submit("path.contains(\"api\")");
    assert_eq!(filters(&stage).len(), 1);
    let line = |n| format!("::1 - - [22/Jan/2021:01:30:00 +0000] \"GET /new{n} HTTP/1.1\" 200 1\n");
    stage.grow(&(0..9).map(line).collect::<String>());
    assert!(
        stage.state.filtering.applied.is_all() && stage.state.notice.as_ref().unwrap().is_error
    );
    assert_eq!(stage.requests(), 1_209);
    stage.press([Backspace]);
    assert!(stage.state.filtering.applied.is_all());
}

#[test]
fn a_question_under_way_is_replaced_or_cancelled() {
    let mut stage = stage();
    stage.press_at_once([Enter, Tab, Down, Enter]);
    assert!(stage.state.filtering.applied.is_all() && stage.state.filtering.pending.is_some());
    stage.settle();
    assert_eq!(filters(&stage), ["address == \"192.0.2.1\""]);
    stage.press_at_once([Tab, Enter, Backspace]);
    assert!(stage.state.filtering.pending.is_none());
    stage.settle();
    assert_eq!(filters(&stage), ["address == \"192.0.2.1\""]);
}

#[test]
fn the_period_is_narrowed_in_the_chart() {
    let mut stage = stage();
    stage.press([Char('[')]);
    assert_eq!(stage.state.mode(), Mode::Chart);
    let text = &stage.state.notice.as_ref().unwrap().text;
    assert!(text.contains("begins the period"), "{text}");
    stage.press([KeyCode::Home, KeyCode::Right, Char('[')]);
    let (from, until) = (
        stage.state.filtering.applied.from.unwrap(),
        stage.state.filtering.applied.until,
    );
    assert!(until.is_none() && stage.requests() < 1_200);
    stage.press([KeyCode::End, Left, Char(']')]);
    let until = stage.state.filtering.applied.until.unwrap();
    let expected = (0..1_200).filter(|second| (from..until).contains(&(1_611_277_200 + second)));
    assert_eq!(stage.requests(), expected.count() as u64);
    let before = stage.requests();
    stage.press([Enter]);
    let (from, until) = (
        stage.state.filtering.applied.from.unwrap(),
        stage.state.filtering.applied.until.unwrap(),
    );
    assert_eq!(stage.requests(), (until - from) as u64);
    stage.press([Backspace]);
    assert_eq!(stage.requests(), before);
    stage.press([Tab]);
    assert_eq!(stage.state.mode(), Mode::Tables);
}

#[test]
fn lines_of_the_selected_requests_are_shown_and_searched() {
    let mut stage = stage();
    stage.press([Tab, Tab, Down, Enter, Char('e')]);
    let excerpt = stage.state.excerpt.as_ref().unwrap();
    assert_eq!(excerpt.total, Some(400));
    assert!(
        excerpt
            .visible()
            .iter()
            .all(|line| line.text.contains("\" 404 "))
    );
    assert_eq!(excerpt.visible().len(), 20);
    stage.press([Char('/')]);
    stage.submit("curl");
    let of_both = |line: &str| line.contains("\" 404 ") && line.contains("curl");
    let excerpt = stage.state.excerpt.as_ref().unwrap();
    assert_eq!(excerpt.total, Some(count(of_both)));
    assert!(
        excerpt
            .visible()
            .iter()
            .all(|line| line.text.contains("curl"))
    );
    stage.press([Char('u')]);
    assert_eq!(stage.state.excerpt.as_ref().unwrap().total, Some(400));
    stage.grow("::1 - - [22/Jan/2021:01:30:00 +0000] \"GET / HTTP/1.1\" 404 1\n");
    assert_eq!(stage.state.excerpt.as_ref().unwrap().total, Some(401));
    stage.press([KeyCode::End]);
    let last = stage
        .state
        .excerpt
        .as_ref()
        .unwrap()
        .visible()
        .last()
        .unwrap();
    assert!(last.text.starts_with("::1 "));
    stage.press([Esc]);
    assert_eq!(stage.state.mode(), Mode::Tables);
}

#[test]
fn what_cannot_be_selected_says_why() {
    let log = format!("{}not a request\n", twenty_minutes());
    let mut stage = Stage::new(&log, SIZE);
    let names = stage.state.tables.panels().iter().map(|it| it.name);
    let place = names
        .into_iter()
        .position(|name| name == "Lines that did not parse")
        .unwrap();
    stage.press(vec![Tab; place].into_iter().chain([Enter]));
    assert!(stage.state.filtering.applied.is_all());
    let text = &stage.state.notice.as_ref().unwrap().text;
    assert!(text.contains("are not requests"), "{text}");
}

#[test]
fn a_failure_to_read_ends_the_view_only_if_there_is_nothing_to_show() {
    let mut stage = stage();
    stage
        .state
        .update(Update::Failed(anyhow::anyhow!("no such disk")));
    assert!(!stage.state.is_hopeless());
    assert!(stage.screen().contains("reading failed"));
    let mut stage = Stage::new("", SIZE);
    assert!(!stage.state.is_hopeless());
    stage
        .state
        .update(Update::Failed(anyhow::anyhow!("no such disk")));
    assert!(stage.state.is_hopeless());
}
