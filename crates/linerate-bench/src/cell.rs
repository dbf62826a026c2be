//! A cell: one load that all contenders are put under, and what is compared.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// A field of the comparison: all contenders meet the same load.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Cell {
    /// The name of the scenario it belongs to, for instance `pipeline`.
    pub scenario: String,
    /// The name within the scenario, without spaces: `5B-128w`. A command line selects by it.
    pub name: String,
    /// For people: `5 B, 8 connections, 128 in flight`.
    pub title: String,
    /// What is done.
    pub load: Load,
}

impl Cell {
    /// Returns `scenario/name`, which is unique in a run.
    pub fn id(&self) -> String {
        format!("{}/{}", self.scenario, self.name)
    }

    /// Returns what the contenders are compared by.
    pub fn headline(&self) -> Headline {
        match &self.load {
            Load::Echo(echo) if echo.rate.is_some() => Headline::LatencyP99,
            Load::Idle(_) => Headline::BytesPerConnection,
            Load::Echo(_) | Load::Fanout(_) | Load::Upload(_) => Headline::PerServerCpuSecond,
        }
    }

    /// Returns how the server has to be started.
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

/// What a cell compares, and in which direction.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Headline {
    /// Resident bytes per idle connection, once each has had a message echoed; less is better.
    BytesPerConnection,
    /// The 99th percentile of latency from the intended send time; less is better.
    LatencyP99,
    /// Messages (deliveries in a fan-out) per second of the server's CPU time; more is better.
    PerServerCpuSecond,
}

impl Headline {
    /// Returns whether a larger figure is the better one.
    pub fn more_is_better(self) -> bool {
        self == Self::PerServerCpuSecond
    }
}

/// What the clients do.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Load {
    /// Messages that come back.
    Echo(Echo),
    /// One publisher, many subscribers.
    Fanout(Fanout),
    /// Connections that do nothing.
    Idle(Idle),
    /// Messages that are acknowledged, not echoed.
    Upload(Upload),
}

/// Messages that come back. Each connection sends `window` messages and, once all have come back,
/// the next `window`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Echo {
    /// Connections that are open at a time.
    pub connections: u32,
    /// Messages in flight on each connection.
    pub window: u32,
    /// Payload of each message.
    pub payload_bytes: u32,
    /// What the payload is made of.
    pub payload: Payload,
    /// Frames that the client sends each message in; 1 is an unfragmented message. The answer may
    /// come in any number of frames.
    pub frames: u32,
    /// The longest write to a socket, in wire bytes; `None` leaves it to the kernel.
    pub write_bytes_max: Option<NonZeroU32>,
    /// Whether the connection is encrypted (TLS 1.3, AES-128-GCM).
    pub tls: bool,
    /// Whether messages are compressed.
    pub deflate: Deflate,
    /// Messages per second over all connections, sent on schedule whether or not answers have come
    /// (open loop); `None` sends as fast as answers come (closed loop).
    pub rate: Option<f64>,
    /// Messages that each connection sends before it is closed, whereupon another is opened in its
    /// place; opening and closing are measured with them. `None` opens all connections before the
    /// clock starts and keeps them.
    pub messages: Option<u32>,
}

/// One publisher's messages, each delivered to all connections, the publisher's own included.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Fanout {
    /// Connections besides the publisher's; deliveries to them are counted.
    pub subscribers: u32,
    /// Payload of each message, which is text.
    pub payload_bytes: u32,
    /// Messages that the publisher has in flight: the next is sent once all have the oldest.
    pub window: u32,
}

/// Connections that do nothing, then echo one message each, then nothing again.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Idle {
    /// Connections that are open at a time.
    pub connections: u32,
    /// Payload of the one binary message.
    pub payload_bytes: u32,
}

/// Binary messages on one connection, each answered by a text message that has the number of its
/// payload bytes in decimal.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Upload {
    /// Payload of each message.
    pub payload_bytes: u32,
    /// Messages that may be unacknowledged.
    pub window: u32,
    /// Payload of all messages together.
    pub total_bytes: u64,
}

/// What a payload is made of.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// Text of ASCII characters.
    Ascii,
    /// A binary message that is no UTF-8.
    Binary,
    /// Text: a JSON document, as dashboards get them.
    Json,
    /// Text with characters of one to four bytes.
    Multibyte,
}

/// How messages are compressed (RFC 7692).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deflate {
    /// Each message for itself, in both directions.
    NoTakeover,
    /// Not at all.
    #[default]
    Off,
    /// With context takeover in both directions.
    Takeover,
}

/// How a contender's server is started.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Mode {
    /// What it does with messages.
    pub service: Service,
    /// Whether it serves `wss://`.
    pub tls: bool,
    /// Whether it agrees to compress.
    pub deflate: Deflate,
    /// Whether its allocator does without huge pages, whose steps of 2 MiB would hide what a
    /// connection costs.
    pub small_pages: bool,
}

impl Mode {
    /// A server without TLS and compression.
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
    /// Answers with the number of its payload bytes.
    Acknowledge,
    /// Sends it back.
    Echo,
    /// Sends it to all connections.
    Fanout,
}
