//! Tests of places and kept sessions, in paused time.

use std::{net::IpAddr, sync::Arc, time::Duration};

use linerate_budget::Budget;
use tokio::time::sleep;

use super::{
    HostedSession, MemoryShortage, SessionGuard, SessionRefusal, SessionSignals, Sessions,
};
use crate::{lane::TURN_WORK, memory::UploadBytes, options::LogsOptions};

fn options(uploads_max: usize) -> LogsOptions {
    LogsOptions {
        uploads_max,
        resume: Duration::from_secs(60),
        ..LogsOptions::default()
    }
}

fn sessions(options: &LogsOptions) -> Arc<Sessions> {
    Sessions::new(options, Budget::unbounded()).unwrap()
}

fn address(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

/// Starts a session that has read one line, with its memory reserved.
fn read_line(sessions: &Arc<Sessions>) -> Box<HostedSession> {
    let mut hosted = sessions.session();
    let now = sessions.now();
    let start = r#"{"type":"start","files":[{"name":"a","size":1000}]}"#;
    hosted.session.handle_text(start, now);
    let line = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
    hosted.session.handle_chunk(line, true, now);
    hosted.settle();
    hosted
}

fn begin_from(
    sessions: &Arc<Sessions>,
    address: IpAddr,
) -> Result<(Box<HostedSession>, SessionGuard), SessionRefusal> {
    let hosted = read_line(sessions);
    let seat = sessions.admit(&hosted, address, Arc::default())?;
    Ok((hosted, seat))
}

/// Starts a session that holds this many bytes.
fn begin_holding(
    sessions: &Arc<Sessions>,
    bytes: u64,
) -> (Box<HostedSession>, SessionGuard, Arc<SessionSignals>) {
    let mut hosted = read_line(sessions);
    let calls = Arc::<SessionSignals>::default();
    let seat = sessions.admit(&hosted, address(1), calls.clone()).unwrap();
    hosted.share.set(bytes);
    (hosted, seat, calls)
}

fn begin(sessions: &Arc<Sessions>) -> Option<(Box<HostedSession>, SessionGuard)> {
    begin_from(sessions, address(1)).ok()
}

#[tokio::test(start_paused = true)]
async fn session_is_kept_for_its_time_and_then_forgotten() {
    let sessions = sessions(&options(2));
    let (session, seat) = begin(&sessions).unwrap();
    let id = session.session.id();
    assert_eq!(sessions.count(), (1, 0));
    sessions.keep(seat, session);
    assert_eq!(sessions.count(), (0, 1));

    sleep(Duration::from_secs(59)).await;
    let (session, seat) = sessions.resume(id, Arc::default()).await.unwrap();
    assert_eq!(sessions.count(), (1, 0));
    assert!(session.session.has_files());
    sessions.keep(seat, session);
    sleep(Duration::from_secs(59)).await;
    assert_eq!(sessions.count(), (0, 1), "its time started again");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(sessions.count(), (0, 0));
    assert!(sessions.resume(id, Arc::default()).await.is_none());
    assert_eq!(sessions.places.available_permits(), 2);
}

#[tokio::test(start_paused = true)]
async fn newcomer_takes_the_place_of_the_one_that_is_gone_for_longest() {
    let sessions = sessions(&options(2));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (session, seat) = begin(&sessions).unwrap();
        ids.push(session.session.id());
        sessions.keep(seat, session);
        sleep(Duration::from_millis(5)).await;
    }
    let newcomer = begin(&sessions).unwrap();
    assert_eq!(sessions.count(), (1, 1));
    assert!(sessions.resume(ids[0], Arc::default()).await.is_none());
    let resumed = sessions.resume(ids[1], Arc::default()).await.unwrap();
    assert!(
        begin(&sessions).is_none(),
        "sessions with a connection do not give way"
    );
    drop((newcomer, resumed));
    assert_eq!(sessions.places.available_permits(), 2);
    assert_eq!(sessions.count(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn kept_uploads_count_and_give_way_to_those_that_need_memory() {
    let sessions = sessions(&options(9));
    for _ in 0..3 {
        let (hosted, seat) = begin(&sessions).unwrap();
        sessions.keep(seat, hosted);
        sleep(Duration::from_millis(5)).await;
    }
    let kept = sessions.memory_used();
    assert!(kept > 0 && sessions.count() == (0, 3));
    let mut share = sessions.share(UploadBytes::default());
    sessions.grow(&mut share, (1 << 30) - kept / 2).unwrap();
    assert!(sessions.count().1 < 3 && sessions.memory_used() <= 1 << 30);
    assert!(sessions.grow(&mut share, 1 << 30).is_err());
    assert_eq!(sessions.count(), (0, 0));
    drop(share);
    assert_eq!(sessions.memory_used(), 0, "all memory is returned");
}

#[tokio::test(start_paused = true)]
async fn one_address_has_so_many_uploads_and_its_kept_ones_give_way_first() {
    let mut options = options(64);
    options.uploads_per_address_max = 2;
    let sessions = sessions(&options);
    let first = begin_from(&sessions, address(1)).unwrap();
    let mapped = "::ffff:192.0.2.1".parse().unwrap();
    let (hosted, seat) = begin_from(&sessions, mapped).unwrap();
    let refused = begin_from(&sessions, address(1)).err();
    assert_eq!(refused, Some(SessionRefusal::Address));
    assert!(
        begin_from(&sessions, address(2)).is_ok(),
        "other addresses are not affected"
    );
    sessions.keep(seat, hosted);
    let third = begin_from(&sessions, address(1)).unwrap();
    assert_eq!(sessions.count(), (2, 0));
    let local = [127, 0, 0, 1].into();
    let near: Vec<_> = (0..5).map(|_| begin_from(&sessions, local)).collect();
    assert!(
        near.iter().all(Result::is_ok),
        "the address may belong to a proxy"
    );
    drop((first, third));
}

#[tokio::test(start_paused = true)]
async fn no_upload_has_a_place_where_they_are_switched_off() {
    let sessions = sessions(&options(0));
    let refused = begin_from(&sessions, address(1)).err();
    assert_eq!(refused, Some(SessionRefusal::Off));
}

#[tokio::test]
async fn session_that_needs_more_than_is_left_is_refused_and_others_go_on() {
    let mut options = options(9);
    options.memory_bytes_max = 64 << 20;
    let sessions = sessions(&options);
    let (mut small, _seat) = begin(&sessions).unwrap();
    let mut others = sessions.share(UploadBytes::default());
    sessions.grow(&mut others, 60 << 20).unwrap();
    assert!(small.reserve(TURN_WORK, &sessions).is_err());
    assert!(sessions.memory_used() <= 64 << 20);
    drop(others);
    small.reserve(TURN_WORK, &sessions).unwrap();
    small.settle();
    assert!(sessions.memory_used() < 4 << 20);
}

/// One session holds nearly all of 64 MiB, and another one holds little.
#[tokio::test]
async fn largest_upload_gives_way_to_one_that_asks_for_little() {
    const MIB: u64 = 1 << 20;
    let mut options = options(9);
    options.memory_bytes_max = 64 * MIB;
    let process = Budget::new(1 << 30);
    let sessions = Sessions::new(&options, process.clone()).unwrap();
    let (large, seat, calls) = begin_holding(&sessions, 50 * MIB);
    let (mut small, _seat, others_calls) = begin_holding(&sessions, 10 * MIB);
    let ask = |hosted: &mut HostedSession| sessions.grow(&mut hosted.share, 8 * MIB);
    assert_eq!(ask(&mut small), Err(MemoryShortage::Soon));
    assert_eq!(
        ask(&mut small),
        Err(MemoryShortage::Soon),
        "the large upload is told only once"
    );
    assert_eq!(process.sheds(linerate_budget::Consumer::Uploads), 1);
    calls.to_give_way().await;
    assert_eq!(others_calls.gave_way(), None);
    let error = sessions.gave_way(&calls);
    assert_eq!(error.code(), "no_memory");
    assert!(error.to_string().contains("52428800 of the 67108864"));
    drop((large, seat));
    assert_eq!(ask(&mut small), Ok(()));
}

#[tokio::test]
async fn upload_that_would_be_the_largest_is_refused_itself() {
    const MIB: u64 = 1 << 20;
    let mut options = options(9);
    options.memory_bytes_max = 64 * MIB;
    let sessions = sessions(&options);
    let (mut large, _seat, calls) = begin_holding(&sessions, 40 * MIB);
    let (mut small, _other, _) = begin_holding(&sessions, 20 * MIB);
    let refused = Err(MemoryShortage::Refused);
    assert_eq!(sessions.grow(&mut large.share, 8 * MIB), refused);
    assert_eq!(
        sessions.grow(&mut small.share, 20 * MIB),
        refused,
        "as much as the other holds"
    );
    assert_eq!(calls.gave_way(), None);
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
    let (session, seat, calls) = begin_holding(&sessions, 0);
    let id = session.session.id();
    let others = sessions.clone();
    let resumed = tokio::spawn(async move { others.resume(id, Arc::default()).await.is_some() });
    calls.to_leave().await;
    sessions.keep(seat, session);
    assert!(resumed.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn connection_that_keeps_its_session_is_not_waited_for_forever() {
    let sessions = sessions(&options(1));
    let (session, _seat) = begin(&sessions).unwrap();
    assert!(
        sessions
            .resume(session.session.id(), Arc::default())
            .await
            .is_none()
    );
}
