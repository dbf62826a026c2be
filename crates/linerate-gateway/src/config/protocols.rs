//! `[protocols]`: the client protocols that the server speaks.

use serde::Deserialize;

/// The client protocols that the server speaks. Requests for another one are refused with 404.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProtocolOptions {
    /// True if the protocol of the Centrifugo SDKs is available, with and without WebSocket.
    pub centrifuge: bool,
    /// True if the protocol of the npm package `linerate` is available.
    pub native: bool,
    /// True if the protocol of Phoenix Channels is available.
    pub phoenix: bool,
    /// True if the protocol of the Pusher SDKs and Pusher's HTTP API are available.
    pub pusher: bool,
    /// True if WebSockets on `/raw` are available.
    pub raw: bool,
    /// True if the protocol of the Socket.IO clients is available.
    pub socketio: bool,
    /// True if event streams on `/sse` are available.
    pub sse: bool,
}
