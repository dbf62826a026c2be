//! Event streams for `EventSource` (HTML Standard §9.2).

use std::time::Duration;

use linerate_hub::{ChannelName, Epoch, Gap, StreamPosition};
use serde::Serialize;

/// A comment that keeps the connection alive. `EventSource` does not report it to the page.
pub(crate) const PING: &[u8] = b":\n\n";

/// Appends the delay after which the client should reconnect when the connection is lost.
pub(crate) fn append_retry(retry: Duration, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("retry: {}\n\n", retry.as_millis()).as_bytes());
}

/// Appends a `gap` event.
pub(crate) fn append_gap(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: gap\ndata: ");
    append_gap_json(channel, gap, out);
    out.extend_from_slice(b"\n\n");
}

/// Appends a `disconnect` event, after which the stream ends.
pub(crate) fn append_disconnect(code: u16, reason: &str, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Wire<'a> {
        code: u16,
        reason: &'a str,
    }
    out.extend_from_slice(b"event: disconnect\ndata: ");
    append_json(&Wire { code, reason }, out);
    out.extend_from_slice(b"\n\n");
}

/// Returns the position for an event ID, which browsers send back as `Last-Event-ID`; `None` if
/// this server did not create the ID.
pub(crate) fn position_of(event_id: &str) -> Option<StreamPosition> {
    let (epoch, offset) = event_id.rsplit_once(':')?;
    let offset = offset.parse().ok()?;
    is_id(epoch).then(|| StreamPosition {
        epoch: Epoch::new(epoch),
        offset,
    })
}

/// Appends the line with the event's ID. An epoch that cannot be written on one line is left out.
pub(super) fn append_id(position: &StreamPosition, out: &mut Vec<u8>) {
    let epoch = position.epoch.as_str();
    if is_id(epoch) {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(epoch.as_bytes());
        out.push(b':');
        append_json(&position.offset, out);
        out.push(b'\n');
    }
}

/// Appends the data lines of an event and the blank line that ends it.
///
/// Lines may end in CR, LF or CRLF; the client receives LF for each.
pub(super) fn append_data(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
        let (line, behind) = rest.split_at(end);
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
        let ending = if behind.starts_with("\r\n") { 2 } else { 1 };
        match behind.get(ending..) {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    out.push(b'\n');
}

pub(super) fn append_gap_json(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Wire<'a> {
        channel: &'a str,
        missed: Option<u64>,
        cause: &'a str,
    }
    let wire = Wire {
        channel: channel.as_str(),
        missed: gap.missed,
        cause: gap.cause.as_str(),
    };
    append_json(&wire, out);
}

fn append_json(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value)
        .expect("serializing strings and numbers to a Vec cannot fail");
}

fn is_id(epoch: &str) -> bool {
    !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_graphic())
}
