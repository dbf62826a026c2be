//! What a raw WebSocket receives besides publications.

use linerate_hub::{ChannelName, Gap};
use linerate_proto::{Opcode, frame::OpenFrame};

use super::event_stream;

/// Appends a text frame that reports a gap. Send it only to clients that asked for gap reports:
/// everything else on a raw WebSocket is a publication.
///
/// ```
/// use linerate_gateway::protocol::raw;
/// use linerate_hub::{ChannelName, Gap, GapCause};
///
/// let mut out = Vec::new();
/// let gap = Gap { missed: Some(3), cause: GapCause::RingEvicted };
/// raw::append_gap(&ChannelName::new("ticks")?, gap, &mut out);
/// assert_eq!(&out[2..], br#"{"gap":{"channel":"ticks","missed":3,"cause":"ring_evicted"}}"#);
/// # Ok::<(), linerate_hub::channel::ChannelNameError>(())
/// ```
pub fn append_gap(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    let frame = OpenFrame::start(out);
    out.extend_from_slice(b"{\"gap\":");
    event_stream::append_gap_json(channel, gap, out);
    out.push(b'}');
    frame.finish(out, Opcode::Text);
}
