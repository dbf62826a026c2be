//! What a client publishes, as a record.

use linerate_broker::Publish;
use linerate_hub::{ChannelName, ClientInfo};

use super::{Author, PublicationRecord};

/// Turns a publication of any client into a record, and reads it back. It has one tag.
pub(crate) fn record(channel: &ChannelName, publish: &Publish, who: &ClientInfo) {
    let record = PublicationRecord::new(channel.clone(), publish, Author::Client(who));
    let headers = record.headers(None);
    let written = record.with(&headers);
    let expected = (channel.as_str(), &publish.payload[..]);
    assert_eq!((written.key, written.value), expected);
    let header = |name: &str| {
        let mut headers = headers.iter();
        let found = headers.find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_slice())
    };
    let (tag, value) = &publish.tags[0];
    let tag = header(&format!("linerate-tag-{tag}"));
    assert_eq!(tag, Some(value.as_bytes()));
    let channel = channel.as_str().as_bytes();
    assert_eq!(header("linerate-channel"), Some(channel));
    let user = who.user.as_bytes();
    let user = (!user.is_empty()).then_some(user);
    assert_eq!(header("linerate-user"), user);
}
