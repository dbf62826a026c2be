//! The JSON messages from a node to a subscriber.

use serde::{Deserialize, de::IgnoredAny};

/// A message. Without any of these fields, it is a ping.
#[derive(Debug, Deserialize)]
pub(super) struct Reply<'a> {
    pub(super) connect: Option<IgnoredAny>,
    pub(super) error: Option<ErrorReply>,
    pub(super) push: Option<Push>,
    #[serde(borrow)]
    pub(super) subscribe: Option<SubscribeReply<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ErrorReply {
    pub(super) code: u64,
}

/// An unsolicited message. Without a publication, it reports the end of the subscription or the
/// connection.
#[derive(Debug, Deserialize)]
pub(super) struct Push {
    #[serde(rename = "pub")]
    pub(super) publication: Option<Publication>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SubscribeReply<'a> {
    #[serde(default)]
    pub(super) epoch: &'a str,
    #[serde(default)]
    pub(super) offset: u64,
    #[serde(default)]
    pub(super) recovered: bool,
    #[serde(default)]
    pub(super) publications: Vec<Publication>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Publication {
    pub(super) offset: Option<u64>,
    pub(super) data: Data,
}

/// The data of a publication. Without these fields, it is not one of our own.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Data {
    /// The number of the publication.
    pub(super) n: Option<u64>,
    /// When it was published, in nanoseconds since 1970.
    pub(super) at: Option<u64>,
}

impl Reply<'_> {
    pub(super) fn is_ping(&self) -> bool {
        self.connect.is_none()
            && self.error.is_none()
            && self.push.is_none()
            && self.subscribe.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::Reply;

    fn read(text: &str) -> Reply<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_nodes_say_is_understood() {
        assert!(read("{}").is_ping());
        assert!(
            read(r#"{"id":1,"connect":{"client":"a","ping":25}}"#)
                .connect
                .is_some()
        );
        let push = r#"{"push":{"channel":"a","pub":{"data":{"n":3,"at":4},"offset":5}}}"#;
        let publication = read(push).push.unwrap().publication.unwrap();
        assert_eq!((publication.offset, publication.data.n), (Some(5), Some(3)));
        let subscribed = r#"{"id":2,"subscribe":{"epoch":"e","offset":9,"recovered":true,
            "publications":[{"data":{"n":8,"at":1},"offset":9}]}}"#;
        let subscribed = read(subscribed).subscribe.unwrap();
        assert!(subscribed.recovered && subscribed.publications.len() == 1);
        assert_eq!((subscribed.epoch, subscribed.offset), ("e", 9));
        let end = read(r#"{"push":{"channel":"a","unsubscribe":{"code":2500}}}"#);
        assert!(end.push.unwrap().publication.is_none());
    }
}
