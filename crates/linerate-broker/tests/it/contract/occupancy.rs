//! Tests of the names that several nodes occupy.

use std::time::Duration;

use futures_util::future::join_all;
use linerate_broker::{Event, OccupancyChange, registry::LEASE};
use linerate_testkit::PATIENCE;
use tokio::time::{Instant, sleep};

use super::{Node, Service};

fn change(name: &str, is_occupied: bool) -> OccupancyChange {
    OccupancyChange {
        name: name.to_owned(),
        is_occupied,
    }
}

async fn set(node: &Node, changes: &[OccupancyChange]) -> Vec<bool> {
    node.broker.set_occupancy(changes).await.unwrap()
}

async fn occupy(node: &Node, name: &str) -> bool {
    set(node, &[change(name, true)]).await[0]
}

async fn vacate(node: &Node, name: &str) -> bool {
    set(node, &[change(name, false)]).await[0]
}

/// Attaches nodes and registers them, unless the nodes of the service do not share anything.
async fn registered<S: Service>(service: &S, count: usize) -> Option<Vec<Node>> {
    let mut nodes = Vec::new();
    for _ in 0..count {
        let node = Node::of(service).await;
        node.broker.beat("".into()).await.unwrap();
        nodes.push(node);
    }
    S::IS_SHARED.then_some(nodes)
}

/// Returns the names that a node was told of, once it was told of `count` of them.
async fn vacated(node: &Node, count: usize) -> Vec<String> {
    let find = |events: &[(Instant, Event)]| {
        let told = events.iter().filter_map(|(_, event)| match event {
            Event::Vacated(names) => Some(names.clone()),
            _ => None,
        });
        let mut told: Vec<_> = told.flatten().collect();
        told.sort();
        (told.len() >= count).then_some(told)
    };
    node.recorder.wait("vacated names", find).await
}

pub(crate) async fn the_first_node_occupies_a_name_and_the_last_vacates_it<S: Service>(
    service: &S,
) {
    let Some(nodes) = registered(service, 2).await else {
        let node = Node::of(service).await;
        assert!(occupy(&node, "room").await);
        assert!(vacate(&node, "room").await);
        return;
    };
    let [one, other] = &nodes[..] else { panic!() };
    for _ in 0..2 {
        let names = ["room", "room{x}", "a b \n.*>ü", ""];
        let all: Vec<_> = names.iter().map(|name| change(name, true)).collect();
        // A change whose answer was lost is repeated.
        for _ in 0..2 {
            assert_eq!(set(one, &all).await, [true; 4]);
        }
        assert!(!occupy(other, "room").await);
        assert!(!occupy(other, "room").await);
        assert!(!vacate(one, "room").await);
        assert!(!vacate(one, "room").await);
        for _ in 0..2 {
            assert!(vacate(other, "room").await);
        }
        assert!(occupy(other, "room").await);
        assert!(vacate(other, "room").await);
        let rest: Vec<_> = names[1..].iter().map(|name| change(name, false)).collect();
        assert_eq!(set(one, &rest).await, [true; 3]);
    }
}

pub(crate) async fn one_of_several_nodes_that_change_a_name_at_once_is_the_first<S: Service>(
    service: &S,
) {
    let Some(nodes) = registered(service, 4).await else {
        return;
    };
    for is_occupied in [true, false, true, false] {
        let changes: Vec<_> = (0..20)
            .map(|room| change(&format!("room {room}"), is_occupied))
            .collect();
        let results = join_all(nodes.iter().map(|node| set(node, &changes))).await;
        for room in 0..changes.len() {
            let turns = results.iter().filter(|result| result[room]).count();
            assert_eq!(turns, 1, "{is_occupied} {room}: {results:?}");
        }
    }
}

pub(crate) async fn the_names_of_a_silent_node_become_vacant<S: Service>(service: &S) {
    let Some(nodes) = registered(service, 2).await else {
        return;
    };
    let [one, silent] = &nodes[..] else { panic!() };
    set(one, &[]).await;
    assert!(occupy(silent, "theirs").await);
    assert!(occupy(silent, "both").await);
    assert!(!occupy(one, "both").await);
    let since = Instant::now();
    let beats = async {
        while since.elapsed() < PATIENCE {
            one.broker.beat("".into()).await.unwrap();
            sleep(Duration::from_millis(300)).await;
        }
    };
    tokio::select! {
        told = vacated(one, 1) => assert_eq!(told, ["theirs"]),
        () = beats => panic!("not told of the vacant name"),
    }
    assert!(since.elapsed() > LEASE - Duration::from_secs(1));
    // The node was only stalled.
    let beat = silent.broker.beat("".into()).await.unwrap();
    assert!(beat.has_lost_presence);
    silent.broker.reset_occupancy().await.unwrap();
    assert!(occupy(silent, "theirs").await);
    assert!(!occupy(silent, "both").await);
    // A node that leaves takes its names along.
    silent.broker.deregister().await.unwrap();
    let beats = async {
        while since.elapsed() < 2 * PATIENCE {
            one.broker.beat("".into()).await.unwrap();
            sleep(Duration::from_millis(300)).await;
        }
    };
    tokio::select! {
        told = vacated(one, 2) => assert_eq!(told, ["theirs", "theirs"]),
        () = beats => panic!("not told of the name of the node that has left"),
    }
    assert!(vacate(one, "both").await);
}
