//! Tests of servers that die, hang, lose data, or close slow connections.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use linerate_broker::{
    BrokerError, BrokerOptions, Event, GapReason, HistoryRequest, LinkState, Redis, StreamOptions,
};
use linerate_hub::StreamPosition;

use super::Standalone;
use crate::{
    contract::{BARE, DURABLE, Node, PLAIN, Service, name, publish},
    proxy::Proxy,
    recorder::Recorder,
};

/// Options with which a dead link is detected soon.
fn impatient() -> BrokerOptions {
    BrokerOptions {
        command_timeout: Duration::from_secs(2),
        ..BrokerOptions::default()
    }
}

fn is_up(node: &Node) -> bool {
    matches!(node.broker.link(), LinkState::Up { .. })
}

#[tokio::test]
async fn g01_a_server_that_comes_back_late_is_dialled_for_ever() {
    let Some(mut service) = Standalone::start() else {
        return;
    };
    let node = Node::with(&service, impatient()).await;
    node.subscribe("plain", PLAIN).await;
    node.publish("plain", "1", PLAIN).await;
    node.recorder.publications("plain", 1).await;
    let killed = Instant::now();
    service.server.kill();
    node.recorder.link(false).await;
    assert!(killed.elapsed() < Duration::from_secs(5));
    // The first attempts are refused.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(!is_up(&node));
    let channel = name("late");
    let published = node.broker.publish(&channel, publish("x", PLAIN));
    assert!(matches!(published.await, Err(BrokerError::Away { .. })));
    let subscribed = node.broker.subscribe(&channel, PLAIN);
    assert!(matches!(subscribed.await, Err(BrokerError::Away { .. })));
    service.server.restart();
    let gap = node.recorder.gap().await;
    assert_eq!(gap.reason, GapReason::LinkLost);
    assert!(gap.channels.is_none());
    assert!(gap.lasted >= Duration::from_millis(1_500), "{gap:?}");
    assert!(gap.lasted <= killed.elapsed() + Duration::from_secs(2));
    node.recorder.link(true).await;
    node.publish("plain", "2", PLAIN).await;
    let received = node.recorder.publications("plain", 2).await;
    assert_eq!(received[1].payload(), "2");
    let epoch = |at: usize| received[at].position().unwrap().epoch.clone();
    assert_ne!(epoch(0), epoch(1));
    assert_eq!(received[1].offset(), 1);
    assert_eq!(node.recorder.gaps().len(), 1);
}

#[tokio::test]
async fn g01_a_server_that_has_not_started_is_awaited() {
    let Some(mut service) = Standalone::start() else {
        return;
    };
    service.server.kill();
    let recorder = Recorder::new();
    let broker = service.node(impatient(), recorder.clone()).await;
    let node = Node { broker, recorder };
    assert!(!is_up(&node));
    service.server.restart();
    node.recorder.link(true).await;
    node.subscribe("a", BARE).await;
    node.publish("a", "x", BARE).await;
    node.recorder.payloads("a", 1).await;
    // Nothing was ever received, so nothing was missed.
    assert!(node.recorder.gaps().is_empty());
}

#[tokio::test]
async fn g01_a_server_that_is_paused_is_found_out_and_nothing_is_lost() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    node.subscribe("plain", PLAIN).await;
    node.publish("plain", "before", PLAIN).await;
    node.recorder.until("plain", "before").await;
    let paused = Instant::now();
    service.server.pause();
    node.recorder.link(false).await;
    assert!(paused.elapsed() < Duration::from_secs(5));
    assert!(!is_up(&node));
    service.server.resume();
    node.recorder.link(true).await;
    node.publish("plain", "after", PLAIN).await;
    let received = node.recorder.until("plain", "after").await;
    // The link stayed up all the time: one epoch, no gap.
    assert_eq!(received.len(), 2);
    let epoch = |at: usize| received[at].position().unwrap().epoch.clone();
    assert_eq!(epoch(0), epoch(1));
    assert!(node.recorder.gaps().is_empty());
}

#[tokio::test]
async fn g01_a_silent_server_is_disconnected() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let options = BrokerOptions {
        dead_after: Duration::from_secs(2),
        dial_timeout: Duration::from_secs(1),
        probe_interval: Duration::from_millis(300),
        probe_timeout: Duration::from_millis(600),
        ..impatient()
    };
    let node = Node::with(&service, options).await;
    node.subscribe("plain", PLAIN).await;
    service.server.pause();
    node.recorder.link(false).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    service.server.resume();
    let gap = node.recorder.gap().await;
    assert!(gap.lasted >= Duration::from_secs(2), "{gap:?}");
    node.recorder.link(true).await;
    node.publish("plain", "after", PLAIN).await;
    node.recorder.until("plain", "after").await;
}

#[tokio::test]
async fn g01_silent_connections_are_replaced() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let proxy = Proxy::start(service.server.port()).await;
    let options = BrokerOptions {
        dead_after: Duration::from_secs(3),
        ..impatient()
    };
    let recorder = Recorder::new();
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let redis = Redis::new(&url, options, recorder.clone()).unwrap();
    recorder.link(true).await;
    let node = Node {
        broker: Arc::new(redis),
        recorder,
    };
    node.subscribe("plain", PLAIN).await;
    node.publish("plain", "before", PLAIN).await;
    node.recorder.until("plain", "before").await;
    // There are no publications, so only the loopback publications can detect it, on both
    // connections.
    let silenced = Instant::now();
    proxy.silence();
    node.recorder.link(false).await;
    assert!(silenced.elapsed() < Duration::from_secs(5));
    node.recorder.link(true).await;
    node.recorder.gap().await;
    node.publish("plain", "after", PLAIN).await;
    node.recorder.until("plain", "after").await;
}

#[tokio::test]
async fn g02_being_killed_for_slowness_is_a_gap() {
    let limit = "pubsub 1mb 256kb 1";
    let Some(service) = Standalone::start_with(&["--client-output-buffer-limit", limit]) else {
        return;
    };
    let node = Node::of(&service).await;
    node.subscribe("plain", PLAIN).await;
    node.recorder.block();
    let payload = "x".repeat(100_000);
    let publisher = Node::of(&service).await;
    for _ in 0..200 {
        publisher.publish("plain", payload.clone(), PLAIN).await;
    }
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    // A node that accepts nothing is deaf, even if the server works.
    assert!(!is_up(&node));
    node.recorder.unblock();
    let gap = node.recorder.gap().await;
    assert_eq!(gap.reason, GapReason::Overflow);
    publisher.publish("plain", "after", PLAIN).await;
    let received = node.recorder.until("plain", "after").await;
    assert!(received.len() < 200);
    node.recorder.link(true).await;
}

#[tokio::test]
async fn g03_a_server_that_forgot_publications_begins_a_new_epoch() {
    let append_only = ["--appendonly", "yes", "--appendfsync", "no"];
    let Some(mut service) = Standalone::start_with(&append_only) else {
        return;
    };
    let node = Node::of(&service).await;
    node.subscribe("durable", DURABLE).await;
    for number in 1..=3 {
        node.publish("durable", number.to_string(), DURABLE).await;
    }
    let before = node.recorder.publications("durable", 3).await;
    let before = before[2].position().unwrap().clone();
    // Simulates that the last two were not on disk yet when the server was killed.
    service
        .server
        .cli(&["HSET", "linerate.meta.{durable}", "offset", "1"]);
    service
        .server
        .cli(&["CONFIG", "SET", "appendfsync", "always"]);
    service.server.kill();
    service.server.restart();
    node.recorder.gap().await;
    node.recorder.link(true).await;
    let published = node.publish("durable", "4", DURABLE).await;
    let after = published.position.unwrap();
    assert_ne!(after.epoch, before.epoch);
    let received = node.recorder.publications("durable", 4).await;
    assert_eq!(received[3].position(), Some(&after));
    let request = HistoryRequest {
        since: Some(before.clone()),
        ..HistoryRequest::default()
    };
    let channel = name("durable");
    let history = node.broker.history(&channel, DURABLE, request).await;
    let history = history.unwrap();
    // The new epoch follows that of the position, so no client of the old one has seen its
    // contents.
    assert!(!history.is_contiguous);
    let payloads = history.publications.iter().map(|found| found.payload());
    assert!(payloads.eq(["4"]));
}

/// Kills and restarts the server, and publishes in the durable channel before the node reconnects.
async fn publish_behind_a_restart(service: &mut Standalone, count: usize) {
    service.server.kill();
    service.server.restart();
    let publisher = Node::of(service).await;
    for number in 1..=count {
        publisher
            .publish("durable", format!("new {number}"), DURABLE)
            .await;
    }
}

/// Options with which a node is slow to reconnect to a server.
fn slow_to_return() -> BrokerOptions {
    BrokerOptions {
        reconnect_delay_min: Duration::from_secs(8),
        reconnect_delay_max: Duration::from_secs(8),
        ..BrokerOptions::default()
    }
}

#[tokio::test]
async fn what_was_published_behind_a_restart_is_delivered_behind_the_gap() {
    let append_only = ["--appendonly", "yes", "--appendfsync", "always"];
    for arguments in [&append_only[..], &[]] {
        let Some(mut service) = Standalone::start_with(arguments) else {
            return;
        };
        let node = Node::with(&service, slow_to_return()).await;
        node.subscribe("durable", DURABLE).await;
        for number in 1..=3 {
            node.publish("durable", number.to_string(), DURABLE).await;
        }
        let before = node.recorder.publications("durable", 3).await;
        publish_behind_a_restart(&mut service, 20).await;
        let gap = node.recorder.gap().await;
        assert!(gap.lasted > Duration::ZERO);
        let publisher = Node::of(&service).await;
        publisher.publish("durable", "last", DURABLE).await;
        let received = node.recorder.until("durable", "last").await;
        let received: Vec<_> = received.iter().skip(3).collect();
        let expected = (1..=20).map(|number| format!("new {number}"));
        let expected = expected.chain(["last".to_owned()]);
        assert!(
            received
                .iter()
                .map(|one| one.payload().clone())
                .eq(expected)
        );
        let offsets = received.iter().map(|one| one.offset());
        assert!(offsets.eq(1..=21), "one epoch from its start");
        assert_eq!(node.recorder.gaps().len(), 1);
        // A client that is still at its old position gets the same, and learns that it is
        // incomplete.
        let request = HistoryRequest {
            since: before[2].position().cloned(),
            ..HistoryRequest::default()
        };
        let channel = name("durable");
        let history = node
            .broker
            .history(&channel, DURABLE, request)
            .await
            .unwrap();
        assert!(!history.is_contiguous);
        assert_eq!(history.publications.len(), 21);
    }
}

#[tokio::test]
async fn publications_after_a_restart_are_delivered_in_a_quiet_channel() {
    let Some(mut service) = Standalone::start() else {
        return;
    };
    let node = Node::with(&service, slow_to_return()).await;
    node.publish("durable", "before anybody came", DURABLE)
        .await;
    node.subscribe("durable", DURABLE).await;
    // This is the request of a client that wants to know where it starts.
    let channel = name("durable");
    let request = HistoryRequest {
        limit: Some(0),
        ..HistoryRequest::default()
    };
    let history = node.broker.history(&channel, DURABLE, request).await;
    assert_eq!(history.unwrap().newest.offset, 1);
    publish_behind_a_restart(&mut service, 3).await;
    let received = node.recorder.until("durable", "new 3").await;
    let payloads = received.iter().map(|one| one.payload());
    assert!(payloads.eq(["new 1", "new 2", "new 3"]));
    assert_eq!(node.recorder.gaps().len(), 1);
}

#[tokio::test]
async fn while_a_full_server_refuses_writes_so_are_probing_writes() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    node.broker.probe_write().await.unwrap();
    node.publish("durable", "x", DURABLE).await;
    service
        .server
        .cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    service.server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let channel = name("durable");
    let published = node.broker.publish(&channel, publish("x", DURABLE)).await;
    assert!(
        matches!(published, Err(BrokerError::Refused { .. })),
        "{published:?}"
    );
    let written = node.broker.probe_write().await;
    assert!(
        matches!(written, Err(BrokerError::Refused { .. })),
        "{written:?}"
    );
    // Plain channels and the link are not affected.
    assert!(is_up(&node));
    service.server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    node.broker.probe_write().await.unwrap();
}

#[tokio::test]
async fn a_full_server_refuses_the_first_publication_of_a_channel_too() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    let full: [&[&str]; 2] = [
        &["CONFIG", "SET", "maxmemory-policy", "noeviction"],
        &["CONFIG", "SET", "maxmemory", "1"],
    ];
    for command in full {
        service.server.cli(command);
    }
    let written = node.broker.probe_write().await;
    assert!(
        matches!(written, Err(BrokerError::Refused { .. })),
        "nothing was written before: {written:?}"
    );
    let channel = name("durable");
    for _ in 0..2 {
        let published = node.broker.publish(&channel, publish("x", DURABLE)).await;
        assert!(
            matches!(published, Err(BrokerError::Refused { .. })),
            "{published:?}"
        );
    }
    let keys = service.server.cli(&["KEYS", "linerate.*"]);
    assert!(!keys.contains("durable"), "keys are left: {keys}");
    service.server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let published = node.publish("durable", "x", DURABLE).await;
    assert_eq!(published.position.unwrap().offset, 1);
}

#[tokio::test]
async fn g03_offsets_that_go_back_are_a_gap() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    node.subscribe("durable", DURABLE).await;
    for number in 1..=3 {
        node.publish("durable", number.to_string(), DURABLE).await;
    }
    node.recorder.publications("durable", 3).await;
    let keys = service.server.cli(&["KEYS", "linerate.*"]);
    assert!(keys.contains("linerate.meta.{durable}"), "{keys}");
    service.server.cli(&["DEL", "linerate.stream.{durable}"]);
    service
        .server
        .cli(&["HSET", "linerate.meta.{durable}", "offset", "1"]);
    node.publish("durable", "again", DURABLE).await;
    let gap = node.recorder.gap().await;
    assert_eq!(gap.reason, GapReason::StreamReset);
    assert_eq!(gap.channels, Some(vec![name("durable")]));
}

#[tokio::test]
async fn g04_a_cut_under_load_loses_and_repeats_nothing_in_durable_channels() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    let publisher = Node::of(&service).await;
    let options = StreamOptions {
        size_max: 10_000,
        ..DURABLE
    };
    node.subscribe("durable", options).await;
    node.publish("durable", "0", options).await;
    node.recorder.until("durable", "0").await;
    for number in 1..=2_000 {
        publisher
            .publish("durable", number.to_string(), options)
            .await;
        if number % 500 == 250 {
            service.server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        }
    }
    let received = node.recorder.until("durable", "2000").await;
    let offsets: Vec<u64> = received.iter().map(|found| found.offset()).collect();
    let expected: Vec<u64> = (1..=2_001).collect();
    let wrong = offsets
        .iter()
        .zip(&expected)
        .position(|(found, expected)| found != expected);
    assert_eq!((wrong, offsets.len()), (None, 2_001));
    assert!(
        node.recorder.gaps().is_empty(),
        "{:?}",
        node.recorder.gaps()
    );
}

#[tokio::test]
async fn g04_a_cut_of_all_connections_is_no_gap_in_durable_channels() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let proxy = Proxy::start(service.server.port()).await;
    let recorder = Recorder::new();
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let broker = Redis::new(&url, BrokerOptions::default(), recorder.clone()).unwrap();
    let node = Node {
        broker: Arc::new(broker),
        recorder,
    };
    node.recorder.link(true).await;
    let publisher = Node::of(&service).await;
    let channels: Vec<String> = (0..20).map(|number| format!("durable{number}")).collect();
    for channel in &channels {
        node.subscribe(channel, DURABLE).await;
        publisher.publish(channel, "0", DURABLE).await;
        node.recorder.until(channel, "0").await;
    }
    for round in 1..=5 {
        proxy.cut();
        for channel in &channels {
            publisher.publish(channel, round.to_string(), DURABLE).await;
        }
        for channel in &channels {
            let received = node.recorder.until(channel, &round.to_string()).await;
            let offsets: Vec<u64> = received.iter().map(|found| found.offset()).collect();
            let expected: Vec<u64> = (1..=round + 1).collect();
            assert_eq!(offsets, expected);
        }
    }
    let gaps = node.recorder.gaps();
    assert!(gaps.is_empty(), "{gaps:?}");
}

#[tokio::test]
async fn g04_publications_that_a_stream_no_longer_holds_after_a_cut_are_a_gap() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let options = BrokerOptions {
        reconnect_delay_min: Duration::from_millis(1_000),
        ..BrokerOptions::default()
    };
    let node = Node::with(&service, options).await;
    let publisher = Node::of(&service).await;
    for channel in ["long", "short", "silent"] {
        node.subscribe(channel, DURABLE).await;
    }
    let short = StreamOptions {
        size_max: 2,
        ..DURABLE
    };
    for (channel, options) in [("long", DURABLE), ("short", short)] {
        publisher.publish(channel, "0", options).await;
        node.recorder.until(channel, "0").await;
    }
    service.server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    for number in 1..=5 {
        for (channel, options) in [("long", DURABLE), ("short", short)] {
            publisher
                .publish(channel, number.to_string(), options)
                .await;
        }
    }
    let gap = node.recorder.gap().await;
    let mut channels = gap.channels.unwrap();
    channels.sort();
    assert_eq!(channels, [name("short"), name("silent")]);
    let received = node.recorder.until("long", "5").await;
    assert_eq!(received.len(), 6);
    publisher.publish("short", "6", short).await;
    let received = node.recorder.until("short", "6").await;
    let payloads = received.iter().map(|one| one.payload());
    assert!(
        payloads.eq(["0", "4", "5", "6"]),
        "the remaining publications follow the gap"
    );
}

#[tokio::test]
async fn g05_publications_between_history_and_live_are_neither_lost_nor_unknown() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    let publisher = Node::of(&service).await;
    for round in 0..20 {
        let channel = format!("c{round}");
        let publishing = async {
            for number in 0..50 {
                publisher
                    .publish(&channel, number.to_string(), DURABLE)
                    .await;
            }
        };
        let subscribing = async {
            tokio::time::sleep(Duration::from_millis(round)).await;
            node.subscribe(&channel, DURABLE).await;
            let channel_name = name(&channel);
            let request = HistoryRequest::default();
            let history = node.broker.history(&channel_name, DURABLE, request).await;
            history.unwrap()
        };
        let ((), history) = tokio::join!(publishing, subscribing);
        let from: StreamPosition = history.newest;
        let live = match from.offset {
            50 => Vec::new(),
            _ => node.recorder.until(&channel, "49").await,
        };
        let new = live.iter().map(|found| found.offset());
        let new: Vec<u64> = new.filter(|offset| *offset > from.offset).collect();
        let expected: Vec<u64> = (from.offset + 1..=50).collect();
        assert_eq!(new, expected);
        assert_eq!(history.publications.len() as u64, from.offset);
    }
}

#[tokio::test]
async fn g08_connections_that_are_killed_while_in_use_break_nothing() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    node.subscribe("plain", PLAIN).await;
    let channel = name("plain");
    for number in 0..300_u32 {
        if number % 30 == 0 {
            service
                .server
                .cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            service.server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        }
        let publish = publish(number.to_string(), PLAIN);
        match node.broker.publish(&channel, publish).await {
            Ok(_) | Err(BrokerError::Away { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    node.recorder.link(true).await;
    node.recorder
        .wait("publication after the last cut", |_| {
            is_up(&node).then_some(())
        })
        .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    node.recorder.link(true).await;
    node.publish("plain", "last", PLAIN).await;
    node.recorder.until("plain", "last").await;
    let links = node.recorder.wait("link events", |events| {
        let links = events
            .iter()
            .filter(|(_, event)| matches!(event, Event::Link(_)));
        Some(links.count())
    });
    assert!(links.await >= 3);
}
