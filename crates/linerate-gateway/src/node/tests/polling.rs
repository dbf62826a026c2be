//! Requests of clients that poll at another node than that of their session.

use std::{future::poll_fn, time::Duration};

use uuid::Uuid;

use super::cluster::{Pair, pair};
use crate::{
    node::{Incoming, PollLimits, polling::PolledEntry},
    protocol::polling::{PollEnd, PolledName, PollingRefusal},
};

/// Opens a session whose client polls.
fn polled(pair: &Pair, node: usize, session: Uuid) -> (PolledName, PolledEntry) {
    let accounts = pair.workers[node].accounts();
    let node = &pair.nodes[node];
    let name = PolledName {
        node: node.status.id().to_owned(),
        session,
    };
    let limits = PollLimits {
        bytes_max: 1_000,
        hold: None,
    };
    (name, node.polled.open(session, limits, accounts))
}

#[tokio::test]
async fn polls_and_bodies_find_their_session_on_another_node() {
    let pair = pair().await;
    let (name, entry) = polled(&pair, 1, Uuid::from_u128(7));
    let (here, session) = (&pair.nodes[0].all_nodes, entry.session());
    session.push("a".into());
    session.push("\u{1e}b".into());
    let polled = here.poll(&name, None).await.unwrap();
    assert_eq!(
        (polled.frames.concat(), polled.end),
        (b"a\x1eb".to_vec(), PollEnd::Ready)
    );
    let read = async {
        let mut input = poll_fn(|cx| session.poll_input(cx)).await;
        assert!(matches!(input, Some(Incoming::Poll)));
        input = poll_fn(|cx| session.poll_input(cx)).await;
        assert!(matches!(input, Some(Incoming::Body(body, _)) if body == "c"));
        session.handled();
    };
    let (sent, ()) = tokio::join!(here.send(&name, "c".into()), read);
    assert_eq!(sent, Ok(()));
    session.end("over".to_owned());
    let closed = here.poll(&name, None).await.unwrap();
    assert_eq!(closed.end, PollEnd::Closed);
    assert_eq!(closed.reason.as_deref(), Some("over"));
    assert_eq!(
        here.poll(&name, None).await,
        Err(PollingRefusal::UnknownSession)
    );
    let nowhere = PolledName {
        node: "nowhere".to_owned(),
        ..name
    };
    assert_eq!(
        here.poll(&nowhere, None).await,
        Err(PollingRefusal::UnknownSession)
    );
}

#[tokio::test(start_paused = true)]
async fn a_poll_at_another_node_waits_for_as_long_as_its_client() {
    let pair = pair().await;
    let (name, entry) = polled(&pair, 1, Uuid::from_u128(7));
    let push = async {
        tokio::time::sleep(Duration::from_secs(70)).await;
        entry.session().push("late".into());
        entry.session().flush();
    };
    let (polled, ()) = tokio::join!(pair.nodes[0].all_nodes.poll(&name, None), push);
    assert_eq!(polled.unwrap().frames, ["late"]);
}

#[tokio::test(start_paused = true)]
async fn a_poll_at_another_node_ends_when_its_time_is_over() {
    let pair = pair().await;
    let (name, entry) = polled(&pair, 1, Uuid::from_u128(7));
    let here = &pair.nodes[0].all_nodes;
    for hold in [
        Duration::ZERO,
        Duration::from_secs(10),
        Duration::from_secs(50),
    ] {
        let begun = tokio::time::Instant::now();
        let polled = here.poll(&name, Some(hold)).await.unwrap();
        assert_eq!(
            (polled.frames.concat(), polled.end),
            (vec![], PollEnd::Idle)
        );
        let late = begun.elapsed() - hold;
        assert!(late < Duration::from_secs(1), "{late:?}");
    }
    entry.session().push("a".into());
    let polled = here.poll(&name, Some(Duration::ZERO)).await.unwrap();
    assert_eq!(polled.end, PollEnd::Ready);
}

#[tokio::test(start_paused = true)]
async fn many_polls_at_another_node_leave_room_for_other_requests() {
    let pair = pair().await;
    let sessions: Vec<_> = (0..2_000)
        .map(|number| polled(&pair, 1, Uuid::from_u128(number)))
        .collect();
    let here = pair.nodes[0].clone();
    let polls: Vec<_> = sessions
        .iter()
        .map(|(name, _)| {
            let (here, name) = (here.clone(), name.clone());
            tokio::spawn(async move { here.all_nodes.poll(&name, None).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (mut emulation, there) = (pair.nodes[1].emulations.open("secret"), &pair.nodes[1]);
    here.all_nodes
        .emulate(there.status.id(), "secret", "ping".into())
        .await
        .unwrap();
    assert_eq!(emulation.recv().await, "ping");
    for (_, entry) in &sessions {
        entry.session().push("a".into());
        entry.session().flush();
    }
    for poll in polls {
        assert_eq!(poll.await.unwrap().unwrap().frames, ["a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn polls_at_a_node_that_leaves_end_at_once() {
    let pair = pair().await;
    let (name, _entry) = polled(&pair, 1, Uuid::from_u128(7));
    let begun = tokio::time::Instant::now();
    let leave = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        pair.nodes[1].shut_down().await;
    };
    let (polled, ()) = tokio::join!(pair.nodes[0].all_nodes.poll(&name, None), leave);
    assert_eq!(polled, Err(PollingRefusal::UnknownSession));
    assert!(begun.elapsed() < Duration::from_secs(2));
}
