//! Tests of places and kept sessions, in paused time.

use std::{net::IpAddr, sync::Arc, time::Duration};

use linerate_budget::Budget;
use tokio::time::sleep;

use super::{MemoryShortage, SessionGuard, SessionRefusal, SessionSignals, Sessions, ViewRefusal};
use crate::{hosted::SharedSession, lane::TURN_WORK, memory::UploadBytes, options::LogsOptions};

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
fn read_line(sessions: &Arc<Sessions>) -> Arc<SharedSession> {
    let shared = sessions.session();
    let mut hosted = shared.lock();
    let now = sessions.now();
    let start = r#"{"type":"start","files":[{"name":"a","size":1000}]}"#;
    hosted.session.handle_text(start, now);
    let line = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
    hosted.session.handle_chunk(line, true, now);
    shared.settle(&mut hosted, &[]);
    drop(hosted);
    shared
}

fn begin_from(
    sessions: &Arc<Sessions>,
    address: IpAddr,
) -> Result<(Arc<SharedSession>, SessionGuard), SessionRefusal> {
    let shared = read_line(sessions);
    let seat = sessions.admit(&shared, address, Arc::default())?;
    Ok((shared, seat))
}

/// Starts a session that holds this many bytes.
fn begin_holding(
    sessions: &Arc<Sessions>,
    bytes: u64,
) -> (Arc<SharedSession>, SessionGuard, Arc<SessionSignals>) {
    let shared = read_line(sessions);
    let calls = Arc::<SessionSignals>::default();
    let seat = sessions.admit(&shared, address(1), calls.clone()).unwrap();
    shared.lock().share.set(bytes);
    (shared, seat, calls)
}

fn begin(sessions: &Arc<Sessions>) -> Option<(Arc<SharedSession>, SessionGuard)> {
    begin_from(sessions, address(1)).ok()
}

#[tokio::test(start_paused = true)]
async fn session_is_kept_for_its_time_and_then_forgotten() {
    let sessions = sessions(&options(2));
    let (session, seat) = begin(&sessions).unwrap();
    let id = session.id;
    assert_eq!(sessions.count(), (1, 0));
    sessions.keep(seat, session);
    assert_eq!(sessions.count(), (0, 1));

    sleep(Duration::from_secs(59)).await;
    let (session, seat) = sessions.resume(id, Arc::default()).await.unwrap();
    assert_eq!(sessions.count(), (1, 0));
    assert!(session.lock().session.has_files());
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
        ids.push(session.id);
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
    let (small, _seat) = begin(&sessions).unwrap();
    let mut hosted = small.lock();
    let mut others = sessions.share(UploadBytes::default());
    sessions.grow(&mut others, 60 << 20).unwrap();
    assert!(sessions.reserve(&mut hosted, TURN_WORK).is_err());
    assert!(sessions.memory_used() <= 64 << 20);
    drop(others);
    sessions.reserve(&mut hosted, TURN_WORK).unwrap();
    small.settle(&mut hosted, &[]);
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
    let (small, _seat, others_calls) = begin_holding(&sessions, 10 * MIB);
    let ask = |shared: &SharedSession| sessions.grow(&mut shared.lock().share, 8 * MIB);
    assert_eq!(ask(&small), Err(MemoryShortage::Soon));
    assert_eq!(
        ask(&small),
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
    assert_eq!(ask(&small), Ok(()));
}

#[tokio::test]
async fn upload_that_would_be_the_largest_is_refused_itself() {
    const MIB: u64 = 1 << 20;
    let mut options = options(9);
    options.memory_bytes_max = 64 * MIB;
    let sessions = sessions(&options);
    let (large, _seat, calls) = begin_holding(&sessions, 40 * MIB);
    let (small, _other, _) = begin_holding(&sessions, 20 * MIB);
    let refused = Err(MemoryShortage::Refused);
    assert_eq!(sessions.grow(&mut large.lock().share, 8 * MIB), refused);
    assert_eq!(
        sessions.grow(&mut small.lock().share, 20 * MIB),
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
    let id = session.id;
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
    assert!(sessions.resume(session.id, Arc::default()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn session_lives_while_it_is_viewed_and_then_for_its_time() {
    let sessions = sessions(&options(2));
    let (session, seat) = begin(&sessions).unwrap();
    let (id, name) = (session.id, session.view);
    let first = sessions.view(name).unwrap();
    sessions.keep(seat, session);
    assert_eq!(sessions.count(), (1, 0), "it has a page");
    let second = sessions.view(name).unwrap();
    sleep(Duration::from_secs(600)).await;
    drop(first);
    sleep(Duration::from_secs(600)).await;
    assert!(second.shared.upgrade().is_some());
    drop(second);
    assert_eq!(sessions.count(), (0, 1));

    sleep(Duration::from_secs(59)).await;
    let again = sessions.view(name).unwrap();
    let (session, seat) = sessions.resume(id, Arc::default()).await.unwrap();
    drop(again);
    sessions.keep(seat, session);
    sleep(Duration::from_secs(59)).await;
    assert_eq!(sessions.count(), (0, 1));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(sessions.count(), (0, 0));
    assert_eq!(sessions.view(name).err(), Some(ViewRefusal::Unknown));
    assert_eq!(sessions.places.available_permits(), 2);
}

#[tokio::test(start_paused = true)]
async fn sessions_expire_one_after_the_other() {
    let sessions = sessions(&options(9));
    for _ in 0..3 {
        let (session, seat) = begin(&sessions).unwrap();
        sessions.keep(seat, session);
        sleep(Duration::from_secs(10)).await;
    }
    for left in [3, 2, 1, 0] {
        assert_eq!(sessions.count(), (0, left));
        sleep(Duration::from_secs(if left == 3 { 31 } else { 10 })).await;
    }
    let (session, seat) = begin(&sessions).unwrap();
    sessions.keep(seat, session);
    sleep(Duration::from_secs(61)).await;
    assert_eq!(sessions.count(), (0, 0), "also after all were gone");
}

#[tokio::test(start_paused = true)]
async fn oldest_session_without_a_page_goes_before_those_that_are_viewed() {
    let sessions = sessions(&options(3));
    let mut names = Vec::new();
    for _ in 0..3 {
        let (session, seat) = begin(&sessions).unwrap();
        names.push(session.view);
        sessions.keep(seat, session);
        sleep(Duration::from_millis(5)).await;
    }
    let viewing = sessions.view(names[0]).unwrap();
    let newcomer = begin(&sessions).unwrap();
    assert_eq!(sessions.view(names[1]).err(), Some(ViewRefusal::Unknown));
    let another = begin(&sessions).unwrap();
    assert_eq!(sessions.view(names[2]).err(), Some(ViewRefusal::Unknown));
    assert!(
        begin(&sessions).is_none(),
        "viewed sessions keep their places"
    );
    drop(viewing);
    assert!(begin(&sessions).is_some());
    assert_eq!(sessions.view(names[0]).err(), Some(ViewRefusal::Unknown));
    drop((newcomer, another));
}

#[tokio::test]
async fn names_that_are_wrong_or_mean_something_else_are_unknown() {
    let sessions = sessions(&options(2));
    let (session, seat) = begin(&sessions).unwrap();
    let unknown = Some(ViewRefusal::Unknown);
    assert_eq!(
        sessions.view(session.id).err(),
        unknown,
        "only for resuming"
    );
    let view = session.view;
    assert!(
        sessions.resume(view, Arc::default()).await.is_none(),
        "only for viewing"
    );
    assert!(sessions.view(view).is_ok());
    drop((session, seat));
    assert_eq!(sessions.view(view).err(), unknown, "it has ended");
}

#[tokio::test]
async fn viewers_are_limited_and_each_one_frees_its_place() {
    let mut options = options(2);
    options.viewers_max = 2;
    let sessions = sessions(&options);
    let (session, _seat) = begin(&sessions).unwrap();
    let (other, _other_seat) = begin(&sessions).unwrap();
    let mut viewing: Vec<_> = (0..2)
        .map(|_| sessions.view(session.view).unwrap())
        .collect();
    assert_eq!(sessions.view(session.view).err(), Some(ViewRefusal::Busy));
    assert!(sessions.view(other.view).is_ok(), "others are not affected");
    viewing.pop();
    assert!(sessions.view(session.view).is_ok());
}

#[tokio::test]
async fn viewers_learn_that_a_session_has_ended() {
    let sessions = sessions(&options(2));
    let (session, seat) = begin(&sessions).unwrap();
    let mut viewing = sessions.view(session.view).unwrap();
    let snapshot = r#"{"type":"snapshot","final":false,"summary":{}}"#.to_owned();
    session.settle(&mut session.lock(), &["{}".to_owned(), snapshot.clone()]);
    viewing.snapshots.changed().await.unwrap();
    assert_eq!(**viewing.snapshots.borrow_and_update(), *snapshot);
    drop((session, seat));
    assert!(viewing.snapshots.changed().await.is_err());
    assert!(
        viewing.shared.upgrade().is_none(),
        "viewers keep nothing of it"
    );
}

#[tokio::test]
async fn session_that_only_viewers_have_gives_way_if_it_is_the_largest() {
    const MIB: u64 = 1 << 20;
    let mut options = options(9);
    options.memory_bytes_max = 64 * MIB;
    let sessions = sessions(&options);
    let (large, seat, _) = begin_holding(&sessions, 50 * MIB);
    let viewing = sessions.view(large.view).unwrap();
    sessions.keep(seat, large);
    let (small, _seat, _) = begin_holding(&sessions, 10 * MIB);
    let ask = || sessions.grow(&mut small.lock().share, 8 * MIB);
    assert_eq!(ask(), Err(MemoryShortage::Soon));
    assert_eq!(ask(), Ok(()));
    assert!(viewing.shared.upgrade().is_none());
    assert_eq!(sessions.count(), (1, 0));
    drop(viewing);
}

#[tokio::test(start_paused = true)]
async fn kept_sessions_give_way_to_other_memory_of_the_process() {
    let process = Budget::new(100 << 20);
    let sessions = Sessions::new(&options(9), process.clone()).unwrap();
    let (session, seat) = begin(&sessions).unwrap();
    sessions.keep(seat, session);
    let mut others = process.lease(linerate_budget::Consumer::Messages);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(sessions.count(), (0, 1));
    others.set(90 << 20);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(sessions.count(), (0, 0));
    let refused = begin_from(&sessions, address(1)).err();
    assert_eq!(refused, Some(SessionRefusal::Busy));
}

/// Reads a log whose requests do not fit into memory.
fn read_large(sessions: &Arc<Sessions>) -> (Arc<SharedSession>, SessionGuard) {
    let shared = read_line(sessions);
    let seat = sessions.admit(&shared, address(1), Arc::default()).unwrap();
    let mut hosted = shared.lock();
    let now = sessions.now();
    hosted.session =
        linerate_logview::session::Session::new(sessions.limits.clone(), shared.id, now);
    let start = r#"{"type":"start","files":[{"name":"a","size":null}]}"#;
    hosted.session.handle_text(start, now);
    for n in 0..150_000u64 {
        let bytes = n * 2_654_435_761 % (1 << 40);
        let line = format!(
            "::1 - - [22/Jan/2021:01:{:02}:{:02} +0000] \"GET / HTTP/1.1\" 200 {bytes}\n",
            n / 60 % 60,
            n % 60
        );
        hosted.session.handle_chunk(line.as_bytes(), false, now);
    }
    shared.settle(&mut hosted, &[]);
    drop(hosted);
    (shared, seat)
}

#[tokio::test(start_paused = true)]
async fn kept_session_with_a_temporary_file_gives_way_to_one_that_needs_the_space() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(9);
    options.columns_bytes_max = 512 << 10;
    options.spill_directory = Some(folder.path().to_owned());
    let (session, _seat) = read_large(&sessions(&options));
    let needed = session.spilled_bytes();
    assert!(needed > 100 << 10, "{needed}");
    options.spill_bytes_max = 2 * needed;
    let sessions = sessions(&options);
    let (small, small_seat) = begin(&sessions).unwrap();
    let small_name = small.view;
    sessions.keep(small_seat, small);
    sleep(Duration::from_millis(5)).await;

    let (first, first_seat) = read_large(&sessions);
    let first_name = first.view;
    assert_eq!(first.spilled_bytes(), needed);
    let (second, _seat) = read_large(&sessions);
    assert_eq!(second.spilled_bytes(), 0, "the first one has a page");
    assert!(sessions.view(first_name).is_ok());
    sessions.keep(first_seat, first);
    let (third, _seat) = read_large(&sessions);
    assert_eq!(third.spilled_bytes(), needed);
    assert_eq!(sessions.view(first_name).err(), Some(ViewRefusal::Unknown));
    assert!(sessions.view(small_name).is_ok(), "it has no file to give");
}
