//! Encodes publications for the subscribers of each protocol and transport.

mod native;
mod pieces;

use std::sync::Arc;

use bytes::Bytes;
use linerate_hub::{Batch, Encode, EncodingId, Unencodable};
use linerate_proto::{Opcode, frame};

use super::{
    Block,
    centrifuge::{Format, json, protobuf},
};
use pieces::Frames;

/// The type of the encoders in the gateway's hubs.
pub(crate) type Encoder = dyn Encode<Block = Arc<Block>>;

/// How the publications of a subscription are encoded. Every worker's hub has all encodings, in the
/// order of [`Encoding::ALL`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Encoding {
    /// Centrifuge's JSON as server-sent events.
    CentrifugeEventStream,
    /// Centrifuge's JSON or Protobuf in a streaming response body.
    CentrifugeHttpStream(Format),
    /// Centrifuge's JSON or Protobuf in WebSocket frames.
    CentrifugeWebSocket(Format),
    /// One event per publication, with the payload as its data.
    EventStream,
    /// Native blocks in binary WebSocket frames.
    Native,
    /// One WebSocket frame per publication: text if the payload is text, otherwise binary.
    Raw,
}

impl Encoding {
    /// All encodings. The index of each is its ID in the hub.
    pub(crate) const ALL: [Self; 8] = [
        Self::CentrifugeEventStream,
        Self::CentrifugeHttpStream(Format::Json),
        Self::CentrifugeHttpStream(Format::Protobuf),
        Self::CentrifugeWebSocket(Format::Json),
        Self::CentrifugeWebSocket(Format::Protobuf),
        Self::EventStream,
        Self::Native,
        Self::Raw,
    ];

    /// Returns the index of the encoding in [`ALL`](Self::ALL).
    pub(crate) const fn index(self) -> u8 {
        match self {
            Self::CentrifugeEventStream => 0,
            Self::CentrifugeHttpStream(Format::Json) => 1,
            Self::CentrifugeHttpStream(Format::Protobuf) => 2,
            Self::CentrifugeWebSocket(Format::Json) => 3,
            Self::CentrifugeWebSocket(Format::Protobuf) => 4,
            Self::EventStream => 5,
            Self::Native => 6,
            Self::Raw => 7,
        }
    }

    /// Returns the name of the client protocol.
    pub(crate) const fn protocol(self) -> &'static str {
        match self {
            Self::CentrifugeEventStream
            | Self::CentrifugeHttpStream(Format::Json)
            | Self::CentrifugeWebSocket(Format::Json) => "centrifuge-json",
            Self::CentrifugeHttpStream(Format::Protobuf)
            | Self::CentrifugeWebSocket(Format::Protobuf) => "centrifuge-protobuf",
            Self::EventStream => "sse",
            Self::Native => super::native::SUBPROTOCOL,
            Self::Raw => "raw",
        }
    }

    /// Returns the name of the transport.
    pub(crate) const fn transport(self) -> &'static str {
        match self {
            Self::CentrifugeEventStream | Self::EventStream => "sse",
            Self::CentrifugeHttpStream(_) => "http_stream",
            Self::CentrifugeWebSocket(_) | Self::Native | Self::Raw => "websocket",
        }
    }

    /// Returns all encodings in the form that the hub expects.
    pub(crate) fn encoders() -> Vec<Arc<Encoder>> {
        let encoders = Self::ALL.into_iter();
        encoders.map(|one| Arc::new(one) as Arc<Encoder>).collect()
    }
}

impl From<Encoding> for EncodingId {
    fn from(encoding: Encoding) -> Self {
        Self(encoding.index())
    }
}

impl Encode for Encoding {
    type Block = Arc<Block>;

    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        match self {
            Self::CentrifugeEventStream => centrifuge_lines(batch, b"data: ", b"\n\n", out),
            Self::CentrifugeHttpStream(Format::Json) => centrifuge_lines(batch, b"", b"\n", out),
            Self::CentrifugeHttpStream(Format::Protobuf) => {
                for publication in batch.publications {
                    protobuf::publication_push(batch.channel.as_str(), publication, out);
                }
                Ok(())
            }
            Self::CentrifugeWebSocket(Format::Json) => centrifuge_text(batch, out),
            Self::CentrifugeWebSocket(Format::Protobuf) => {
                centrifuge_binary(batch, out);
                Ok(())
            }
            Self::EventStream => events(batch, out),
            Self::Native => {
                native::blocks(batch, out);
                Ok(())
            }
            Self::Raw => {
                raw(batch, out);
                Ok(())
            }
        }
    }

    fn seal(&self, bytes: Bytes, messages: u32) -> Arc<Block> {
        Arc::new(Block::new(bytes, messages.into()))
    }
}

fn centrifuge_lines(
    batch: &Batch<'_>,
    before: &[u8],
    behind: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    let channel = json::text(batch.channel.as_str());
    for publication in batch.publications {
        out.extend_from_slice(before);
        json::publication_push(&channel, publication, out)?;
        out.extend_from_slice(behind);
    }
    Ok(())
}

fn centrifuge_text(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let channel = json::text(batch.channel.as_str());
    let mut frames = Frames::open(out, Opcode::Text, b"\n");
    for publication in batch.publications {
        frames.piece(|out| json::publication_push(&channel, publication, out))?;
    }
    frames.close();
    Ok(())
}

fn centrifuge_binary(batch: &Batch<'_>, out: &mut Vec<u8>) {
    let mut frames = Frames::open(out, Opcode::Binary, b"");
    for publication in batch.publications {
        let push = |out: &mut Vec<u8>| {
            protobuf::publication_push(batch.channel.as_str(), publication, out);
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(()) = frames.piece(push);
    }
    frames.close();
}

fn raw(batch: &Batch<'_>, out: &mut Vec<u8>) {
    for publication in batch.publications {
        let opcode = match publication.is_text() {
            true => Opcode::Text,
            false => Opcode::Binary,
        };
        frame::append(out, opcode, publication.payload());
    }
}

/// Each line of a payload becomes a `data:` line; `EventSource` joins them again.
fn events(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    for publication in batch.publications {
        let text = std::str::from_utf8(publication.payload()).map_err(|_| Unencodable)?;
        if let Some(position) = publication.position() {
            super::event_stream::append_id(position, out);
        }
        super::event_stream::append_data(text, out);
    }
    Ok(())
}
