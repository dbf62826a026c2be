//! Event streams for `EventSource` (HTML Standard §9.2): each publication is an event.

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{Batch, ChannelName, Gap, StreamPosition, Unencodable};
use serde::Serialize;

use super::{
    codes::Disconnect,
    dialect::{
        Dialect, Fixed, GapNotice, Protocol, SessionKind, StreamTransport, Switch, Transport,
    },
    gap, position, query,
};

/// The minimum delay before a browser reconnects; a random delay of up to the same length is added.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) static PROTOCOL: Protocol = Protocol {
    dialects: &[&EVENTS],
    switch: Switch {
        key: "protocols.sse",
        is_on: |protocols| protocols.sse,
    },
    emulation: None,
    polling: None,
};

/// One event per publication, with the payload as its data.
pub(crate) static EVENTS: Dialect = Dialect {
    name: ("sse", "sse"),
    path: "/sse",
    accepts: |_| true,
    transport: Transport::Stream(StreamTransport {
        content_type: "text/event-stream",
        farewell,
    }),
    session: SessionKind::Fixed(Fixed {
        read: query::read,
        // A comment, which `EventSource` does not report to the page.
        ping: b":\n\n",
    }),
    encode,
    gaps: GapNotice::ByName(append_gap),
};

fn encode(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    for publication in batch.publications {
        let text = std::str::from_utf8(publication.payload()).map_err(|_| Unencodable)?;
        if let Some(position) = publication.position() {
            append_id(position, out);
        }
        append_data(text, out);
    }
    Ok(())
}

/// Returns the last event of a stream, with the reconnect delay if the client should reconnect.
fn farewell(disconnect: &Disconnect) -> Option<Bytes> {
    let mut bytes = Vec::new();
    if disconnect.is_reconnect() {
        append_retry(RETRY.mul_f32(1.0 + rand::random::<f32>()), &mut bytes);
    }
    append_disconnect(disconnect.code, &disconnect.reason, &mut bytes);
    Some(bytes.into())
}

/// Appends the delay after which the client should reconnect when the connection is lost.
pub(super) fn append_retry(retry: Duration, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("retry: {}\n\n", retry.as_millis()).as_bytes());
}

/// Appends a `gap` event.
pub(super) fn append_gap(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: gap\ndata: ");
    gap::append_json(channel, gap, out);
    out.extend_from_slice(b"\n\n");
}

/// Appends a `disconnect` event, after which the stream ends.
pub(super) fn append_disconnect(code: u16, reason: &str, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Wire<'a> {
        code: u16,
        reason: &'a str,
    }
    out.extend_from_slice(b"event: disconnect\ndata: ");
    serde_json::to_writer(&mut *out, &Wire { code, reason })
        .expect("serializing strings and numbers to a Vec cannot fail");
    out.extend_from_slice(b"\n\n");
}

/// Appends the line with the event's ID, which browsers send back as `Last-Event-ID`. An epoch that
/// cannot be written on one line is left out.
fn append_id(position: &StreamPosition, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"id: ");
    match position::append(position, out) {
        true => out.push(b'\n'),
        false => out.truncate(start),
    }
}

/// Appends the data lines of an event and the blank line that ends it.
///
/// Lines may end in CR, LF or CRLF; `EventSource` joins them again, with LF.
fn append_data(text: &str, out: &mut Vec<u8>) {
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
