//! Any bytes as a publication of a client of which webhooks are told, and which is written to
//! Kafka.

use std::{str, time::Duration};

use bytes::Bytes;
use linerate_broker::{Publish, StreamOptions};
use linerate_hub::{ChannelName, ClientInfo};

use crate::{producer, webhook};

/// Encodes a publication as webhooks are told of it, and as a record.
///
/// The first line of `data` is a channel, the second a user, the third the name of an event, and
/// the rest is the payload.
pub fn webhooks(data: &[u8]) {
    let mut parts = data.splitn(4, |byte| *byte == b'\n');
    let mut text = || str::from_utf8(parts.next().unwrap_or_default()).unwrap_or_default();
    let (channel, user, event) = (text(), text(), text());
    let payload = parts.next().unwrap_or_default();
    let Ok(channel) = ChannelName::new(channel) else {
        return;
    };
    let publish = Publish {
        payload: Bytes::copy_from_slice(payload),
        info: None,
        tags: vec![("event".to_owned(), event.to_owned())],
        idempotency_key: None,
        options: StreamOptions {
            is_durable: false,
            size_max: 0,
            ttl: Duration::ZERO,
        },
    };
    let who = ClientInfo {
        user: user.into(),
        client: "1.2".into(),
        ..ClientInfo::default()
    };
    webhook::fuzzing::publication(&channel, &publish, &who);
    producer::fuzzing::record(&channel, &publish, &who);
}
