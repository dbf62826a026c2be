//! Records of a source, and their positions.

use std::{fmt::Display, str::FromStr};

use bytes::Bytes;
use linerate_hub::ChannelName;

/// The tag with the name of the source of a publication.
pub(crate) const SOURCE_TAG: &str = "source";

/// Where a record is in its source.
///
/// In durable channels, each publication has its position as a tag, in the form of `Display`.
pub trait Position: Clone + Display + FromStr + Send + Sync {
    /// The name of the tag.
    const TAG: &'static str;

    /// Returns whether a publication at this position proves that one at `other` was published
    /// before.
    fn includes(&self, other: &Self) -> bool;
}

/// A record that is ready to be published.
#[derive(Clone, Debug)]
pub struct Record<P> {
    /// The channel.
    pub channel: ChannelName,
    /// The payload.
    pub payload: Bytes,
    /// The tags, for filters.
    pub tags: Vec<(String, String)>,
    /// The idempotency key, which no other record of the source has.
    pub key: String,
    /// The position.
    pub position: P,
    /// True if an earlier reader may have published the record.
    pub is_suspect: bool,
}
