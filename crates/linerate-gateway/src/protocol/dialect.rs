//! What the rest of the gateway knows of a client protocol.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use linerate_hub::{Batch, ChannelName, Encode, Gap, Place, Sequence, Unencodable};

use super::{
    block::Block,
    chunk,
    codes::Disconnect,
    command::{Command, Connect},
    decode::{DecodeError, Emulation, Limits},
    event_offset, exceptions,
    lockstep::Lockstep,
    polling::{
        BodyLimit, FirstMessage, PolledName, PollingOutcome, PollingRefusal, PollingRequest,
        PollingResponse, ProbeStep,
    },
    query::{FixedRequest, QueryError},
    reply::ServerMessage,
};
use crate::config::{ClientOptions, Config, ProtocolOptions};

/// A client protocol: a module in this folder and a line in [`PROTOCOLS`](super::PROTOCOLS).
/// `docs/internals/adding-a-protocol.md` shows how to add one.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// The dialects of the protocol. If several have the same path, the first that accepts a
    /// request serves it.
    pub(crate) dialects: &'static [&'static Dialect],
    /// The setting that makes the protocol available.
    pub(crate) switch: Switch,
    /// Where clients of one-way streams send their commands, if they send any.
    pub(crate) emulation: Option<EmulationEndpoint>,
    /// Where clients without a WebSocket poll, if they can.
    pub(crate) polling: Option<&'static PollingEndpoint>,
}

/// A setting in `[protocols]` that makes a client protocol available.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    /// The key with its section.
    pub(crate) key: &'static str,
    pub(crate) is_on: fn(&ProtocolOptions) -> bool,
}

/// A client protocol in one format on one transport. The hub encodes publications once for all
/// subscribers of a dialect.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The names in metrics, in the server API and on the admin page.
    pub(crate) name: DialectName,
    /// The path that clients request. All dialects of a path are on WebSockets, or none is.
    pub(crate) path: &'static str,
    /// Returns whether a request for the path is for this dialect.
    pub(crate) accepts: fn(&Opening<'_>) -> bool,
    /// What carries the bytes.
    pub(crate) transport: Transport,
    /// Who decides on subscriptions: the client with its commands, or the URL.
    pub(crate) session: SessionKind,
    /// Appends publications, framing included.
    ///
    /// # Errors
    /// The dialect cannot represent a publication. What was appended is not used then.
    pub(crate) encode: fn(&Batch<'_>, &mut Vec<u8>) -> Result<(), Unencodable>,
    /// How clients are told of gaps.
    pub(crate) gaps: GapNotice,
}

/// The names of a client protocol and of its transport, such as `centrifuge-json` and `websocket`.
pub(crate) type DialectName = (&'static str, &'static str);

/// The parts of a request that select a dialect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    /// The path of the URL.
    pub(crate) path: &'a str,
    /// The query of the URL; empty if there is none.
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    /// The first of the path's WebSocket subprotocols that the client offers.
    pub(crate) subprotocol: Option<&'a str>,
}

/// What carries the bytes of a dialect.
#[derive(Debug)]
pub(crate) enum Transport {
    /// The streaming body of an HTTP response.
    Stream(StreamTransport),
    /// WebSocket messages.
    WebSocket(WebSocketTransport),
}

/// How a dialect uses the streaming body of an HTTP response.
#[derive(Debug)]
pub(crate) struct StreamTransport {
    /// The `Content-Type` of the response.
    pub(crate) content_type: &'static str,
    /// Returns the last bytes of the body when the server ends it.
    pub(crate) farewell: fn(&Disconnect) -> Option<Bytes>,
}

/// How a dialect uses a WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocketTransport {
    /// The subprotocol, if the dialect has one. The server prefers those of earlier dialects.
    pub(crate) subprotocol: Option<&'static str>,
    /// Returns the code and reason of the Close frame.
    pub(crate) farewell: fn(&Disconnect) -> Disconnect,
    /// True if publications are withheld from the clients that they except
    /// ([`exceptions`](super::exceptions)). Each publication is then a frame, or each is a text
    /// frame that binary frames may follow.
    pub(crate) has_exceptions: bool,
}

/// The kind of session that serves a client.
#[derive(Debug)]
pub(crate) enum SessionKind {
    /// The client sends commands, and gets replies.
    Commands(Commands),
    /// The URL says what the client subscribes to; the client sends nothing else.
    Fixed(Fixed),
}

/// Commands and replies as bytes.
#[derive(Debug)]
pub(crate) struct Commands {
    /// Decodes the commands in a WebSocket message or in the body of a request.
    pub(crate) read: fn(&[u8], &Limits) -> Result<Vec<Command>, DecodeError>,
    /// Returns the command that a binary WebSocket message is; `None` if [`read`](Self::read)
    /// decodes binary messages like others.
    pub(crate) read_binary: Option<fn(&[u8]) -> Command>,
    /// Appends replies and pushes, of which there is at least one: as WebSocket frames, headers
    /// included, or as a piece of a body.
    ///
    /// # Errors
    /// The dialect cannot represent a payload. What was appended is not used then.
    pub(crate) write: fn(&[ServerMessage], &mut Vec<u8>) -> Result<(), Unencodable>,
    /// How the request for the connection connects a client; `None` if the first command does.
    pub(crate) connects: Option<ConnectingRequest>,
    /// Returns how long a client may be silent, if clients are to send a sign of life on their own;
    /// `None` if the server sends pings.
    pub(crate) heartbeat: Option<fn(&Config) -> Duration>,
    /// Returns the message with which the server begins a connection; `None` if the client begins.
    /// A client that polls has to know the name of its session.
    pub(crate) greeting: Option<fn(&ClientOptions, Option<&PolledName>) -> ServerMessage>,
    /// True if the server can subscribe clients to channels that they have not asked for.
    pub(crate) has_server_subscriptions: bool,
    /// True if clients know their positions in streams. Other clients are told of gaps as
    /// [`Dialect::gaps`] says, and their subscriptions continue.
    pub(crate) has_positions: bool,
    /// True if clients may ask for deltas, and [`Dialect::encode`] knows them.
    pub(crate) has_deltas: bool,
    /// True if clients may ask for channel IDs in place of names, and [`Dialect::encode`] knows
    /// them.
    pub(crate) has_compaction: bool,
    /// The parameter with the first commands, if a stream can be requested with `GET`.
    pub(crate) first_in_query: Option<&'static str>,
    /// True if a stream can be requested with `POST` and the first commands as the body.
    pub(crate) first_in_body: bool,
}

/// A request for a connection that also connects the client, so that there is no such command.
#[derive(Debug)]
pub(crate) struct ConnectingRequest {
    /// Checks a request, and returns the command that it stands for.
    ///
    /// # Errors
    /// The client is disconnected for this reason.
    pub(crate) read: fn(&Opening<'_>, &Config) -> Result<Connect, Disconnect>,
    /// Returns a new ID for a client, unique in the cluster; `None` for the usual form.
    pub(crate) client_id: Option<fn() -> String>,
    /// True if every client may connect whose request can be read. Otherwise, clients are
    /// authenticated before the connection is open, and refused with an HTTP status: the SDKs of
    /// such protocols would reconnect at once if a connection opened and closed.
    pub(crate) admits: bool,
}

/// A fixed subscription.
#[derive(Debug)]
pub(crate) struct Fixed {
    /// Parses the query and the headers of a request; usually [`query::read`](super::query::read).
    ///
    /// # Errors
    /// The request is invalid. The client gets the message.
    pub(crate) read: fn(&str, &HeaderMap) -> Result<FixedRequest, QueryError>,
    /// The bytes that begin a stream and then keep it alive; empty on a WebSocket, which has pings.
    pub(crate) ping: &'static [u8],
}

/// How a client is told of gaps: what appends the report, framing included.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GapNotice {
    /// Each gap is reported with the ID that the reply to `subscribe` gave the channel.
    ById(fn(u32, Gap, &mut Vec<u8>)),
    /// Each gap is reported with the name of the channel.
    ByName(fn(&ChannelName, Gap, &mut Vec<u8>)),
    /// Like [`ByName`](Self::ByName), but only to clients that asked for it with `gaps=true`.
    OnRequest(fn(&ChannelName, Gap, &mut Vec<u8>)),
    /// Not at all; a client that sends commands is told by the end of its subscription.
    None,
}

/// An endpoint that takes the commands of clients whose streams are one-way.
#[derive(Debug)]
pub(crate) struct EmulationEndpoint {
    /// The path that clients `POST` to.
    pub(crate) path: &'static str,
    /// Decodes the body of a request.
    pub(crate) read: fn(&HeaderMap, &[u8]) -> Result<Emulation, DecodeError>,
}

/// An endpoint for clients that poll.
#[derive(Debug)]
pub(crate) struct PollingEndpoint {
    /// The path of the requests. WebSockets of the protocol may have the same path.
    pub(crate) path: &'static str,
    /// The names of the protocol and the transport for clients that connect here.
    pub(crate) name: DialectName,
    /// The dialect on WebSockets that the clients use.
    pub(crate) dialect: &'static Dialect,
    /// Returns how long a poll waits for a message; `None` if it waits for as long as its client. A
    /// client that sends signs of life on its own may be silent for one and a half times as long.
    pub(crate) hold: Option<fn(&Config) -> Duration>,
    /// What limits the body of a request.
    pub(crate) limit: BodyLimit,
    /// Returns what a request is for.
    ///
    /// # Errors
    /// The request is refused.
    pub(crate) read: fn(&Method, &Opening<'_>) -> Result<PollingRequest, PollingRefusal>,
    /// Decodes the first message in the body of a request.
    pub(crate) split: fn(Bytes) -> FirstMessage,
    /// Returns the response to a request.
    pub(crate) respond: fn(PollingOutcome<'_>) -> PollingResponse,
    /// Returns what a text message on a WebSocket means that wants to continue the session of a
    /// client that polls; `None` if the client must not send it there. It is not called if requests
    /// are never for WebSockets.
    pub(crate) probe: fn(&[u8]) -> Option<ProbeStep>,
}

/// The type of the encoders in the gateway's hubs.
pub(crate) type Encoder = dyn Encode<Block = Arc<Block>>;

/// The names of the live view on the admin page, which has no dialect. The number of its encoding
/// is the next after those of all dialects.
pub(crate) static TAIL: DialectName = ("tail", "admin");

/// The name of the transport of dialects on WebSockets.
pub(crate) const WEBSOCKET: &str = "websocket";

impl Dialect {
    /// Returns whether clients send commands.
    pub(crate) const fn has_commands(&self) -> bool {
        matches!(self.session, SessionKind::Commands(_))
    }

    /// Returns how the request for the connection connects a client; `None` if a command does.
    pub(crate) const fn connects(&self) -> Option<&ConnectingRequest> {
        match &self.session {
            SessionKind::Commands(commands) => commands.connects.as_ref(),
            SessionKind::Fixed(_) => None,
        }
    }

    /// Returns whether the request for the connection connects a client without authentication.
    pub(crate) fn admits(&self) -> bool {
        self.connects().is_some_and(|request| request.admits)
    }

    /// Returns whether the server can subscribe clients to channels that they have not asked for.
    pub(crate) const fn has_server_subscriptions(&self) -> bool {
        matches!(&self.session, SessionKind::Commands(commands) if commands.has_server_subscriptions)
    }

    /// Returns whether clients are told of gaps among the publications, so that their subscriptions
    /// need not end.
    pub(crate) const fn reports_gaps(&self) -> bool {
        !matches!(self.gaps, GapNotice::None)
    }

    /// Returns whether clients know their positions in streams.
    pub(crate) const fn has_positions(&self) -> bool {
        matches!(&self.session, SessionKind::Commands(commands) if commands.has_positions)
    }

    /// Returns whether clients may ask for deltas.
    pub(crate) const fn has_deltas(&self) -> bool {
        matches!(&self.session, SessionKind::Commands(commands) if commands.has_deltas)
    }

    /// Returns whether clients may ask for channel IDs in place of names.
    pub(crate) const fn has_compaction(&self) -> bool {
        matches!(&self.session, SessionKind::Commands(commands) if commands.has_compaction)
    }

    /// Returns whether the reply to `subscribe` gives the channel an ID.
    pub(crate) const fn has_channel_ids(&self) -> bool {
        matches!(self.gaps, GapNotice::ById(_))
    }
}

impl Encode for &'static Dialect {
    type Block = Arc<Block>;

    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        match self.transport {
            Transport::Stream(_) => chunk::encode(out, |out| (self.encode)(batch, out)),
            Transport::WebSocket(_) => (self.encode)(batch, out),
        }
    }

    fn seal(&self, bytes: Bytes, batch: &Batch<'_>, place: Option<Place<'_>>) -> Arc<Block> {
        let messages = batch.publications.len() as u64;
        let block = match self.transport {
            Transport::Stream(_) => {
                let payload = chunk::payload(bytes.len());
                Block::of_chunk(bytes, payload, messages)
            }
            Transport::WebSocket(WebSocketTransport {
                has_exceptions: true,
                ..
            }) => {
                let exceptions = exceptions::of(batch, &bytes);
                Block::new(bytes, messages).with_exceptions(exceptions)
            }
            Transport::WebSocket(_) => Block::new(bytes, messages),
        };
        let block = match batch.with_positions {
            true => block.with_end(event_offset::end_of(batch)),
            false => block,
        };
        Arc::new(match place {
            Some(place) => block.with_place(&place),
            None => block,
        })
    }

    fn sequence(&self) -> Option<Sequence> {
        match self.transport {
            Transport::WebSocket(_) => Some(Arc::new(Lockstep::new())),
            Transport::Stream(_) => None,
        }
    }
}

impl Commands {
    /// Decodes a frame of commands.
    ///
    /// Unknown fields are ignored. An unknown command becomes
    /// [`Request::Unknown`](super::command::Request::Unknown).
    ///
    /// # Errors
    /// Any part of the frame is not a valid command, or there is no command. In that case, none of
    /// its commands may be executed.
    pub(crate) fn decode(
        &self,
        frame: &[u8],
        limits: &Limits,
    ) -> Result<Vec<Command>, DecodeError> {
        let commands = (self.read)(frame, limits)?;
        if commands.is_empty() {
            return Err(DecodeError::Empty);
        }
        Ok(commands)
    }

    /// Appends `messages` to `out` in their wire form. If `messages` is empty, nothing is appended.
    ///
    /// # Errors
    /// The dialect cannot represent a payload. `out` is unchanged in this case.
    pub(crate) fn encode(
        &self,
        messages: &[ServerMessage],
        out: &mut Vec<u8>,
    ) -> Result<(), Unencodable> {
        if messages.is_empty() {
            return Ok(());
        }
        let start = out.len();
        let result = (self.write)(messages, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }
}
