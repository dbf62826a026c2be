//! Tests of positions, history and recovery.

use std::time::Duration;

use bytes::Bytes;
use linerate_broker::{
    BrokerError, BrokerOptions, History, HistoryRequest, Publish, StreamOptions,
};
use linerate_hub::{ClientInfo, Epoch, Publication, StreamPosition};

use super::{BARE, DURABLE, Node, PLAIN, Service, name, publish};

const STREAMS: [(&str, StreamOptions); 2] = [("plain", PLAIN), ("durable", DURABLE)];

impl Node {
    async fn publish_numbers(&self, channel: &str, options: StreamOptions, count: u64) {
        self.subscribe(channel, options).await;
        for number in 1..=count {
            self.publish(channel, number.to_string(), options).await;
        }
        self.recorder.publications(channel, count as usize).await;
    }

    pub(crate) async fn history(
        &self,
        channel: &str,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> History {
        let channel = name(channel);
        let history = self.broker.history(&channel, options, request);
        history.await.unwrap()
    }

    async fn newest(&self, channel: &str, options: StreamOptions) -> StreamPosition {
        let request = HistoryRequest {
            limit: Some(0),
            ..HistoryRequest::default()
        };
        let history = self.history(channel, options, request).await;
        assert!(history.publications.is_empty());
        assert!(history.is_contiguous);
        history.newest
    }
}

pub(super) fn since(position: &StreamPosition, offset: u64) -> HistoryRequest {
    let epoch = position.epoch.clone();
    HistoryRequest {
        since: Some(StreamPosition { epoch, offset }),
        ..HistoryRequest::default()
    }
}

pub(super) fn payloads(publications: &[Publication]) -> Vec<Bytes> {
    let payloads = publications.iter().map(|found| found.payload().clone());
    payloads.collect()
}

pub(crate) async fn positions_count_up_in_one_epoch(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, options) in STREAMS {
        node.subscribe(channel, options).await;
        let before = node.newest(channel, options).await;
        assert_eq!(before.offset, 0, "{channel}");
        for _ in 0..5 {
            node.publish(channel, "x", options).await;
        }
        let received = node.recorder.publications(channel, 5).await;
        for (publication, offset) in received.iter().zip(1..) {
            let epoch = before.epoch.clone();
            assert_eq!(
                publication.position(),
                Some(&StreamPosition { epoch, offset })
            );
        }
        assert_eq!(node.newest(channel, options).await.offset, 5);
    }
}

pub(crate) async fn a_channel_without_history_has_no_positions(service: &impl Service) {
    let node = Node::of(service).await;
    node.subscribe("bare", BARE).await;
    let published = node.publish("bare", "x", BARE).await;
    assert_eq!(published.position, None);
    let received = node.recorder.publications("bare", 1).await;
    assert_eq!(received[0].position(), None);
    let request = HistoryRequest::default();
    let history = node.broker.history(&name("bare"), BARE, request).await;
    assert!(matches!(history, Err(BrokerError::NoHistory)));
    let removed = node.broker.remove_history(&name("bare"), BARE).await;
    assert!(matches!(removed, Err(BrokerError::NoHistory)));
}

pub(crate) async fn history_returns_what_follows_a_position(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, options) in STREAMS {
        node.publish_numbers(channel, options, 5).await;
        let newest = node.newest(channel, options).await;
        let all = HistoryRequest::default();
        let all = node.history(channel, options, all).await;
        assert_eq!(payloads(&all.publications), ["1", "2", "3", "4", "5"]);
        assert_eq!(all.newest, newest);
        let part = node.history(channel, options, since(&newest, 3)).await;
        assert_eq!(payloads(&part.publications), ["4", "5"]);
        assert_eq!(part.publications[1].position(), Some(&newest));
        assert!(part.is_contiguous);
        let none = node.history(channel, options, since(&newest, 5)).await;
        assert!(none.publications.is_empty() && none.is_contiguous);
        let future = node.history(channel, options, since(&newest, 6)).await;
        assert!(future.publications.is_empty() && !future.is_contiguous);
    }
}

pub(crate) async fn history_is_limited_and_reversed_as_requested(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, options) in STREAMS {
        node.publish_numbers(channel, options, 5).await;
        let newest = node.newest(channel, options).await;
        let mut request = since(&newest, 1);
        request.limit = Some(2);
        let limited = node.history(channel, options, request.clone()).await;
        assert_eq!(payloads(&limited.publications), ["2", "3"]);
        assert!(limited.is_contiguous);
        request.is_reverse = true;
        let reversed = node.history(channel, options, request).await;
        assert_eq!(payloads(&reversed.publications), ["5", "4"]);
        let request = HistoryRequest {
            limit: Some(1),
            is_reverse: true,
            ..HistoryRequest::default()
        };
        let last = node.history(channel, options, request).await;
        assert_eq!(payloads(&last.publications), ["5"]);
    }
}

pub(crate) async fn a_position_of_another_epoch_recovers_nothing(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, options) in STREAMS {
        node.publish_numbers(channel, options, 3).await;
        let other = StreamPosition {
            epoch: Epoch::new("another"),
            offset: 1,
        };
        let history = node.history(channel, options, since(&other, 1)).await;
        assert!(history.publications.is_empty());
        assert!(!history.is_contiguous);
        assert_eq!(history.newest.offset, 3);
    }
}

pub(crate) async fn a_stream_that_was_cut_off_is_not_contiguous(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, options) in STREAMS {
        let options = StreamOptions {
            size_max: 3,
            ..options
        };
        node.publish_numbers(channel, options, 5).await;
        let newest = node.newest(channel, options).await;
        let cut_off = node.history(channel, options, since(&newest, 1)).await;
        assert_eq!(payloads(&cut_off.publications), ["3", "4", "5"]);
        assert!(!cut_off.is_contiguous);
        let reached = node.history(channel, options, since(&newest, 2)).await;
        assert_eq!(payloads(&reached.publications), ["3", "4", "5"]);
        assert!(reached.is_contiguous);
    }
}

pub(crate) async fn what_is_too_old_is_gone(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, options) in STREAMS {
        let ttl = Duration::from_millis(1_000);
        let options = StreamOptions { ttl, ..options };
        node.publish_numbers(channel, options, 2).await;
        tokio::time::sleep(ttl + Duration::from_millis(300)).await;
        node.publish(channel, "3", options).await;
        node.recorder.publications(channel, 3).await;
        let newest = node.newest(channel, options).await;
        assert_eq!(newest.offset, 3);
        let history = node.history(channel, options, since(&newest, 0)).await;
        assert_eq!(payloads(&history.publications), ["3"]);
        assert!(!history.is_contiguous);
    }
}

pub(crate) async fn removing_history_does_not_reset_offsets(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, options) in STREAMS {
        node.publish_numbers(channel, options, 2).await;
        let before = node.newest(channel, options).await;
        let removed = node.broker.remove_history(&name(channel), options).await;
        removed.unwrap();
        assert_eq!(node.newest(channel, options).await, before);
        let history = node.history(channel, options, since(&before, 0)).await;
        assert!(history.publications.is_empty() && !history.is_contiguous);
        node.publish(channel, "3", options).await;
        node.recorder.publications(channel, 3).await;
        let history = node.history(channel, options, since(&before, 2)).await;
        assert_eq!(payloads(&history.publications), ["3"]);
        assert!(history.is_contiguous);
        assert_eq!(history.newest.offset, 3);
    }
}

pub(crate) async fn a_durable_publication_says_its_position(service: &impl Service) {
    let node = Node::of(service).await;
    node.subscribe("durable", DURABLE).await;
    for number in 1..=3 {
        let published = node.publish("durable", "x", DURABLE).await;
        let received = node.recorder.publications("durable", number).await;
        assert_eq!(received[number - 1].position(), published.position.as_ref());
        assert_eq!(received[number - 1].offset(), number as u64);
    }
}

pub(crate) async fn who_published_and_tags_survive_in_durable_channels(service: &impl Service) {
    let node = Node::of(service).await;
    node.subscribe("durable", DURABLE).await;
    let info = ClientInfo {
        user: "ada".into(),
        client: "c-1".into(),
        connection: Some((*b"{\"name\":\"Ada\"}").into()),
        channel: None,
    };
    let tags = vec![("level".to_owned(), "error\n\"".to_owned())];
    let full = Publish {
        info: Some(info.clone()),
        tags: tags.clone(),
        ..publish("x", DURABLE)
    };
    node.broker.publish(&name("durable"), full).await.unwrap();
    let live = node.recorder.publications("durable", 1).await;
    let request = HistoryRequest::default();
    let history = node.history("durable", DURABLE, request).await;
    for publication in [&live[0], &history.publications[0]] {
        assert_eq!(publication.payload(), "x");
        assert_eq!(publication.info(), Some(&info));
        assert_eq!(publication.tags(), tags);
    }
}

pub(crate) async fn tags_survive_in_plain_channels(service: &impl Service) {
    let node = Node::of(service).await;
    node.subscribe("plain", PLAIN).await;
    let tags = vec![("event".to_owned(), "a\n\"".to_owned())];
    let info = ClientInfo {
        user: "ada".into(),
        ..ClientInfo::default()
    };
    let full = Publish {
        info: Some(info.clone()),
        tags: tags.clone(),
        ..publish("x", PLAIN)
    };
    node.broker.publish(&name("plain"), full).await.unwrap();
    node.publish("plain", "y", PLAIN).await;
    let received = node.recorder.publications("plain", 2).await;
    assert_eq!(received[0].payload(), "x");
    assert_eq!(received[0].tags(), tags);
    assert_eq!(received[0].info(), Some(&info));
    assert_eq!(received[1].payload(), "y");
    assert!(received[1].tags().is_empty());
}

pub(crate) async fn a_key_publishes_once(service: &impl Service) {
    let options = BrokerOptions {
        idempotency_ttl: Duration::from_secs(3),
        ..BrokerOptions::default()
    };
    let node = Node::with(service, options).await;
    for (channel, options) in STREAMS {
        let keyed = |payload: &'static str, key: &str| Publish {
            idempotency_key: Some(key.to_owned()),
            ..publish(payload, options)
        };
        node.subscribe(channel, options).await;
        let channel_name = name(channel);
        let publish = |publish| node.broker.publish(&channel_name, publish);
        let first = publish(keyed("first", "k")).await.unwrap();
        let again = publish(keyed("again", "k")).await.unwrap();
        assert_eq!(first, again);
        publish(keyed("other", "l")).await.unwrap();
        assert_eq!(
            node.recorder.payloads(channel, 2).await,
            ["first", "other"],
            "{channel}"
        );
        tokio::time::sleep(Duration::from_millis(3_100)).await;
        publish(keyed("later", "k")).await.unwrap();
        let received = node.recorder.payloads(channel, 3).await;
        assert_eq!(received, ["first", "other", "later"], "{channel}");
    }
}

/// Names, some of which become equal if they are escaped carelessly.
const ALIKE: [&str; 14] = [
    "room",
    "{room}",
    "{{room}}",
    "{room}room",
    "room.a",
    "room-a",
    "room/a",
    "room:a",
    "a}b",
    "a{b",
    "{a}b",
    "{}x",
    "x}",
    "linerate-room",
];

pub(crate) async fn no_name_reaches_what_another_channel_holds(service: &impl Service) {
    let node = Node::of(service).await;
    for (what, options) in STREAMS {
        let payload = |channel| format!("{what} {channel}");
        for channel in ALIKE {
            node.subscribe(channel, options).await;
            let mut publish = publish(payload(channel), options);
            publish.idempotency_key = Some(what.to_owned());
            let published = node.broker.publish(&name(channel), publish).await;
            published.unwrap();
        }
        for channel in ALIKE {
            node.recorder.until(channel, &payload(channel)).await;
            let history = node.history(channel, options, HistoryRequest::default());
            let found = payloads(&history.await.publications);
            assert_eq!(found.last().unwrap(), &payload(channel));
            // The embedded broker stores both kinds in one place.
            let is_own = |found: &Bytes| {
                STREAMS
                    .iter()
                    .any(|(what, _)| *found == format!("{what} {channel}"))
            };
            assert!(found.iter().all(is_own), "{channel}: {found:?}");
        }
        for channel in ALIKE {
            node.broker.unsubscribe(&name(channel)).await;
        }
    }
}

pub(crate) async fn a_key_and_a_name_do_not_run_into_each_other(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, key) in [("a", "b.c"), ("a.b", "c"), ("{a}", "b.c"), ("{a}.b", "c")] {
        let mut publish = publish(channel, DURABLE);
        publish.idempotency_key = Some(key.to_owned());
        let published = node.broker.publish(&name(channel), publish).await.unwrap();
        assert_eq!(published.position.unwrap().offset, 1, "{channel} {key}");
    }
}
