//! Polls, bodies and WebSockets of a session, without a network.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use linerate_budget::Budget;
use tokio::{
    task::JoinHandle,
    time::{advance, sleep},
};
use uuid::Uuid;

use super::{Incoming, PollLimits, PolledEntry, PolledSession, PolledSessions};
use crate::{
    node::Accounts,
    protocol::polling::{PollEnd, Polled, PollingRefusal},
};

const NAME: Uuid = Uuid::from_u128(7);

fn open() -> PolledEntry {
    open_with(10, &Accounts::default())
}

fn open_with(bytes_max: usize, accounts: &Accounts) -> PolledEntry {
    let limits = PollLimits {
        bytes_max,
        hold: None,
    };
    PolledSessions::default().open(NAME, limits, accounts)
}

fn push(session: &PolledSession, text: &'static str) {
    session.push(Bytes::from_static(text.as_bytes()));
    session.flush();
}

fn fetched(frames: &[&'static str], end: PollEnd) -> Result<Polled, PollingRefusal> {
    let frames = frames
        .iter()
        .map(|text| Bytes::from_static(text.as_bytes()));
    let frames = frames.collect();
    Ok(Polled::new(frames, end))
}

/// Returns the body that the session reads next.
async fn body(session: &PolledSession) -> Bytes {
    match poll_fn(|cx| session.poll_input(cx)).await {
        Some(Incoming::Body(body, _)) => body,
        other => panic!("{other:?}"),
    }
}

/// Runs a task until it waits.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_fetches_everything_or_waits() {
    let entry = open();
    let session = entry.session().clone();
    push(&session, "a");
    push(&session, "b");
    assert_eq!(
        session.poll(None).await,
        fetched(&["a", "b"], PollEnd::Ready)
    );
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.poll(None).await }
    });
    sleep(Duration::from_secs(3_600)).await;
    assert!(!waiting.is_finished());
    push(&session, "c");
    let polled = waiting.await.unwrap();
    assert_eq!(polled, fetched(&["c"], PollEnd::Ready));
    let hold = Some(Duration::from_secs(20));
    assert_eq!(session.poll(hold).await, fetched(&[], PollEnd::Idle));
}

#[tokio::test(start_paused = true)]
async fn a_session_can_limit_how_long_a_poll_waits() {
    let limits = PollLimits {
        bytes_max: 10,
        hold: Some(Duration::from_secs(10)),
    };
    let entry = PolledSessions::default().open(NAME, limits, &Accounts::default());
    for (hold, expected) in [(None, 10), (Some(20), 10), (Some(5), 5)] {
        let begun = tokio::time::Instant::now();
        let polled = entry.session().poll(hold.map(Duration::from_secs)).await;
        assert_eq!(polled, fetched(&[], PollEnd::Idle));
        assert_eq!(begun.elapsed().as_secs(), expected, "{hold:?}");
    }
}

#[tokio::test]
async fn output_is_bounded_and_there_is_room_again_after_a_poll() {
    let entry = open();
    let session = entry.session();
    assert_eq!(session.room(), 10);
    push(session, "123456789");
    assert_eq!((session.room(), session.queued_bytes()), (1, 9));
    push(session, "a long piece");
    assert_eq!((session.room(), session.queued_bytes()), (0, 21));
    let mut room = std::pin::pin!(poll_fn(|cx| session.poll_room(cx)));
    assert!((&mut room).now_or_never().is_none());
    session.poll(None).await.unwrap();
    room.await;
    assert_eq!(session.room(), 10);
    push(session, "a");
    session.discard();
    assert_eq!((session.room(), session.queued_bytes()), (10, 0));
}

/// Begins a poll of a session that has the output `a`, while the thread is busy for this long.
async fn late_poll(
    session: &Arc<PolledSession>,
    busy: Duration,
) -> JoinHandle<Result<Polled, PollingRefusal>> {
    push(session, "a");
    let session = session.clone();
    let poll = tokio::spawn(async move { session.poll(None).await });
    tokio::task::yield_now().await;
    advance(busy).await;
    settle().await;
    poll
}

#[tokio::test(start_paused = true)]
async fn a_late_poll_waits_for_more_output_on_a_busy_thread() {
    let entry = open();
    let session = entry.session();
    let poll = late_poll(session, Duration::from_millis(5)).await;
    push(session, "b");
    advance(Duration::from_millis(39)).await;
    settle().await;
    assert!(!poll.is_finished());
    advance(Duration::from_millis(1)).await;
    assert_eq!(poll.await.unwrap(), fetched(&["a", "b"], PollEnd::Ready));
}

#[tokio::test(start_paused = true)]
async fn a_late_poll_waits_neither_on_an_idle_thread_nor_once_there_is_enough() {
    let entry = open();
    let session = entry.session();
    let poll = late_poll(session, Duration::from_millis(2)).await;
    assert!(poll.is_finished());
    assert_eq!(poll.await.unwrap(), fetched(&["a"], PollEnd::Ready));
    let poll = late_poll(session, Duration::from_millis(5)).await;
    push(session, "123456789");
    settle().await;
    assert!(poll.is_finished());
    let output = ["a", "123456789"];
    assert_eq!(poll.await.unwrap(), fetched(&output, PollEnd::Ready));
    let poll = late_poll(session, Duration::from_secs(10)).await;
    session.end("over".to_owned());
    settle().await;
    assert!(poll.is_finished());
    assert_eq!(poll.await.unwrap(), fetched(&["a"], PollEnd::Ready));
}

#[tokio::test]
async fn output_is_charged_until_it_is_fetched() {
    let budget = Budget::new(1 << 30);
    let accounts = Accounts::new(&budget);
    let entry = open_with(1 << 20, &accounts);
    let session = entry.session();
    for _ in 0..100 {
        session.push(vec![b'x'; 1_000].into());
    }
    let charged = accounts.backlogs.bytes();
    assert!((100_000..120_000).contains(&charged), "{charged}");
    // Blocks of publications are charged by their owner.
    session.push(vec![b'x'; 100_000].into());
    assert!(accounts.backlogs.bytes() < charged + 1_000);
    session.poll(None).await.unwrap();
    assert_eq!(accounts.backlogs.bytes(), 0);
    session.push(vec![b'x'; 1_000].into());
    drop(entry);
    assert_eq!(accounts.backlogs.bytes(), 0);
}

#[tokio::test]
async fn a_body_is_delivered_once_the_session_has_handled_it() {
    let budget = Budget::new(1 << 30);
    let accounts = Accounts::new(&budget);
    let entry = open_with(10, &accounts);
    let session = entry.session().clone();
    let sent = tokio::spawn({
        let session = session.clone();
        async move { session.send("abc".into()).await }
    });
    settle().await;
    assert_eq!(
        (session.received_bytes(), accounts.messages.bytes()),
        (3, 3)
    );
    assert_eq!(body(&session).await, "abc");
    settle().await;
    assert!(!sent.is_finished());
    session.handled();
    assert_eq!(sent.await.unwrap(), Ok(()));
    assert_eq!(
        (session.received_bytes(), accounts.messages.bytes()),
        (0, 0)
    );
}

#[tokio::test]
async fn requests_that_overlap_end_the_session() {
    for is_poll in [true, false] {
        let entry = open();
        let session = entry.session().clone();
        let request = |session: Arc<PolledSession>| async move {
            match is_poll {
                true => session.poll(None).await.map(drop),
                false => session.send("a".into()).await,
            }
        };
        let first = tokio::spawn(request(session.clone()));
        settle().await;
        let second = request(session.clone()).await;
        assert_eq!(second, Err(PollingRefusal::BadRequest));
        let first = first.await.unwrap();
        assert_eq!(first.is_err(), is_poll, "a body may have been handled");
        assert!(poll_fn(|cx| session.poll_input(cx)).await.is_none());
        let unknown = Err(PollingRefusal::UnknownSession);
        assert_eq!(request(session.clone()).await, unknown);
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_ends_the_session() {
    let entry = open();
    let session = entry.session();
    assert!(session.poll(None).now_or_never().is_none());
    assert!(poll_fn(|cx| session.poll_input(cx)).await.is_none());
    session.gone().await;
}

#[tokio::test]
async fn the_last_output_of_a_session_is_fetched_once() {
    let entry = open();
    let session = entry.session();
    push(session, "a");
    session.end("over".to_owned());
    push(session, "late");
    assert_eq!(session.room(), 0);
    assert!(session.gone().now_or_never().is_none());
    let unknown = Err(PollingRefusal::UnknownSession);
    assert_eq!(session.send("b".into()).await, unknown);
    assert_eq!(session.poll(None).await, fetched(&["a"], PollEnd::Ready));
    assert!(session.gone().now_or_never().is_none());
    let closed = session.poll(None).await.unwrap();
    assert_eq!((closed.frames, closed.end), (vec![], PollEnd::Closed));
    assert_eq!(closed.reason.as_deref(), Some("over"));
    session.gone().await;
    assert!(session.poll(None).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn polls_end_after_a_pause_while_a_websocket_is_probed() {
    let entry = open();
    let session = entry.session().clone();
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.poll(None).await }
    });
    settle().await;
    let probe = session.clone().probe().unwrap();
    let second = session.clone().probe();
    assert_eq!(second.unwrap_err(), PollingRefusal::BadRequest);
    settle().await;
    assert!(!waiting.is_finished());
    advance(Duration::from_millis(100)).await;
    let polled = waiting.await.unwrap();
    assert_eq!(polled, fetched(&[], PollEnd::Upgrading));
    push(&session, "a");
    assert_eq!(session.poll(None).await, fetched(&["a"], PollEnd::Ready));
    drop(probe);
    let hold = Some(Duration::from_secs(1));
    assert_eq!(session.poll(hold).await, fetched(&[], PollEnd::Idle));
    assert!(session.clone().probe().is_ok());
}

#[tokio::test]
async fn a_session_that_was_upgraded_refuses_requests() {
    let entry = open();
    let session = entry.session().clone();
    let probe = session.clone().probe().unwrap();
    push(&session, "a");
    assert_eq!(session.upgrade(), ["a"]);
    drop(probe);
    let refused = PollingRefusal::BadRequest;
    assert_eq!(session.poll(None).await, Err(refused));
    assert_eq!(session.send("a".into()).await, Err(refused));
    assert_eq!(session.clone().probe().unwrap_err(), refused);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(
        session.poll_input(&mut cx).is_pending(),
        "it is still there"
    );
    session.end(String::new());
    session.gone().await;
}

#[tokio::test]
async fn the_session_notices_when_a_poll_begins_and_ends() {
    let entry = open();
    let session = entry.session().clone();
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.poll(None).await }
    });
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..2 {
        let input = poll_fn(|cx| session.poll_input(cx)).await;
        assert!(matches!(input, Some(Incoming::Poll)), "{input:?}");
        assert!(session.poll_input(&mut cx).is_pending());
        push(&session, "a");
    }
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_session_is_found_while_its_entry_exists() {
    let sessions = PolledSessions::default();
    let entry = sessions.open(NAME, PollLimits::default(), &Accounts::default());
    assert!(sessions.find(&NAME).is_ok());
    assert!(sessions.named(&NAME.to_string()).is_ok());
    assert!(sessions.named("a").is_err());
    let session = entry.session().clone();
    drop(entry);
    assert!(sessions.find(&NAME).is_err());
    session.gone().await;
}
