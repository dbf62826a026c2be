//! The same bytes as input of linerate, tungstenite and tokio-websockets: the application must see
//! the same, except for the differences listed here.
#![no_main]

use core::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use futures_util::{FutureExt, StreamExt};
use libfuzzer_sys::fuzz_target;
use linerate_proto::{Config, Engine, ProtocolError, Role, engine::MessageKind};
use linerate_testkit::{Cuts, Seen, TestEndpoint, feed};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const BYTES_MAX: usize = 1_000;

/// What was received: the payloads of messages and control frames.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Binary(Vec<u8>),
    Close(Option<u16>, String),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Text(Vec<u8>),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The peer has closed.
    Closed,
    /// The peer broke the rules or a limit.
    Failed,
    /// The connection is still open.
    Open,
}

// The first byte chooses the role.
fuzz_target!(|data: &[u8]| {
    let Some((choice, wire)) = data.split_first() else {
        return;
    };
    let role = match choice & 1 {
        0 => Role::Server,
        _ => Role::Client,
    };
    let ours = linerate(role, wire);
    // We judge lengths once the masking key after them has arrived, that of a Close frame with its
    // payload.
    let with_more = linerate(role, &[wire, &[0; 5]].concat());
    for (theirs, is_allowed) in [
        (
            tungstenite(role, wire),
            is_allowed_of_tungstenite as Allowed,
        ),
        (tokio_websockets(role, wire), is_allowed_of_tokio_websockets),
    ] {
        let is_late = (ours.end, theirs.end) == (End::Open, End::Failed);
        match is_late && with_more.end == End::Failed {
            true => compare(&with_more, &theirs, is_allowed),
            false => compare(&ours, &theirs, is_allowed),
        }
    }
});

struct Ours {
    items: Vec<Item>,
    end: End,
    error: Option<ProtocolError>,
}

struct Theirs {
    items: Vec<Item>,
    end: End,
    said: String,
}

/// A known difference: we fail where the other library continues with this item.
type Allowed = fn(&ProtocolError, Option<&Item>) -> bool;

fn compare(ours: &Ours, theirs: &Theirs, is_allowed: Allowed) {
    let both = ours.items.len().min(theirs.items.len());
    if both > 0 && is_1014(&ours.items[both - 1], &theirs.items[both - 1]) {
        return;
    }
    assert_eq!(
        ours.items[..both],
        theirs.items[..both],
        "{:?} {}",
        ours.error,
        theirs.said
    );
    // We judge each byte as it arrives, the others judge whole frames: they have not yet seen an
    // error in an incomplete frame, and the part of its message before it is not a message.
    let is_early = ours.end == End::Failed && theirs.end == End::Open;
    let next = theirs.items.get(both);
    let is_known = |error| is_allowed(error, next);
    if is_early || ours.error.as_ref().is_some_and(is_known) {
        return;
    }
    assert_eq!(
        (&ours.items, ours.end),
        (&theirs.items, theirs.end),
        "{:?} {}",
        ours.error,
        theirs.said
    );
}

/// IANA has registered close code 1014; tungstenite refuses it, and reports the Close frame that it
/// answers with.
fn is_1014(ours: &Item, theirs: &Item) -> bool {
    let is_refused = *theirs == Item::Close(Some(1002), "Protocol violation".into());
    matches!(ours, Item::Close(Some(1014), _)) && is_refused
}

/// Returns whether tungstenite 0.30.0 may continue.
fn is_allowed_of_tungstenite(error: &ProtocolError, _next: Option<&Item>) -> bool {
    matches!(
        error,
        // It turns a code that must not be sent into the Close frame that it answers with.
        ProtocolError::CloseCode { .. }
            // RFC 6455 §5.2: "the minimal number of bytes MUST be used to encode the length"; also
            // if only the long form shows that a control frame is too long.
            | ProtocolError::ControlTooLong { .. }
            | ProtocolError::NonMinimalLength { .. }
    )
}

/// Returns whether tokio-websockets 0.13.3 may continue.
fn is_allowed_of_tokio_websockets(error: &ProtocolError, next: Option<&Item>) -> bool {
    // It accepts a text that ends within a code point if its last frame is empty.
    let is_cut_off = |item: &Item| match item {
        Item::Text(bytes) => {
            std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
        }
        _ => false,
    };
    matches!(error, ProtocolError::InvalidUtf8 { .. }) && next.is_some_and(is_cut_off)
}

fn linerate(role: Role, wire: &[u8]) -> Ours {
    let mut config = Config::default();
    config.limits.message_bytes_max = BYTES_MAX as u64;
    config.limits.frame_bytes_max = BYTES_MAX as u64;
    let mut engine = Engine::new(TestEndpoint(role), Arc::new(config), Duration::ZERO);
    let (mut items, mut end, mut error) = (Vec::new(), End::Open, None);
    for seen in feed(&mut engine, wire, Cuts::Whole).seen {
        items.push(match seen {
            Seen::Close { code, reason } => {
                end = End::Closed;
                Item::Close(code, reason)
            }
            Seen::Error(failed) => {
                (end, error) = (End::Failed, Some(failed));
                break;
            }
            Seen::Message { kind, bytes } => match kind {
                MessageKind::Binary => Item::Binary(bytes),
                MessageKind::Text => Item::Text(bytes),
            },
            Seen::Ping(payload) => Item::Ping(payload),
            Seen::Pong(payload) => Item::Pong(payload),
        });
    }
    Ours { items, end, error }
}

fn tungstenite(role: Role, wire: &[u8]) -> Theirs {
    use tungstenite::{
        Error, Message, WebSocket,
        error::ProtocolError as Wrong,
        protocol::{Role as TheirRole, WebSocketConfig},
    };
    let role = match role {
        Role::Client => TheirRole::Client,
        Role::Server => TheirRole::Server,
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(BYTES_MAX))
        .max_frame_size(Some(BYTES_MAX));
    let mut socket = WebSocket::from_raw_socket(Wire(wire), role, Some(config));
    let mut items = Vec::new();
    loop {
        let item = match socket.read() {
            Ok(Message::Binary(bytes)) => Item::Binary(bytes.to_vec()),
            Ok(Message::Close(frame)) => {
                let code = frame.as_ref().map(|frame| frame.code.into());
                let reason = frame.map(|frame| frame.reason.to_string());
                items.push(Item::Close(code, reason.unwrap_or_default()));
                let (end, said) = (End::Closed, String::new());
                return Theirs { items, end, said };
            }
            Ok(Message::Ping(payload)) => Item::Ping(payload.to_vec()),
            Ok(Message::Pong(payload)) => Item::Pong(payload.to_vec()),
            Ok(Message::Text(text)) => Item::Text(text.as_bytes().to_vec()),
            Ok(Message::Frame(_)) => unreachable!("frames are not read"),
            Err(error) => {
                let is_end = matches!(error, Error::Protocol(Wrong::ResetWithoutClosingHandshake));
                let end = if is_end { End::Open } else { End::Failed };
                let said = error.to_string();
                return Theirs { items, end, said };
            }
        };
        items.push(item);
    }
}

fn tokio_websockets(role: Role, wire: &[u8]) -> Theirs {
    use tokio_websockets::{ClientBuilder, Limits, ServerBuilder};
    let limits = Limits::default().max_payload_len(Some(BYTES_MAX));
    let mut socket = match role {
        Role::Client => ClientBuilder::new().limits(limits).take_over(Wire(wire)),
        Role::Server => ServerBuilder::new().limits(limits).serve(Wire(wire)),
    };
    let mut items = Vec::new();
    let (mut end, mut said) = (End::Open, String::new());
    // Reading from memory never waits.
    while let Some(Some(read)) = socket.next().now_or_never() {
        let message = match read {
            Ok(message) => message,
            Err(error) => {
                said = error.to_string();
                // Its error for an end of the stream within a frame.
                if said != "bytes remaining on stream" {
                    end = End::Failed;
                }
                break;
            }
        };
        if let Some((code, reason)) = message.as_close() {
            let code = Some(u16::from(code)).filter(|code| *code != 1005);
            items.push(Item::Close(code, reason.to_owned()));
            end = End::Closed;
            break;
        }
        let kind = match () {
            () if message.is_binary() => Item::Binary,
            () if message.is_ping() => Item::Ping,
            () if message.is_pong() => Item::Pong,
            () => Item::Text,
        };
        items.push(kind(message.into_payload().to_vec()));
    }
    Theirs { items, end, said }
}

/// A connection that yields these bytes and then ends; writes are discarded.
struct Wire<'a>(&'a [u8]);

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for Wire<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Wire<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
