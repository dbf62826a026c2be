//! How publications become bytes for the sockets.

use std::fmt;

use bytes::Bytes;

use crate::{ChannelName, Publication};

/// Encodes publications as they go to the sockets of all subscribers alike, frame headers included.
///
/// Called once for each channel, class of filters and tick, not for each subscriber.
pub trait Encode: fmt::Debug + Send + Sync {
    /// What subscribers are given: clones of one block for all of them, so that what is made of it later, like a
    /// compressed form, can be made once and lie beside it.
    type Block;

    /// Appends `batch` to `out`.
    ///
    /// # Errors
    /// A publication can't be expressed; what was appended is not used.
    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable>;

    /// Makes a block of what [`encode`](Self::encode) has appended for `messages` publications.
    fn seal(&self, bytes: Bytes, messages: u32) -> Self::Block;
}

/// Publications of one channel, oldest first, never empty.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The channel, or the pattern, that was subscribed.
    pub channel: &'a ChannelName,
    /// A number that stands for the channel in this worker as long as it has subscribers.
    pub channel_id: u32,
    /// What is to be delivered.
    pub publications: &'a [Publication],
    /// How many more were left out, since newer ones of the same key took their place.
    pub conflated: u64,
}

/// An encoding can't express a publication, as JSON can't a payload that is no JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("publication can't be expressed in this encoding")]
pub struct Unencodable;
