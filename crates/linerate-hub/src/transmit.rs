//! Output of the hub for a client.

use bytes::Bytes;

use crate::{ChannelName, Gap, SubscriptionId};

/// One item of output for a client, in the order in which it is to be sent. `B` is the type of an
/// encoded block ([`Encode::Block`](crate::Encode::Block)).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Transmit<B = Bytes> {
    /// Encoded publications. All subscribers at the same place receive clones of one block.
    Block {
        /// The subscription that this is for.
        subscription: SubscriptionId,
        /// The bytes for the socket, frame headers included.
        block: B,
        /// The number of publications in the block.
        messages: u32,
    },
    /// Publications are missing here. A positioned subscription ends with this item.
    Gap {
        /// The subscription that this is for.
        subscription: SubscriptionId,
        /// The channel.
        channel: ChannelName,
        /// The number of the channel; see [`Batch::channel_id`](crate::Batch::channel_id).
        channel_id: u32,
        /// The cause, and the number of missing publications if it is known.
        gap: Gap,
    },
    /// The client fell behind the ring of a channel whose policy is to close the connection. It is
    /// the last item for this client.
    ///
    /// The hub reports this item even while the client cannot take more.
    Slow {
        /// The subscription that this is for.
        subscription: SubscriptionId,
        /// The channel.
        channel: ChannelName,
        /// The number of publications it has missed so far.
        missed: u64,
    },
    /// A publication cannot be represented in the client's encoding. The subscription ends with
    /// this item.
    Unencodable {
        /// The subscription that this is for.
        subscription: SubscriptionId,
        /// The channel.
        channel: ChannelName,
    },
}
