//! Tests of publishers that do not use linerate, of options, and of the URL.

use std::time::Duration;

use bytes::Bytes;
use linerate_broker::{Broker, BrokerError, BrokerOptions, GapReason, Redis};
use linerate_testkit::server::RedisServer;

use super::Standalone;
use crate::{
    contract::{BARE, DURABLE, Node, PLAIN, name, publish},
    recorder::Recorder,
};

#[tokio::test]
async fn publications_of_redis_cli_arrive_byte_for_byte() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    node.subscribe("ticks", BARE).await;
    node.subscribe("tick*", BARE).await;
    assert_eq!(service.server.cli(&["PUBLISH", "ticks", "hello"]), "2");
    assert_eq!(node.recorder.payloads("ticks", 1).await, ["hello"]);
    // This also applies to a payload that looks like one of our envelopes.
    let script = "return redis.call('PUBLISH', 'ticks', '\\0lr1 1 e 0\\n\\255\\r\\n')";
    assert_eq!(service.server.cli(&["EVAL", script, "0"]), "2");
    let expected = Bytes::from_static(b"\0lr1 1 e 0\n\xff\r\n");
    for subscription in ["ticks", "tick*"] {
        let received = node.recorder.payloads(subscription, 2).await;
        assert_eq!(received, ["hello".into(), expected.clone()]);
    }
}

#[tokio::test]
async fn batched_publications_are_read_together() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let options = BrokerOptions {
        // No answers are pending in the meantime.
        probe_interval: Duration::from_secs(60),
        ..BrokerOptions::default()
    };
    let node = Node::with(&service, options).await;
    node.subscribe("ticks", BARE).await;
    node.recorder.set_patience(Duration::from_secs(10));
    let rounds = (0..10).map(|round| 4 * round);
    for before in rounds {
        service.server.cli(&["PUBLISH", "ticks", "0"]);
        node.recorder.times("ticks", before + 1).await;
        for payload in ["1", "2", "3"] {
            service.server.cli(&["PUBLISH", "ticks", payload]);
        }
        // A new subscription does not have to wait.
        node.subscribe(&format!("other{before}"), BARE).await;
        let came = node.recorder.times("ticks", before + 4).await;
        // This fails only if Redis had not answered the first PING yet.
        if came[before + 1] == came[before + 3] {
            return;
        }
    }
    panic!("each publication is read separately");
}

#[tokio::test]
async fn commands_outlive_the_runtime_of_the_worker_that_reads() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let mut worker = tokio::runtime::Builder::new_multi_thread();
    let worker = worker.worker_threads(1).enable_all().build().unwrap();
    let options = BrokerOptions {
        reader: Some(worker.handle().clone()),
        ..BrokerOptions::default()
    };
    let node = Node::with(&service, options).await;
    node.subscribe("ticks", BARE).await;
    node.publish("ticks", "one", BARE).await;
    assert_eq!(node.recorder.payloads("ticks", 1).await, ["one"]);
    worker.shutdown_background();
    let refused = node.broker.subscribe(&name("other"), BARE).await;
    assert!(refused.is_err(), "the link must be on the worker's runtime");
    node.publish("ticks", "two", BARE).await;
}

#[tokio::test]
async fn plain_publications_reach_durable_channels_without_a_position() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    node.subscribe("news", DURABLE).await;
    service.server.cli(&["PUBLISH", "news", "plain"]);
    node.publish("news", "numbered", DURABLE).await;
    let received = node.recorder.publications("news", 2).await;
    assert_eq!(received[0].payload(), "plain");
    assert_eq!(received[0].position(), None);
    assert_eq!(received[1].payload(), "numbered");
    assert_eq!(received[1].offset(), 1);
}

#[tokio::test]
async fn a_pattern_opens_envelopes_where_its_channels_are_durable() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    node.subscribe("news:*", DURABLE).await;
    node.publish("news:a", "payload", DURABLE).await;
    let received = node.recorder.publications("news:*", 1).await;
    assert_eq!(received[0].payload(), "payload");
    assert_eq!(received[0].source(), Some(&name("news:a")));
}

#[tokio::test]
async fn a_pattern_for_everything_excludes_internal_channels() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    node.subscribe("*", BARE).await;
    let message = Bytes::from_static(b"among nodes");
    node.broker.send_control(None, message).await.unwrap();
    service.server.cli(&["PUBLISH", "name with spaces", "x"]);
    node.publish("any", "y", BARE).await;
    let received = node.recorder.publications("*", 2).await;
    let sources: Vec<_> = received.iter().map(|found| found.source()).collect();
    assert_eq!(sources, [None, Some(&name("any"))]);
    let reserved = name("linerate.control");
    let refused = node.broker.publish(&reserved, publish("x", BARE)).await;
    assert!(matches!(refused, Err(BrokerError::Refused { .. })));
    let refused = node.broker.subscribe(&reserved, BARE).await;
    assert!(matches!(refused, Err(BrokerError::Refused { .. })));
}

#[tokio::test]
async fn an_oversized_payload_is_skipped_and_reported_as_a_gap() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let options = BrokerOptions {
        payload_bytes_max: 1_000,
        ..BrokerOptions::default()
    };
    let node = Node::with(&service, options).await;
    node.subscribe("ticks", PLAIN).await;
    node.publish("ticks", "before", PLAIN).await;
    let script = "return redis.call('PUBLISH', 'ticks', string.rep('x', 3000000))";
    assert_eq!(service.server.cli(&["EVAL", script, "0"]), "1");
    node.publish("ticks", "after", PLAIN).await;
    let received = node.recorder.publications("ticks", 2).await;
    assert_eq!(received[1].payload(), "after");
    let epoch = |at: usize| received[at].position().unwrap().epoch.clone();
    assert_ne!(epoch(0), epoch(1));
    let gap = node.recorder.gap().await;
    assert_eq!(gap.reason, GapReason::Oversized);
    assert_eq!(gap.channels, Some(vec![name("ticks")]));
}

#[tokio::test]
async fn a_prefix_separates_services_on_one_server() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let options = |prefix: &str| BrokerOptions {
        prefix: prefix.to_owned(),
        ..BrokerOptions::default()
    };
    let one = Node::with(&service, options("one[1].")).await;
    let other = Node::with(&service, options("other.")).await;
    for (channel, options) in [("a", PLAIN), ("b", DURABLE), ("*", BARE)] {
        one.subscribe(channel, options).await;
        other.subscribe(channel, options).await;
    }
    for (channel, options) in [("a", PLAIN), ("b", DURABLE)] {
        other.publish(channel, "to other", options).await;
        one.publish(channel, "to one", options).await;
        assert_eq!(one.recorder.payloads(channel, 1).await, ["to one"]);
        assert_eq!(other.recorder.payloads(channel, 1).await, ["to other"]);
    }
    service.server.cli(&["PUBLISH", "one[1].a", "by name"]);
    let received = one.recorder.payloads("a", 2).await;
    assert_eq!(received, ["to one", "by name"]);
    let received = one.recorder.publications("*", 3).await;
    assert_eq!(received[0].source(), Some(&name("a")));
}

#[tokio::test]
async fn the_acl_user_in_the_url_is_used() {
    let Some(server) = RedisServer::start() else {
        return;
    };
    let rules = ["ACL", "SETUSER", "gate", "on", ">p@ss/word", "~*", "+@all"];
    let channels = ["resetchannels", "&open", "&linerate.*", "&open*"];
    assert_eq!(server.cli(&[&rules[..], &channels].concat()), "OK");
    server.cli(&["CONFIG", "SET", "requirepass", "other"]);
    let url = |login: &str| format!("redis://{login}@{}", server.address());
    let recorder = Recorder::new();
    let options = BrokerOptions::default();
    let redis = Redis::new(&url("gate:p%40ss%2Fword"), options, recorder.clone()).unwrap();
    recorder.link(true).await;
    redis.subscribe(&name("open"), BARE).await.unwrap();
    let refused = redis.subscribe(&name("closed"), BARE).await;
    let error = refused.unwrap_err();
    assert!(error.to_string().contains("NOPERM"), "{error}");
    let refused = redis.publish(&name("closed"), publish("x", BARE)).await;
    assert!(matches!(refused, Err(BrokerError::Refused { .. })));
    let published = redis.publish(&name("open"), publish("x", BARE)).await;
    published.unwrap();
    assert_eq!(recorder.payloads("open", 1).await, ["x"]);
}

#[tokio::test]
async fn a_wrong_password_is_reported_but_not_shown() {
    let Some(server) = RedisServer::start_with(&["--requirepass", "secret"]) else {
        return;
    };
    let options = BrokerOptions {
        command_timeout: std::time::Duration::from_secs(1),
        ..BrokerOptions::default()
    };
    for login in ["", ":hunter2@", "user:hunter2@"] {
        let url = format!("redis://{login}{}", server.address());
        let redis = Redis::new(&url, options.clone(), Recorder::new()).unwrap();
        let subscribed = redis.subscribe(&name("a"), BARE).await;
        let published = redis.publish(&name("a"), publish("x", BARE)).await;
        for error in [subscribed.unwrap_err(), published.unwrap_err()] {
            let text = error.to_string();
            assert!(matches!(
                error,
                BrokerError::Away { .. } | BrokerError::Refused { .. }
            ));
            let is_told = ["NOAUTH", "WRONGPASS", "uthentication"];
            assert!(is_told.iter().any(|word| text.contains(word)), "{text}");
            assert!(!text.contains("hunter"), "{text}");
        }
    }
}

#[test]
fn a_malformed_url_is_an_error_without_the_password() {
    for url in ["redis://:hunter2/@h", "redis://u:hunter2@h:x", "redis:/h"] {
        let redis = Redis::new(url, BrokerOptions::default(), Recorder::new());
        let error = redis.unwrap_err();
        let text = format!("{error}: {}", std::error::Error::source(&error).unwrap());
        assert!(!text.contains("hunter"), "{text}");
    }
}
