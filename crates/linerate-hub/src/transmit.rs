//! What the hub has for a client.

use bytes::Bytes;

use crate::{ChannelName, Gap, SubscriptionId};

/// Something for one client, in the order in which it is to be sent. `B` is what its encoding makes of publications
/// ([`Encode::Block`](crate::Encode::Block)).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Transmit<B = Bytes> {
    /// Encoded publications. All subscribers at the same place are given clones of one block.
    Block {
        /// Whose.
        subscription: SubscriptionId,
        /// What goes to the socket, frame headers included.
        block: B,
        /// How many publications it holds.
        messages: u32,
    },
    /// Publications are missing here. If the subscription is positioned, it ends with this.
    Gap {
        /// Whose.
        subscription: SubscriptionId,
        /// The channel.
        channel: ChannelName,
        /// What is known of them.
        gap: Gap,
    },
    /// The client fell behind the ring of a channel where that ends the connection. Nothing else follows.
    ///
    /// Given out even while the client can take no more.
    Slow {
        /// Whose.
        subscription: SubscriptionId,
        /// The channel.
        channel: ChannelName,
        /// How many publications it has missed so far.
        missed: u64,
    },
    /// A publication can't be expressed in the client's encoding. The subscription ends with this.
    Unencodable {
        /// Whose.
        subscription: SubscriptionId,
        /// The channel.
        channel: ChannelName,
    },
}
