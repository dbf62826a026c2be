//! Questions about figures.

use super::flow::{Client, LINE, types};
use crate::session::{Limits, Outcome, QUESTIONS_MAX, SessionError};

const QUERY: &str = r#"{"type":"query","seq":7,"query":{"conditions":[]}}"#;
const ROWS: &str = r#"{"type":"rows","seq":8,"query":{},"offset":0,"limit":100}"#;

#[test]
fn question_is_answered_under_its_number_during_and_after_the_upload() {
    let mut client = Client::started(Limits::default(), LINE.len() as u64);
    for _ in 0..2 {
        let replies = client.say(QUERY);
        assert_eq!(
            (types(&replies), &replies[0]["seq"]),
            (vec!["refused"], &7.into())
        );
        let replies = client.say(ROWS);
        assert_eq!(
            (types(&replies), &replies[0]["seq"]),
            (vec!["refused"], &8.into())
        );
        client.send(LINE);
        client.finish();
    }
}

#[test]
fn questions_up_to_the_limit_wait_and_one_more_is_refused() {
    let mut client = Client::started(Limits::default(), 0);
    for _ in 0..QUESTIONS_MAX {
        client.session.handle_text(QUERY, client.now);
    }
    assert_eq!(client.replies().len(), QUESTIONS_MAX);
    for _ in 0..=QUESTIONS_MAX {
        client.session.handle_text(QUERY, client.now);
    }
    let questions_max = QUESTIONS_MAX;
    assert_eq!(
        client.session.outcome(),
        Some(&Outcome::Failed(SessionError::TooManyQuestions {
            questions_max
        }))
    );
}

#[test]
fn there_is_nothing_to_ask_before_the_start() {
    let mut client = Client::new(Limits::default());
    assert_eq!(client.say(QUERY)[0]["code"], "protocol");
}
