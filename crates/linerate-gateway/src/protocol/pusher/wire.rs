//! Writes events: `{"event":…,"channel":…,"data":…}`.

use linerate_proto::{Opcode, frame::OpenFrame};

/// Appends the frame of an event whose data is a string.
pub(super) fn frame(event: &str, channel: Option<&str>, data: &str, out: &mut Vec<u8>) {
    let frame = OpenFrame::start(out);
    append_event(event, channel, data, out);
    frame.finish(out, Opcode::Text);
}

/// Appends the frame of an event whose data is this JSON.
pub(super) fn frame_of(event: &str, channel: Option<&str>, data: &str, out: &mut Vec<u8>) {
    let frame = OpenFrame::start(out);
    append_head(event, channel, out);
    out.extend_from_slice(data.as_bytes());
    out.push(b'}');
    frame.finish(out, Opcode::Text);
}

/// Appends an event whose data is a string.
pub(super) fn append_event(event: &str, channel: Option<&str>, data: &str, out: &mut Vec<u8>) {
    append_head(event, channel, out);
    append_string(data, out);
    out.push(b'}');
}

/// Appends the beginning of an event, up to its data.
fn append_head(event: &str, channel: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"event\":");
    append_string(event, out);
    if let Some(channel) = channel {
        out.extend_from_slice(b",\"channel\":");
        append_string(channel, out);
    }
    out.extend_from_slice(b",\"data\":");
}

/// Appends a string as JSON.
pub(super) fn append_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("serializing a string to a Vec cannot fail");
}
