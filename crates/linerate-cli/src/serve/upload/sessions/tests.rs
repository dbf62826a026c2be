//! Places, and what is kept, in paused time.

use std::{sync::Arc, time::Duration};

use linerate_gateway::config::LogsOptions;
use linerate_logview::session::Session;
use tokio::time::sleep;

use super::{Seat, Sessions};

fn options(uploads_max: usize) -> LogsOptions {
    let mut options = LogsOptions::default();
    options.uploads_max = uploads_max;
    options
}

fn sessions(options: &LogsOptions) -> Arc<Sessions> {
    Sessions::new(options).unwrap()
}

/// Starts a session that has read one line.
fn begin(sessions: &Arc<Sessions>) -> Option<(Box<Session>, Seat)> {
    let mut session = Box::new(sessions.session());
    let now = sessions.now();
    let start = r#"{"type":"start","files":[{"name":"a","size":1000}]}"#;
    session.handle_text(start, now);
    let line = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
    session.handle_chunk(line, true, now);
    let seat = sessions.admit(session.id())?;
    Some((session, seat))
}

#[tokio::test(start_paused = true)]
async fn session_is_kept_for_its_time_and_then_forgotten() {
    let sessions = sessions(&options(2));
    let (session, seat) = begin(&sessions).unwrap();
    let id = session.id();
    assert_eq!(sessions.count(), (1, 0));
    sessions.keep(seat, session);
    assert_eq!(sessions.count(), (0, 1));

    sleep(Duration::from_secs(59)).await;
    let (session, seat) = sessions.resume(id).await.unwrap();
    assert_eq!(sessions.count(), (1, 0));
    assert!(session.has_files());
    sessions.keep(seat, session);
    sleep(Duration::from_secs(59)).await;
    assert_eq!(sessions.count(), (0, 1), "its time began anew");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(sessions.count(), (0, 0));
    assert!(sessions.resume(id).await.is_none());
    assert_eq!(sessions.places.available_permits(), 2);
}

#[tokio::test(start_paused = true)]
async fn newcomer_takes_the_place_of_the_one_that_is_gone_for_longest() {
    let sessions = sessions(&options(2));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (session, seat) = begin(&sessions).unwrap();
        ids.push(session.id());
        sessions.keep(seat, session);
        sleep(Duration::from_millis(5)).await;
    }
    let newcomer = begin(&sessions).unwrap();
    assert_eq!(sessions.count(), (1, 1));
    assert!(sessions.resume(ids[0]).await.is_none());
    let resumed = sessions.resume(ids[1]).await.unwrap();
    assert!(begin(&sessions).is_none(), "nobody who is here gives way");
    drop((newcomer, resumed));
    assert_eq!(sessions.places.available_permits(), 2);
    assert_eq!(sessions.count(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_kept_are_bounded() {
    let mut few = options(9);
    let (session, _) = begin(&sessions(&few)).unwrap();
    few.resume_bytes_max = 2 * session.memory_bytes();
    let sessions = sessions(&few);
    for _ in 0..3 {
        let (session, seat) = begin(&sessions).unwrap();
        sessions.keep(seat, session);
    }
    assert_eq!(sessions.count(), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_where_that_is_turned_off() {
    let mut off = options(1);
    off.resume = Duration::ZERO;
    let sessions = sessions(&off);
    let (session, seat) = begin(&sessions).unwrap();
    sessions.keep(seat, session);
    assert_eq!(sessions.count(), (0, 0));
    assert_eq!(sessions.places.available_permits(), 1);
}

#[tokio::test(start_paused = true)]
async fn connection_that_has_the_session_is_told_to_give_it_up() {
    let sessions = sessions(&options(1));
    let (session, seat) = begin(&sessions).unwrap();
    let id = session.id();
    let others = sessions.clone();
    let resumed = tokio::spawn(async move { others.resume(id).await.is_some() });
    seat.told_to_leave().await;
    sessions.keep(seat, session);
    assert!(resumed.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn connection_that_keeps_its_session_is_not_waited_for_forever() {
    let sessions = sessions(&options(1));
    let (session, _seat) = begin(&sessions).unwrap();
    assert!(sessions.resume(session.id()).await.is_none());
}
