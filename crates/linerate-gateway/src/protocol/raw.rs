//! Raw WebSockets: each publication is a message.

use linerate::CloseCode;
use linerate_hub::{Batch, ChannelName, Gap, Unencodable};
use linerate_proto::{
    Opcode,
    frame::{self, OpenFrame},
};

use super::{
    codes::Disconnect,
    dialect::{
        Dialect, Fixed, GapNotice, Protocol, SessionKind, Switch, Transport, WEBSOCKET,
        WebSocketTransport,
    },
    gap, query,
};

/// The close code "Try Again Later" (registered with IANA), for an overloaded server.
const TRY_AGAIN_LATER: u16 = 1013;

pub(crate) static PROTOCOL: Protocol = Protocol {
    dialects: &[&RAW],
    switch: Switch {
        key: "protocols.raw",
        is_on: |protocols| protocols.raw,
    },
    emulation: None,
    polling: None,
};

/// Text frames for payloads that are text, binary frames for others.
pub(crate) static RAW: Dialect = Dialect {
    name: ("raw", WEBSOCKET),
    path: "/raw",
    accepts: |_| true,
    transport: Transport::WebSocket(WebSocketTransport {
        subprotocol: None,
        farewell,
        has_exceptions: false,
    }),
    session: SessionKind::Fixed(Fixed {
        read: query::read,
        ping: b"",
    }),
    encode,
    gaps: GapNotice::OnRequest(append_gap),
};

fn encode(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    for publication in batch.publications {
        let opcode = match publication.is_text() {
            true => Opcode::Text,
            false => Opcode::Binary,
        };
        frame::append(out, opcode, publication.payload());
    }
    Ok(())
}

/// Appends a text frame that reports a gap, for clients that asked for it: everything else on a raw
/// WebSocket is a publication.
pub(super) fn append_gap(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    let frame = OpenFrame::start(out);
    out.extend_from_slice(b"{\"gap\":");
    gap::append_json(channel, gap, out);
    out.push(b'}');
    frame.finish(out, Opcode::Text);
}

/// Returns standard WebSocket close codes where there is one, because the client knows no
/// higher-level protocol.
///
/// RFC 6455 §7.4.1: "1001 indicates that an endpoint is "going away", such as a server going
/// down".
fn farewell(disconnect: &Disconnect) -> Disconnect {
    match disconnect {
        disconnect if *disconnect == Disconnect::OVERLOADED => Disconnect {
            code: TRY_AGAIN_LATER,
            ..disconnect.clone()
        },
        disconnect if *disconnect == Disconnect::SHUTDOWN => Disconnect {
            code: CloseCode::GOING_AWAY.as_u16(),
            reason: "server shutting down".into(),
        },
        disconnect => disconnect.clone(),
    }
}
