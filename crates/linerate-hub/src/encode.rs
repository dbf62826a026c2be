//! Encoding of publications for the sockets.

use std::fmt;

use bytes::Bytes;

use crate::{ChannelName, Publication};

/// Encodes publications, frame headers included, into bytes that are the same for all subscribers.
///
/// It is called once per channel, class of filters and tick, not once per subscriber.
pub trait Encode: fmt::Debug + Send + Sync {
    /// The block that all subscribers receive clones of. Data that is derived from it later, such
    /// as a compressed form, can be computed once and shared through the clones.
    type Block;

    /// Appends `batch` to `out`.
    ///
    /// # Errors
    /// Returns [`Unencodable`] if a publication cannot be represented in this encoding. What was
    /// appended to `out` is not used then.
    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable>;

    /// Makes a block from the bytes that [`encode`](Self::encode) has appended for `messages`
    /// publications.
    fn seal(&self, bytes: Bytes, messages: u32) -> Self::Block;
}

/// Publications of one channel, oldest first; never empty.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The channel or the pattern that the subscription names.
    pub channel: &'a ChannelName,
    /// The number of the channel in this worker, valid while the channel has subscribers.
    pub channel_id: u32,
    /// The publications to deliver.
    pub publications: &'a [Publication],
    /// How many more publications were left out because newer ones replaced them.
    pub conflated: u64,
}

/// A publication cannot be represented in an encoding. For example, a JSON encoding cannot carry a
/// payload that is not JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("publication cannot be represented in this encoding")]
pub struct Unencodable;
