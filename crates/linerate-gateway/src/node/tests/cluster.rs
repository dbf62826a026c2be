//! Tests of two nodes on one bus.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use linerate_hub::presence::Counts;

use super::{Bus, channel, connect, node_on, present, until};
use crate::{
    auth::{Revocation, Target},
    config::{Loader, Namespaces},
    node::{ConnectionSelector, EmulateError, Node, Notice, Worker},
    protocol::codes::{Disconnect, Unsubscribe},
};

pub(super) struct Pair {
    pub(super) bus: Arc<Bus>,
    pub(super) nodes: [Arc<Node>; 2],
    pub(super) workers: [Arc<Worker>; 2],
}

pub(super) async fn pair() -> Pair {
    let bus = Arc::new(Bus::default());
    let (a, mut of_a) = node_on(&bus, 1);
    let (b, mut of_b) = node_on(&bus, 1);
    until("both know each other", || {
        a.cluster.nodes_count() == 2 && b.cluster.nodes_count() == 2
    })
    .await;
    Pair {
        bus,
        nodes: [a, b],
        workers: [of_a.remove(0), of_b.remove(0)],
    }
}

fn of_user(user: &str) -> ConnectionSelector {
    ConnectionSelector {
        user: user.to_owned(),
        ..ConnectionSelector::default()
    }
}

#[tokio::test]
async fn presence_is_that_of_all_nodes() {
    let pair = pair().await;
    for (worker, (user, client)) in pair.workers.iter().zip([("ada", "1"), ("ada", "2")]) {
        let (id, _) = connect(worker, user, client);
        worker
            .subscribe(id, present("room", user, client))
            .await
            .unwrap();
    }
    settle(&pair).await;
    for node in &pair.nodes {
        let mut clients: Vec<_> = node.all_nodes.presence(&channel("room")).await.unwrap();
        clients.sort_by(|a, b| a.client.cmp(&b.client));
        assert_eq!(clients.len(), 2);
        assert_eq!((&*clients[0].client, &*clients[1].client), ("1", "2"));
        let stats = node.all_nodes.presence_stats(&channel("room")).await;
        assert_eq!(
            stats.unwrap(),
            Counts {
                clients: 2,
                users: 1
            }
        );
        assert_eq!(
            node.all_nodes.channels("ro*").await,
            [("room".to_owned(), 2)]
        );
        assert!(node.all_nodes.channels("x*").await.is_empty());
    }
}

#[tokio::test]
async fn who_comes_and_goes_is_told_on_all_nodes() {
    let pair = pair().await;
    let (watcher, watching) = connect(&pair.workers[0], "ada", "1");
    let watch = present("room", "ada", "1");
    pair.workers[0].subscribe(watcher, watch).await.unwrap();
    let Notice::Join { info, .. } = watching.notice().await else {
        panic!("expected its own join");
    };
    assert_eq!(&*info.client, "1");
    let (other, _) = connect(&pair.workers[1], "bob", "2");
    pair.workers[1]
        .subscribe(other, present("room", "bob", "2"))
        .await
        .unwrap();
    let Notice::Join { channel, info } = watching.notice().await else {
        panic!("expected a join");
    };
    assert_eq!((channel.as_str(), &*info.user), ("room", "bob"));
    pair.workers[1].disconnect(other);
    let Notice::Leave { info, .. } = watching.notice().await else {
        panic!("expected a leave");
    };
    assert_eq!(&*info.client, "2");
}

#[tokio::test]
async fn connections_are_ended_wherever_they_are() {
    let pair = pair().await;
    let mut memos = Vec::new();
    for (worker, client) in pair.workers.iter().zip(["1", "2"]) {
        let (id, memo) = connect(worker, "ada", client);
        worker
            .subscribe(id, present("room", "ada", client))
            .await
            .unwrap();
        assert!(matches!(memo.notice().await, Notice::Join { .. }));
        memos.push(memo);
    }
    assert!(matches!(memos[0].notice().await, Notice::Join { .. }));
    let node = &pair.nodes[0];
    let room = channel("room");
    let ended = node
        .all_nodes
        .unsubscribe(of_user("ada"), Some(&room), Unsubscribe::SERVER)
        .await;
    assert_eq!(ended, 2);
    let mut but_one = of_user("ada");
    but_one.except = vec!["1".to_owned()];
    assert_eq!(
        node.all_nodes
            .disconnect(but_one, Disconnect::SHUTDOWN)
            .await,
        1
    );
    assert_eq!(
        node.all_nodes
            .disconnect(of_user("bob"), Disconnect::SHUTDOWN)
            .await,
        0
    );
    for memo in &memos {
        let Notice::Unsubscribe { channel, why } = memo.notice().await else {
            panic!("expected the end of the subscription");
        };
        assert_eq!((channel.as_str(), why.code), ("room", 2000));
    }
    let Notice::Disconnect(why) = memos[1].notice().await else {
        panic!("expected a disconnect");
    };
    assert_eq!(why.code, 3001);
}

#[tokio::test]
async fn commands_find_their_session_on_another_node() {
    let pair = pair().await;
    let [here, there] = &pair.nodes;
    let mut session = there.emulations.open("secret");
    for is_heard in [true, false] {
        if !is_heard {
            here.cluster.handle_goodbye(&[there.status.id().to_owned()]);
        }
        here.all_nodes
            .emulate(there.status.id(), "secret", "ping".into())
            .await
            .unwrap();
        assert_eq!(session.recv().await, "ping");
    }
    for (node, name) in [(there.status.id(), "wrong"), ("nowhere", "secret")] {
        let refused = here.all_nodes.emulate(node, name, "ping".into()).await;
        assert_eq!(refused, Err(EmulateError::Unknown));
    }
}

#[tokio::test]
async fn a_node_that_has_just_started_asks_the_others_too() {
    let bus = Arc::new(Bus::default());
    let (_first, workers) = node_on(&bus, 1);
    let (id, _memo) = connect(&workers[0], "ada", "1");
    workers[0]
        .subscribe(id, present("room", "ada", "1"))
        .await
        .unwrap();
    until("the first node is registered", || bus.registered() == 1).await;
    let (second, _) = node_on(&bus, 1);
    assert_eq!(
        second.cluster.nodes_count(),
        1,
        "it has not read the registry"
    );
    assert_eq!(
        second.all_nodes.channels("*").await,
        [("room".to_owned(), 1)]
    );
}

#[tokio::test]
async fn tokens_are_revoked_on_all_nodes_and_one_that_starts_later_learns_of_it() {
    let pair = pair().await;
    let memos: Vec<_> = pair
        .workers
        .iter()
        .map(|worker| connect(worker, "ada", "1").1)
        .collect();
    let revocation = Revocation::new(Target::User("ada".to_owned()), 100, None);
    pair.nodes[0]
        .revocations
        .revoke(revocation.clone())
        .await
        .unwrap();
    for memo in &memos {
        assert!(matches!(memo.notice().await, Notice::Revoked));
    }
    pair.bus.set_link(true);
    let (late, _) = node_on(&pair.bus, 1);
    until("the late node has read the revocation", || {
        late.revocations.in_force().list(0) == [revocation.clone()]
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_is_too_busy_for_jobs_tells_of_revocations_all_the_same() {
    let pair = pair().await;
    let (_, ada) = connect(&pair.workers[0], "ada", "1");
    let (_, bob) = connect(&pair.workers[0], "bob", "2");
    let inbox = pair.nodes[0].inboxes.of(0);
    while inbox.submit(Box::new(|_| {})).is_ok() {}
    for user in ["eve", "ada"] {
        let revocation = Revocation::new(Target::User(user.to_owned()), 100, None);
        pair.nodes[0].revocations.revoke(revocation).await.unwrap();
    }
    assert!(matches!(ada.notice().await, Notice::Revoked));
    let revocation = Revocation::new(Target::All, 100, None);
    pair.nodes[0].revocations.revoke(revocation).await.unwrap();
    for memo in [&ada, &bob] {
        assert!(matches!(memo.notice().await, Notice::Revoked));
    }
    assert!(
        bob.has_no_notice(),
        "bob must not be notified of ada's revocation"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_knows_of_revocations_once_it_has_read_what_the_broker_keeps() {
    let bus = Arc::new(Bus::default());
    let (node, _) = node_on(&bus, 1);
    assert!(
        !node.revocations.wait_until_known().await,
        "the link is down"
    );
    bus.is_away.store(true, Ordering::SeqCst);
    bus.set_link(true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        !node.revocations.are_known(),
        "the revocations have not been read"
    );
    let waiter = node.clone();
    let waiting = tokio::spawn(async move { waiter.revocations.wait_until_known().await });
    tokio::task::yield_now().await;
    bus.keep_for_test(&Revocation::new(Target::All, 100, None));
    bus.is_away.store(false, Ordering::SeqCst);
    assert!(waiting.await.unwrap(), "the waiting task continues");
    assert_eq!(node.revocations.in_force().list(0).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_refuses_to_keep_anything_is_not_waited_for_for_ever() {
    let bus = Arc::new(Bus::default());
    bus.refuses.store(true, Ordering::SeqCst);
    bus.set_link(true);
    let (node, _) = node_on(&bus, 1);
    assert!(!node.revocations.wait_until_known().await);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(node.revocations.wait_until_known().await);
}

#[tokio::test]
async fn a_node_that_was_cut_off_learns_what_was_revoked_meanwhile() {
    let pair = pair().await;
    let revocation = Revocation::new(Target::All, 100, None);
    pair.bus.keep_for_test(&revocation);
    assert_eq!(pair.nodes[1].revocations.in_force().list(0), []);
    pair.bus.set_link(true);
    until("the node has read the revocation", || {
        pair.nodes[1].revocations.in_force().list(0) == [revocation.clone()]
    })
    .await;
}

#[tokio::test]
async fn a_node_that_goes_is_not_waited_for() {
    let pair = pair().await;
    pair.nodes[1].shut_down().await;
    until("the node is gone", || {
        pair.nodes[0].cluster.nodes_count() == 1
    })
    .await;
    assert_eq!(pair.nodes[0].cluster.nodes().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_lease_has_ended_is_forgotten_by_all_and_returns() {
    let pair = pair().await;
    let (third, _) = node_on(&pair.bus, 1);
    let [first, second] = &pair.nodes;
    until("all know each other", || {
        first.cluster.nodes_count() == 3 && second.cluster.nodes_count() == 3
    })
    .await;
    assert_eq!(first.cluster.nodes().await.len(), 3);
    third.abort_tasks();
    pair.bus.end_lease(third.status.id());
    until("the third is forgotten", || {
        first.cluster.nodes_count() == 2 && second.cluster.nodes_count() == 2
    })
    .await;
    pair.bus.end_lease(second.status.id());
    until("the second registers again", || pair.bus.registered() == 2).await;
    until("they know each other", || {
        first.cluster.nodes_count() == 2 && second.cluster.nodes_count() == 2
    })
    .await;
}

#[tokio::test]
async fn a_request_to_one_node_reaches_no_other() {
    let pair = pair().await;
    let [here, there] = &pair.nodes;
    let (third, _) = node_on(&pair.bus, 1);
    let mut wrong = third.emulations.open("secret");
    let mut right = there.emulations.open("secret");
    until("the third is known", || here.cluster.nodes_count() == 3).await;
    here.all_nodes
        .emulate(there.status.id(), "secret", "ping".into())
        .await
        .unwrap();
    assert_eq!(right.recv().await, "ping");
    assert!(futures_util::FutureExt::now_or_never(wrong.recv()).is_none());
}

#[tokio::test]
async fn presence_that_is_too_large_is_an_error_and_its_numbers_are_not() {
    let pair = pair().await;
    let text = "[channel]\npresence = true\npresence_bytes_max = 1024";
    let config = Loader::new().with_text("test.toml", text).load().unwrap();
    for node in &pair.nodes {
        node.namespaces.replace(Namespaces::new(&config));
    }
    let come = async |worker: &Arc<Worker>, client: String| {
        let (id, memo) = connect(worker, "ada", &client);
        worker
            .subscribe(id, present("room", "ada", &client))
            .await
            .unwrap();
        memo
    };
    let mut memos = Vec::new();
    for number in 0..4 {
        memos.push(come(&pair.workers[0], format!("a{number}")).await);
        memos.push(come(&pair.workers[1], format!("b{number}")).await);
    }
    settle(&pair).await;
    // The presence of each node fits, and so does the sum.
    for node in &pair.nodes {
        assert_eq!(
            node.all_nodes
                .presence(&channel("room"))
                .await
                .unwrap()
                .len(),
            8
        );
    }
    for number in 4..7 {
        memos.push(come(&pair.workers[0], format!("a{number}")).await);
    }
    settle(&pair).await;
    for node in &pair.nodes {
        let error = node.all_nodes.presence(&channel("room")).await.unwrap_err();
        assert!(error.to_string().contains("1024"), "{error}");
        assert_eq!(
            node.all_nodes
                .presence_stats(&channel("room"))
                .await
                .unwrap()
                .clients,
            11
        );
    }
}

/// Waits until the broker has what the nodes have recorded so far: a node that is asked waits for
/// its own clients.
async fn settle(pair: &Pair) {
    for node in &pair.nodes {
        let counts = node.all_nodes.presence_stats(&channel("room")).await;
        counts.unwrap();
    }
}

async fn clients_in_room(node: &Node) -> Vec<String> {
    let clients = node.all_nodes.presence(&channel("room")).await.unwrap();
    clients
        .into_iter()
        .map(|info| info.client.to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn presence_of_a_node_that_has_ended_disappears_and_that_of_a_stalled_one_returns() {
    let pair = pair().await;
    let mut memos = Vec::new();
    for (worker, client) in pair.workers.iter().zip(["1", "2"]) {
        let (id, memo) = connect(worker, "ada", client);
        worker
            .subscribe(id, present("room", "ada", client))
            .await
            .unwrap();
        memos.push(memo);
    }
    let [here, there] = &pair.nodes;
    settle(&pair).await;
    assert_eq!(clients_in_room(there).await.len(), 2);
    pair.bus.end_lease(there.status.id());
    assert_eq!(clients_in_room(here).await, ["1"]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(clients_in_room(here).await, ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn presence_survives_a_broker_that_is_unavailable() {
    let pair = pair().await;
    let [one, other] = [0, 1].map(|index: usize| {
        let client = (index + 1).to_string();
        let (id, memo) = connect(&pair.workers[index], "ada", &client);
        (id, memo, client)
    });
    for (worker, (id, _, client)) in pair.workers.iter().zip([&one, &other]) {
        let subscribe = present("room", "ada", client);
        worker.subscribe(*id, subscribe).await.unwrap();
    }
    settle(&pair).await;
    assert_eq!(clients_in_room(&pair.nodes[1]).await.len(), 2);
    pair.bus.is_away.store(true, Ordering::SeqCst);
    let error = pair.nodes[0].all_nodes.presence(&channel("room")).await;
    assert!(error.is_err());
    pair.workers[0].disconnect(one.0);
    tokio::time::sleep(Duration::from_secs(3)).await;
    pair.bus.is_away.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(clients_in_room(&pair.nodes[1]).await, ["2"]);
}
