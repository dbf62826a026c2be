//! Publications, which all workers of a node share.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock, Weak},
};

use bytes::Bytes;
use linerate_budget::{Account, Share};
use serde_json::Value;
use smol_str::SmolStr;

use crate::{ChannelName, Exclusion, StreamPosition, fossil};

/// A publication: its payload, byte for byte as published, and its position in the stream.
///
/// Clones share everything, including what is derived from the payload. Each such value is computed
/// on first use, once per node.
#[derive(Clone, Debug)]
pub struct Publication(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    payload: Bytes,
    position: Option<StreamPosition>,
    info: Option<ClientInfo>,
    tags: Vec<(String, String)>,
    source: Option<ChannelName>,
    exclusion: Option<Exclusion>,
    value: OnceLock<Option<Value>>,
    is_text: OnceLock<bool>,
    line: OnceLock<Option<Bytes>>,
    delta: OnceLock<Box<Delta>>,
    share: OnceLock<Share>,
}

/// The difference from another publication. The weak reference keeps the address of that
/// publication from being used again, but not its payload.
#[derive(Debug)]
struct Delta {
    from: Weak<Inner>,
    bytes: Option<Bytes>,
    _share: Option<Share>,
}

/// Identifies the client that published a message or that is present in a channel.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClientInfo {
    /// The user ID; empty if anonymous.
    pub user: SmolStr,
    /// The client ID of the connection, unique in the cluster.
    pub client: SmolStr,
    /// Information about the connection from its token, as JSON.
    pub connection: Option<Arc<[u8]>>,
    /// Information about the subscription from its token, as JSON.
    pub channel: Option<Arc<[u8]>>,
}

/// Memory of a publication in bytes without the data from its publisher: the structure itself and
/// its entries in queues and rings.
const FOOTPRINT_BYTES: usize = size_of::<Inner>() + 64;

impl ClientInfo {
    /// Returns the total size of its strings and JSON texts in bytes.
    pub fn bytes(&self) -> usize {
        let json = [&self.connection, &self.channel];
        let json = json.into_iter().flatten().map(|json| json.len());
        self.user.len() + self.client.len() + json.sum::<usize>()
    }
}

impl Publication {
    /// Creates a publication without a position in a stream.
    pub fn new(payload: Bytes) -> Self {
        Self::build(payload).finish()
    }

    /// Returns a builder for a publication with more than a payload.
    pub fn build(payload: Bytes) -> PublicationBuilder {
        PublicationBuilder(Inner {
            payload,
            position: None,
            info: None,
            tags: Vec::new(),
            source: None,
            exclusion: None,
            value: OnceLock::new(),
            is_text: OnceLock::new(),
            line: OnceLock::new(),
            delta: OnceLock::new(),
            share: OnceLock::new(),
        })
    }

    /// Charges the publication's memory to `account` until its last clone is dropped. Does nothing
    /// if it is already charged.
    pub fn charge(&self, account: &Account) {
        self.0.share.get_or_init(|| account.share(self.footprint()));
    }

    /// Returns the memory that it takes in bytes, with an allowance for its overhead.
    fn footprint(&self) -> u64 {
        let tags = self.0.tags.iter();
        let tags: usize = tags.map(|(key, value)| key.len() + value.len()).sum();
        let info = self.0.info.as_ref().map_or(0, ClientInfo::bytes);
        (FOOTPRINT_BYTES + self.0.payload.len() + tags + info) as u64
    }

    /// Returns the payload as it was published.
    pub fn payload(&self) -> &Bytes {
        &self.0.payload
    }

    /// Returns its position in the stream, or `None` if the channel does not keep one.
    pub fn position(&self) -> Option<&StreamPosition> {
        self.0.position.as_ref()
    }

    /// Returns its offset in the stream, or 0 if it has no position.
    pub fn offset(&self) -> u64 {
        self.position().map_or(0, |position| position.offset)
    }

    /// Returns the client that published it, or `None` if the publisher was not a client or the
    /// broker does not carry this information.
    pub fn info(&self) -> Option<&ClientInfo> {
        self.0.info.as_ref()
    }

    /// Returns the tags that the publisher added, sorted by key.
    pub fn tags(&self) -> &[(String, String)] {
        &self.0.tags
    }

    /// Returns the channel that it was published in if the subscription is to a pattern.
    pub fn source(&self) -> Option<&ChannelName> {
        self.0.source.as_ref()
    }

    /// Returns whose subscribers do not receive it, if there are such channels.
    pub fn exclusion(&self) -> Option<&Exclusion> {
        self.0.exclusion.as_ref()
    }

    /// Returns the payload parsed as JSON, or `None` if it is not JSON.
    ///
    /// The payload is parsed on the first call. Nesting is limited to 128 levels.
    pub fn value(&self) -> Option<&Value> {
        let parse = || serde_json::from_slice(&self.0.payload).ok();
        self.0.value.get_or_init(parse).as_ref()
    }

    /// Returns whether the payload is valid UTF-8.
    ///
    /// The payload is checked on the first call.
    pub fn is_text(&self) -> bool {
        let check = || std::str::from_utf8(&self.0.payload).is_ok();
        *self.0.is_text.get_or_init(check)
    }

    /// Returns the payload as JSON on a single line, for protocols whose frames are lines, or
    /// `None` if it is not JSON.
    ///
    /// The payload is checked on the first call. Line ends between tokens, the only place where
    /// JSON allows unescaped line ends, become spaces. Nothing else is changed.
    pub fn line(&self) -> Option<&Bytes> {
        let check = || {
            // serde_json does not check ignored values for UTF-8.
            if !self.is_text() {
                return None;
            }
            let ignored = serde_json::from_slice::<serde::de::IgnoredAny>(&self.0.payload);
            ignored.ok().map(|_| match on_one_line(&self.0.payload) {
                Cow::Borrowed(_) => self.0.payload.clone(),
                Cow::Owned(line) => line.into(),
            })
        };
        self.0.line.get_or_init(check).as_ref()
    }

    /// Returns the payload as the difference from that of `previous`, in
    /// [Fossil's format](crate::fossil). Returns `None` if it would not be shorter than the
    /// payload. If the payload is text, so is the difference.
    ///
    /// The difference from the first publication that is asked for is computed once. That is
    /// usually the one before it in the channel.
    pub fn delta_from(&self, previous: &Self) -> Option<Bytes> {
        let create = || fossil::create(&previous.0.payload, &self.0.payload).map(Bytes::from);
        let known = self.0.delta.get_or_init(|| {
            let bytes = create();
            let charged = self.0.share.get().zip(bytes.as_ref());
            Box::new(Delta {
                from: Arc::downgrade(&previous.0),
                _share: charged.map(|(share, bytes)| share.account().share(bytes.len() as u64)),
                bytes,
            })
        });
        match known.from.as_ptr() == Arc::as_ptr(&previous.0) {
            true => known.bytes.clone(),
            false => create(),
        }
    }
}

/// Builds a [`Publication`].
#[derive(Debug)]
pub struct PublicationBuilder(Inner);

impl PublicationBuilder {
    /// Sets its position in the stream.
    #[must_use]
    pub fn with_position(mut self, position: StreamPosition) -> Self {
        self.0.position = Some(position);
        self
    }

    /// Sets the client that published it.
    #[must_use]
    pub fn with_info(mut self, info: Option<ClientInfo>) -> Self {
        self.0.info = info;
        self
    }

    /// Sets the tags that the publisher added.
    #[must_use]
    pub fn with_tags(mut self, mut tags: Vec<(String, String)>) -> Self {
        tags.sort_unstable();
        self.0.tags = tags;
        self
    }

    /// Sets the channel that it was published in, for subscriptions to a pattern.
    #[must_use]
    pub fn with_source(mut self, source: ChannelName) -> Self {
        self.0.source = Some(source);
        self
    }

    /// Sets the channels whose subscribers do not receive it.
    #[must_use]
    pub fn with_exclusion(mut self, exclusion: Exclusion) -> Self {
        self.0.exclusion = Some(exclusion).filter(|exclusion| !exclusion.is_empty());
        self
    }

    /// Returns the publication.
    pub fn finish(self) -> Publication {
        Publication(Arc::new(self.0))
    }
}

fn on_one_line(json: &[u8]) -> Cow<'_, [u8]> {
    let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !json.iter().any(is_line_end) {
        return Cow::Borrowed(json);
    }
    let space = |byte: &u8| if is_line_end(byte) { b' ' } else { *byte };
    Cow::Owned(json.iter().map(space).collect())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use linerate_budget::{Budget, Consumer};

    use super::{ClientInfo, Publication};
    use crate::{ChannelName, Epoch, StreamPosition};

    fn publication(payload: &'static [u8]) -> Publication {
        Publication::new(Bytes::from_static(payload))
    }

    #[test]
    fn a_difference_is_computed_once_for_the_first_publication_that_is_asked_for() {
        let payload = |end: &str| Bytes::from("x".repeat(100) + end);
        let [one, two, three] = ["1", "2", "3"].map(|end| Publication::new(payload(end)));
        let delta = three.delta_from(&two).unwrap();
        assert_eq!(
            crate::fossil::apply(two.payload(), &delta, 101).as_ref(),
            Ok(&three.payload().to_vec())
        );
        let again = three.delta_from(&two).unwrap();
        assert_eq!(again.as_ptr(), delta.as_ptr());
        let other = three.delta_from(&one).unwrap();
        assert_eq!(other, delta, "the two differ in the same place");
        assert_ne!(other.as_ptr(), delta.as_ptr());
        assert_eq!(three.delta_from(&Publication::new("short".into())), None);
    }

    #[test]
    fn the_difference_is_charged_like_the_publication() {
        let budget = Budget::new(1 << 20);
        let account = budget.account(Consumer::Publications);
        let [one, two] = ["1", "2"].map(|end| Publication::new(("x".repeat(100) + end).into()));
        two.charge(&account);
        let before = account.bytes();
        let delta = two.delta_from(&one).unwrap();
        assert_eq!(account.bytes(), before + delta.len() as u64);
        drop(two);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn a_publication_is_counted_once_until_its_last_clone_is_gone() {
        let budget = Budget::new(1 << 20);
        let account = budget.account(Consumer::Publications);
        let one = Publication::build(vec![b'x'; 10_000].into())
            .with_tags(vec![("key".to_owned(), "v".repeat(1_000))])
            .finish();
        let other = one.clone();
        one.charge(&account);
        other.charge(&account);
        assert!((11_000..12_000).contains(&account.bytes()));
        drop(one);
        assert!(account.bytes() > 11_000);
        drop(other);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn a_publication_has_what_it_was_built_with() {
        let info = ClientInfo {
            user: "ann".into(),
            ..ClientInfo::default()
        };
        let position = StreamPosition {
            epoch: Epoch::new("e"),
            offset: 7,
        };
        let source = ChannelName::new("news").unwrap();
        let tag = |key: &str| (key.to_owned(), "value".to_owned());
        let built = Publication::build(Bytes::from_static(b"payload"))
            .with_info(Some(info.clone()))
            .with_position(position.clone())
            .with_source(source.clone())
            .with_tags(vec![tag("b"), tag("a")])
            .finish();
        assert_eq!(built.payload(), "payload");
        assert_eq!(built.info(), Some(&info));
        assert_eq!((built.position(), built.offset()), (Some(&position), 7));
        assert_eq!(built.source(), Some(&source));
        assert_eq!(built.tags(), [tag("a"), tag("b")]);
        let plain = publication(b"payload");
        assert_eq!((plain.info(), plain.source()), (None, None));
        assert_eq!((plain.position(), plain.offset()), (None, 0));
        assert!(plain.tags().is_empty());
    }

    #[test]
    fn a_single_line_payload_is_not_copied() {
        let publication = publication(b"{\"a\":\"\\n\"}");
        let line = publication.line().unwrap();
        assert_eq!(line.as_ptr(), publication.payload().as_ptr());
    }

    #[test]
    fn line_ends_between_tokens_become_spaces() {
        let publication = publication(b"{\r\n\"a\":\n1}\n");
        assert_eq!(publication.line().unwrap(), &b"{  \"a\": 1} "[..]);
        assert_eq!(publication.payload(), &b"{\r\n\"a\":\n1}\n"[..]);
    }

    #[test]
    fn invalid_json_has_neither_line_nor_value() {
        let payloads: [&[u8]; 6] = [
            b"{\"a\":\"\n\"}",
            b"",
            b"hello",
            b"\xff\xfe",
            b"\"\xff\"",
            b"1 2",
        ];
        for payload in payloads {
            let publication = publication(payload);
            assert_eq!(publication.line(), None);
            assert_eq!(publication.value(), None);
        }
    }

    #[test]
    fn only_utf8_payloads_are_text() {
        assert!(publication("\"ü\"".as_bytes()).is_text());
        assert!(publication(b"").is_text());
        assert!(!publication(b"\"\xff\"").is_text());
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |levels: usize| Publication::new("[".repeat(levels).into_bytes().into());
        assert_eq!(nested(100_000).value(), None);
        assert_eq!(nested(100_000).line(), None);
    }
}
