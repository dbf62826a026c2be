//! Lines of JSON in the body of an HTTP response: the protocol of the guide
//! `docs/internals/adding-a-protocol.md`, which is served only in tests.

use bytes::Bytes;
use linerate_hub::{Batch, ChannelName, Gap, Unencodable};

use super::{
    codes::Disconnect,
    dialect::{
        Dialect, Fixed, GapNotice, Protocol, SessionKind, StreamTransport, Switch, Transport,
    },
    gap, query,
};

pub(crate) static PROTOCOL: Protocol = Protocol {
    dialects: &[&LINES],
    switch: Switch {
        key: "protocols.lines",
        is_on: |_| true,
    },
    emulation: None,
    polling: None,
};

/// Each publication is a line, whose payload must be JSON.
static LINES: Dialect = Dialect {
    name: ("lines", "http_stream"),
    path: "/lines",
    accepts: |_| true,
    transport: Transport::Stream(StreamTransport {
        content_type: "application/x-ndjson",
        farewell,
    }),
    session: SessionKind::Fixed(Fixed {
        read: query::read,
        ping: b"\n",
    }),
    encode,
    gaps: GapNotice::ByName(append_gap),
};

fn encode(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    for publication in batch.publications {
        out.extend_from_slice(publication.line().ok_or(Unencodable)?);
        out.push(b'\n');
    }
    Ok(())
}

pub(super) fn append_gap(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"gap\":");
    gap::append_json(channel, gap, out);
    out.extend_from_slice(b"}\n");
}

fn farewell(disconnect: &Disconnect) -> Option<Bytes> {
    Some(format!("{{\"disconnect\":{}}}\n", disconnect.code).into())
}
