//! What a client publishes, as webhooks are told.

use std::{str, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use linerate_broker::Publish;
use linerate_budget::{Budget, Consumer};
use linerate_hub::{ChannelName, ClientInfo};
use serde_json::Value;

use super::{Event, Happened, Publication, encode, queue::Queue};

/// Encodes a publication of any client in all formats. Whatever it contains, a receiver must be
/// able to parse the batch, because it is repeated until it is accepted. It has one tag.
pub(crate) fn publication(channel: &ChannelName, publish: &Publish, who: &ClientInfo) {
    let (payload, event) = (&publish.payload[..], publish.tags[0].1.as_str());
    let (user, who) = (who.user.as_str(), Arc::new(who.clone()));
    let published = Publication::new(channel.clone(), publish);
    let told = Event::now(Some(who), Happened::Published(published));
    assert!(told.bytes() >= payload.len(), "its memory is counted");
    let mut queue = Queue::new(1, usize::MAX, Budget::unbounded().lease(Consumer::Messages));
    queue.push(told.clone());
    // The oldest is dropped.
    queue.push(told);
    let batch = queue.take(usize::MAX, usize::MAX);

    let document = parse(&encode::document("node", &batch));
    assert_eq!(document["events"][0]["event"], "dropped");
    let fields = &document["events"][1];
    assert_eq!(fields["channel"], channel.as_str());
    assert_eq!(
        (&fields["user"], &fields["tags"]["event"]),
        (&user.into(), &event.into())
    );
    check_data(fields, payload);
    let records = encode::records("node", &batch);
    assert_eq!(&parse(&records[1].json), fields);

    let body = parse(&encode::pusher(&batch, 7));
    let fields = &body["events"][1];
    assert_eq!(
        (&fields["channel"], &fields["event"]),
        (&channel.as_str().into(), &event.into())
    );
    match str::from_utf8(payload) {
        Ok(text) => assert_eq!(fields["data"], text),
        Err(_) => assert_eq!(fields["data"], BASE64_STANDARD.encode(payload)),
    }
}

/// Checks that the event has the data once, and unchanged.
fn check_data(fields: &Value, payload: &[u8]) {
    let kinds = ["data", "data_text", "data_base64", "omitted_bytes"];
    match (kinds.map(|kind| fields.get(kind)), str::from_utf8(payload)) {
        ([Some(json), None, None, None], Ok(_)) => assert_eq!(json, &parse(payload)),
        ([None, Some(told), None, None], Ok(text)) => assert_eq!(told, text),
        ([None, None, Some(told), None], Err(_)) => {
            assert_eq!(told, &Value::from(BASE64_STANDARD.encode(payload)));
        }
        found => panic!("{found:?}"),
    }
}

fn parse(json: &[u8]) -> Value {
    serde_json::from_slice(json).expect("a receiver can parse it")
}
