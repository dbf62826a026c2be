//! What a raw WebSocket receives besides publications.

use linerate_hub::{ChannelName, Gap};
use linerate_proto::{Opcode, frame::OpenFrame};

use super::event_stream;

/// Appends a text frame that reports a gap. Send it only to clients that asked for gap reports:
/// everything else on a raw WebSocket is a publication.
pub(crate) fn append_gap(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    let frame = OpenFrame::start(out);
    out.extend_from_slice(b"{\"gap\":");
    event_stream::append_gap_json(channel, gap, out);
    out.push(b'}');
    frame.finish(out, Opcode::Text);
}
