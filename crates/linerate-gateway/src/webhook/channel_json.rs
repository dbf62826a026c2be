//! Names of channels in the JSON of events.

use linerate_hub::ChannelName;
use serde::{Serialize, Serializer};

/// Serializes the name of a channel as text.
pub(super) fn as_text<S: Serializer>(
    channel: &ChannelName,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    channel.as_str().serialize(serializer)
}
