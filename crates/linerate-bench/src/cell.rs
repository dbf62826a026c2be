//! A cell: one load that every contender is measured under, and the figure they are compared by.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// One cell of the comparison. All contenders are measured under the same load.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Cell {
    /// Name of the scenario that the cell belongs to, for instance `pipeline`.
    pub scenario: String,
    /// Name within the scenario, without spaces: `5B-128w`. Command lines select cells by it.
    pub name: String,
    /// Title for people: `5 B, 8 connections, 128 in flight`.
    pub title: String,
    /// The load that the clients generate.
    pub load: Load,
}

impl Cell {
    /// Returns `scenario/name`, which is unique within a run.
    pub fn id(&self) -> String {
        format!("{}/{}", self.scenario, self.name)
    }

    /// Returns the mode in which the server must be started.
    pub fn mode(&self) -> Mode {
        match &self.load {
            Load::Echo(echo) => Mode {
                service: Service::Echo,
                tls: echo.tls,
                deflate: echo.deflate,
                small_pages: false,
            },
            Load::Fanout(_) => Mode::plain(Service::Fanout),
            Load::Idle(_) => Mode {
                small_pages: true,
                ..Mode::plain(Service::Echo)
            },
            Load::Upload(_) => Mode::plain(Service::Acknowledge),
        }
    }
}

/// The load that the clients generate.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Load {
    /// Messages that the server echoes.
    Echo(Echo),
    /// One publisher and many subscribers.
    Fanout(Fanout),
    /// Connections that stay idle.
    Idle(Idle),
    /// Messages that the server acknowledges instead of echoing.
    Upload(Upload),
}

/// Messages that the server echoes. Each connection sends `window` messages and, once all of them
/// have been echoed, the next `window`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Echo {
    /// Number of connections that are open at a time.
    pub connections: u32,
    /// Number of messages in flight on each connection.
    pub window: u32,
    /// Payload size of each message, in bytes.
    pub payload_bytes: u32,
    /// Content of the payload.
    pub payload: Payload,
    /// Number of frames in which the client sends each message; 1 is an unfragmented message. The
    /// server may answer in any number of frames.
    pub frames: u32,
    /// Longest write to a socket, in bytes on the wire; `None` leaves the size to the kernel.
    pub write_bytes_max: Option<NonZeroU32>,
    /// True if the connection is encrypted (TLS 1.3, AES-128-GCM).
    pub tls: bool,
    /// How messages are compressed.
    pub deflate: Deflate,
    /// Messages per second over all connections, sent on schedule whether or not answers have
    /// arrived (open loop); `None` sends as fast as answers arrive (closed loop).
    pub rate: Option<f64>,
    /// Number of messages that each connection sends before it is closed and replaced by a new one;
    /// the measurement then includes opening and closing. `None` opens all connections before the
    /// clock starts and keeps them open.
    pub messages: Option<u32>,
}

/// One publisher's messages, each delivered to all connections, including the publisher's own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Fanout {
    /// Number of connections in addition to the publisher's. Only deliveries to these are counted.
    pub subscribers: u32,
    /// Payload size of each message, in bytes. Messages are text.
    pub payload_bytes: u32,
    /// Number of messages that the publisher has in flight. It sends the next one when the oldest
    /// has been delivered to all connections.
    pub window: u32,
}

/// Connections that are idle, then echo one message each, then are idle again.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Idle {
    /// Number of connections that are open at a time.
    pub connections: u32,
    /// Payload size of the single binary message, in bytes.
    pub payload_bytes: u32,
}

/// Binary messages on one connection. The server answers each with a text message that contains the
/// number of payload bytes in decimal.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Upload {
    /// Payload size of each message, in bytes.
    pub payload_bytes: u32,
    /// Largest number of messages that may be unacknowledged.
    pub window: u32,
    /// Payload of all messages together, in bytes.
    pub total_bytes: u64,
}

/// Content of a payload.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// ASCII text.
    #[default]
    Ascii,
    /// A binary message that is not valid UTF-8.
    Binary,
    /// A JSON document like those that dashboards receive, sent as text.
    Json,
    /// Text with characters of one to four bytes.
    Multibyte,
}

/// How messages are compressed (RFC 7692).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deflate {
    /// Each message is compressed independently, in both directions.
    NoTakeover,
    /// No compression.
    #[default]
    Off,
    /// Messages are compressed with context takeover in both directions.
    Takeover,
}

/// The options with which a contender's server is started.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Mode {
    /// What the server does with messages.
    pub service: Service,
    /// True if the server serves `wss://`.
    pub tls: bool,
    /// The compression that the server agrees to.
    pub deflate: Deflate,
    /// True if the server's allocator must not use huge pages. Their steps of 2 MiB would hide the
    /// memory cost of a connection.
    pub small_pages: bool,
}

impl Mode {
    /// Returns the mode of a server without TLS and without compression.
    pub fn plain(service: Service) -> Self {
        Self {
            service,
            tls: false,
            deflate: Deflate::Off,
            small_pages: false,
        }
    }
}

/// What a server does with a message.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Answers with the number of payload bytes.
    Acknowledge,
    /// Sends the message back.
    Echo,
    /// Sends the message to all connections.
    Fanout,
}
