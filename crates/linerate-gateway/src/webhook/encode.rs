//! The batches of webhooks as bytes, in the formats of their receivers.

use serde::Serialize;
use serde_json::json;

use super::{
    event::{Event, EventJson, Happened},
    queue::{Batch, Dropped},
};
use crate::config::{PusherAccess, PusherKind};

/// The body of a request.
#[derive(Debug, Serialize)]
struct Document<'a> {
    node: &'a str,
    events: Vec<Item<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Dropped(&'a Dropped),
    Event(EventJson<'a>),
}

/// An event for a receiver that takes each one alone.
#[derive(Debug)]
pub(super) struct Record {
    /// An ID that a repetition has as well.
    pub(super) id: String,
    /// The kind of event.
    pub(super) kind: &'static str,
    /// The event as JSON.
    pub(super) json: Vec<u8>,
}

/// Encodes a batch of `node` as one document.
pub(super) fn document(node: &str, batch: &Batch) -> Vec<u8> {
    let document = Document {
        node,
        events: items(batch).map(|(_, item)| item).collect(),
    };
    to_json(&document)
}

/// Encodes each event of a batch of `node` alone.
pub(super) fn records(node: &str, batch: &Batch) -> Vec<Record> {
    let record = |(id, item): (String, Item<'_>)| Record {
        id: format!("{node}_{id}"),
        kind: match &item {
            Item::Dropped(_) => "dropped",
            Item::Event(event) => event.kind().name(),
        },
        json: to_json(&item),
    };
    items(batch).map(record).collect()
}

/// Encodes a batch as a webhook of Pusher that is created at `time_ms`.
///
/// Other events than those of Pusher are left out, but none of them is configured. The event
/// `linerate:dropped` is our own.
pub(super) fn pusher(batch: &Batch, time_ms: u64) -> Vec<u8> {
    let dropped = batch.dropped.iter().map(|dropped| {
        json!({
            "name": "linerate:dropped",
            "count": dropped.count,
            "since_ms": dropped.since_ms,
            "until_ms": dropped.until_ms,
        })
    });
    let events = batch.events.iter().filter_map(pusher_event);
    let events: Vec<_> = dropped.chain(events).collect();
    to_json(&json!({"time_ms": time_ms, "events": events}))
}

fn pusher_event(event: &Event) -> Option<serde_json::Value> {
    let channel = event.happened().channel()?.as_str();
    Some(match event.happened() {
        Happened::CacheMiss { .. } => json!({"name": "cache_miss", "channel": channel}),
        Happened::MemberAdded { user, .. } => {
            json!({"name": "member_added", "channel": channel, "user_id": user})
        }
        Happened::MemberRemoved { user, .. } => {
            json!({"name": "member_removed", "channel": channel, "user_id": user})
        }
        Happened::Occupied { .. } => json!({"name": "channel_occupied", "channel": channel}),
        Happened::Published(publication) => {
            let mut json = json!({
                "name": "client_event",
                "channel": channel,
                "event": publication.event(),
                "data": publication.text(),
            });
            if let Some(who) = event.who() {
                json["socket_id"] = (&*who.client).into();
                if PusherKind::of(channel).access == PusherAccess::Presence {
                    json["user_id"] = (&*who.user).into();
                }
            }
            json
        }
        Happened::SubscriptionCount { count, .. } => {
            json!({"name": "subscription_count", "channel": channel, "subscription_count": count})
        }
        Happened::Vacated { .. } => json!({"name": "channel_vacated", "channel": channel}),
        Happened::Connected { .. }
        | Happened::Disconnected(_)
        | Happened::Subscribed { .. }
        | Happened::Unsubscribed { .. } => return None,
    })
}

/// Returns the events of a batch and what was dropped before, each with an ID that is unique in the
/// queue.
fn items(batch: &Batch) -> impl Iterator<Item = (String, Item<'_>)> {
    let dropped = batch.dropped.iter().map(|dropped| {
        let id = format!("dropped_{}", batch.first);
        (id, Item::Dropped(dropped))
    });
    let events = (batch.first..).zip(&batch.events);
    let events = events.map(|(seq, event)| (seq.to_string(), Item::Event(event.to_json(seq))));
    dropped.chain(events)
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut json = Vec::new();
    // Writing to memory cannot fail.
    _ = serde_json::to_writer(&mut json, value);
    json
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bytes::Bytes;
    use linerate_broker::{Publish, StreamOptions};
    use linerate_budget::{Budget, Consumer};
    use linerate_hub::{ChannelName, ClientInfo};
    use serde_json::{Value, json};

    use super::{document, pusher, records};
    use crate::webhook::{Event, Happened, Publication, queue::Batch, queue::Queue};

    fn channel(name: &str) -> ChannelName {
        ChannelName::new(name).unwrap()
    }

    fn published(name: &str, payload: &'static [u8]) -> Happened {
        let publish = Publish {
            payload: Bytes::from_static(payload),
            info: None,
            tags: vec![
                ("event".to_owned(), "client-typing".to_owned()),
                ("except".to_owned(), "1.2".to_owned()),
            ],
            idempotency_key: None,
            options: StreamOptions {
                is_durable: false,
                size_max: 0,
                ttl: Duration::ZERO,
            },
        };
        Happened::Published(Publication::new(channel(name), &publish))
    }

    /// Returns a batch of events of `ada`, before which one was dropped.
    fn batch(all: Vec<Happened>) -> Batch {
        let lease = Budget::unbounded().lease(Consumer::Messages);
        let mut queue = Queue::new(all.len(), usize::MAX, lease);
        let who = Arc::new(ClientInfo {
            user: "ada".into(),
            client: "1.2".into(),
            ..ClientInfo::default()
        });
        let first = Happened::Occupied {
            channel: channel("first"),
        };
        for happened in [first].into_iter().chain(all) {
            queue.push(Event::now(Some(who.clone()), happened));
        }
        queue.take(usize::MAX, usize::MAX)
    }

    fn parse(json: &[u8]) -> Value {
        serde_json::from_slice(json).unwrap()
    }

    #[test]
    fn events_have_the_names_of_pusher() {
        let room = || channel("presence-room");
        let user: Box<str> = "ada".into();
        let batch = batch(vec![
            Happened::Occupied { channel: room() },
            Happened::MemberAdded {
                channel: room(),
                user: user.clone(),
            },
            published("presence-room", b"{\"a\": 1}"),
            published("private-room", b"not json"),
            Happened::CacheMiss {
                channel: channel("cache-news"),
            },
            Happened::MemberRemoved {
                channel: room(),
                user,
            },
            Happened::Vacated { channel: room() },
            Happened::SubscriptionCount {
                channel: channel("news"),
                count: 7,
            },
            Happened::Subscribed { channel: room() },
        ]);
        let mut body = parse(&pusher(&batch, 1_700_000_000_000));
        assert_eq!(body["time_ms"], 1_700_000_000_000_u64);
        let dropped = body["events"].as_array_mut().unwrap().remove(0);
        assert_eq!(dropped["name"], "linerate:dropped");
        assert_eq!(dropped["count"], 1);
        assert!(dropped["until_ms"].is_u64());
        let expected = json!([
            {"name": "channel_occupied", "channel": "presence-room"},
            {"name": "member_added", "channel": "presence-room", "user_id": "ada"},
            {
                "name": "client_event", "channel": "presence-room", "event": "client-typing",
                "data": "{\"a\": 1}", "socket_id": "1.2", "user_id": "ada",
            },
            {
                "name": "client_event", "channel": "private-room", "event": "client-typing",
                "data": "not json", "socket_id": "1.2",
            },
            {"name": "cache_miss", "channel": "cache-news"},
            {"name": "member_removed", "channel": "presence-room", "user_id": "ada"},
            {"name": "channel_vacated", "channel": "presence-room"},
            {"name": "subscription_count", "channel": "news", "subscription_count": 7},
        ]);
        assert_eq!(body["events"], expected);
    }

    #[test]
    fn data_of_publications_is_json_text_or_base64() {
        let batch = batch(vec![
            published("a", b" {\"a\": [1.0]}"),
            published("a", b"text"),
            published("a", b"\xff\x00"),
            published("a", b""),
        ]);
        let body = parse(&document("node-1", &batch));
        let events = body["events"].as_array().unwrap();
        assert_eq!(events[1]["data"], json!({"a": [1.0]}));
        assert_eq!(events[2]["data_text"], "text");
        assert_eq!(events[3]["data_base64"], "/wA=");
        assert_eq!(events[4]["data_text"], "");
        for event in &events[1..] {
            assert_eq!(event["tags"], json!({"event": "client-typing"}));
            assert_eq!(event["user"], "ada");
        }
    }

    #[test]
    fn data_that_parsers_refuse_does_not_spoil_the_batch() {
        static NESTED: [u8; 20_000] = [b'['; 20_000];
        let deep: &'static [u8] = [[b'['; 10_000], [b']'; 10_000]].concat().leak();
        for hostile in [
            deep,
            &NESTED,
            b"1e999",
            b"\"\\ud800\"",
            b"{\"a\":1}}",
            b"\"\x00\"",
            b"7, {}",
        ] {
            let batch = batch(vec![published("a", hostile)]);
            let body = parse(&document("node-1", &batch));
            let text = std::str::from_utf8(hostile).unwrap();
            assert_eq!(body["events"][1]["data_text"], text);
            let body = parse(&pusher(&batch, 0));
            assert_eq!(body["events"][1]["data"], text);
        }
    }

    #[test]
    fn data_is_nested_at_most_64_times() {
        let nested = |depth: usize| -> &'static [u8] {
            let text = "[".repeat(depth) + &"]".repeat(depth);
            text.into_bytes().leak()
        };
        let batch = batch(vec![published("a", nested(64)), published("a", nested(65))]);
        let body = parse(&document("node-1", &batch));
        assert!(body["events"][1]["data"].is_array());
        assert!(body["events"][2]["data_text"].is_string());
    }

    #[test]
    fn data_that_is_too_large_is_left_out() {
        static LARGE: [u8; 65_537] = [b'x'; 65_537];
        let batch = batch(vec![
            published("a", &LARGE[..65_536]),
            published("a", &LARGE),
        ]);
        let body = parse(&document("node-1", &batch));
        assert_eq!(
            body["events"][1]["data_text"].as_str().unwrap().len(),
            65_536
        );
        assert_eq!(body["events"][2]["omitted_bytes"], 65_537);
    }

    #[test]
    fn records_have_the_ids_of_repetitions() {
        let batch = batch(vec![Happened::Vacated {
            channel: channel("a"),
        }]);
        let records = records("node-1", &batch);
        let ids: Vec<_> = records.iter().map(|record| &*record.id).collect();
        assert_eq!(ids, ["node-1_dropped_2", "node-1_2"]);
        assert_eq!((records[0].kind, records[1].kind), ("dropped", "vacated"));
        assert_eq!(parse(&records[0].json)["count"], 1);
        assert_eq!(parse(&records[1].json)["seq"], 2);
    }
}
