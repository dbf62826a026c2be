//! What the emitter and the adapters of Socket.IO's own server write into Redis.
//!
//! | where | form |
//! | --- | --- |
//! | channel `socket.io#/chat#` or `socket.io#/chat#room#` | MessagePack: `[uid, packet, options]` |
//! | channel `socket.io-request#/chat#` | JSON, or MessagePack if it has bytes: `{type, opts, …}` |
//! | stream `socket.io` | fields `nsp`, `type` and `data`: JSON, or MessagePack in Base64 |

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, de::IgnoredAny};

use super::json::{EventJson, IsThere, Name};
use crate::protocol::socketio::namespace::MAIN;

/// The maximum nesting of a packet, which is that of events of clients and what contains them.
const DEPTH_MAX: usize = 64;

/// The types of packets with an event.
const EVENT: u8 = 2;
const BINARY_EVENT: u8 = 5;

/// What an application wants of the clients in a namespace.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Wish {
    /// Disconnects clients from the namespace, or with `is_connection` closes their connections.
    Disconnect {
        whom: Recipients,
        is_connection: bool,
    },
    /// Emits an event.
    Emit { to: Recipients, event: EventJson },
    /// Adds clients to rooms.
    Join {
        whom: Recipients,
        rooms: Vec<String>,
    },
    /// Removes clients from rooms.
    Leave {
        whom: Recipients,
        rooms: Vec<String>,
    },
    /// Concerns only servers, or wants answers.
    Other,
}

/// The clients that are in one of `rooms`, or in the namespace if there are none, and not in one of
/// `except`.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Recipients {
    pub(super) rooms: Vec<String>,
    pub(super) except: Vec<String>,
}

/// Why a packet is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum PacketError {
    #[error("data of the stream is not Base64")]
    Base64(#[from] base64::DecodeError),
    #[error("packet is not JSON of the expected form: {0}")]
    Json(#[from] serde_json::Error),
    #[error("packet is not MessagePack of the expected form: {0}")]
    MessagePack(#[from] rmp_serde::decode::Error),
    #[error("packet names {rooms} rooms; at most {rooms_max} are allowed")]
    Rooms { rooms: usize, rooms_max: usize },
}

#[derive(Deserialize)]
struct Packet {
    #[serde(rename = "type")]
    kind: u8,
    nsp: Option<String>,
    data: EventJson,
    #[serde(default)]
    id: IsThere,
}

#[derive(Default, Deserialize)]
struct Options {
    #[serde(default)]
    rooms: Vec<Name>,
    #[serde(default)]
    except: Vec<Name>,
}

/// A request of `@socket.io/redis-emitter` or `@socket.io/redis-adapter`.
#[derive(Deserialize)]
struct Request {
    #[serde(rename = "type")]
    kind: u8,
    opts: Option<Options>,
    #[serde(default)]
    rooms: Vec<Name>,
    #[serde(default)]
    close: bool,
}

/// The data of an entry of `@socket.io/redis-streams-adapter`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryData {
    opts: Options,
    packet: Option<Packet>,
    #[serde(default)]
    request_id: IsThere,
    #[serde(default)]
    rooms: Vec<Name>,
    #[serde(default)]
    close: bool,
}

/// Decodes what is published in a channel of a namespace, such as `socket.io#/chat#`.
///
/// # Errors
/// It is not a packet, or names more rooms than allowed.
pub(super) fn broadcast(
    bytes: &[u8],
    namespace: &str,
    rooms_max: usize,
) -> Result<Wish, PacketError> {
    // The adapter for streams publishes its requests, which are objects, in the same channel.
    if bytes.first().is_some_and(|byte| is_map(*byte)) {
        return Ok(Wish::Other);
    }
    let (_, packet, options): (IgnoredAny, Packet, Options) = from_message_pack(bytes)?;
    // The adapter drops such packets, too.
    if packet.nsp.as_deref().unwrap_or(MAIN) != namespace {
        return Ok(Wish::Other);
    }
    options.emit(packet, rooms_max)
}

/// Decodes a request.
///
/// # Errors
/// It is not a request, or names more rooms than allowed.
pub(super) fn request(bytes: &[u8], rooms_max: usize) -> Result<Wish, PacketError> {
    let request: Request = match bytes.first() {
        Some(b'{') => serde_json::from_slice(bytes)?,
        _ => from_message_pack(bytes)?,
    };
    let Some(options) = request.opts else {
        return Ok(Wish::Other);
    };
    match request.kind {
        2 => options.join(request.rooms, rooms_max),
        3 => options.leave(request.rooms, rooms_max),
        4 => options.disconnect(request.close, rooms_max),
        _ => Ok(Wish::Other),
    }
}

/// Decodes an entry of a stream, whose type is a number in decimal.
///
/// # Errors
/// It is not an entry, or names more rooms than allowed.
pub(super) fn entry(kind: &[u8], data: &[u8], rooms_max: usize) -> Result<Wish, PacketError> {
    if !matches!(kind, b"3" | b"4" | b"5" | b"6") {
        return Ok(Wish::Other);
    }
    let data: EntryData = match data.first() {
        Some(b'{') => serde_json::from_slice(data)?,
        _ => from_message_pack(&STANDARD.decode(data)?)?,
    };
    match (kind, data.packet) {
        (b"3", Some(packet)) if !data.request_id.0 => data.opts.emit(packet, rooms_max),
        (b"4", _) => data.opts.join(data.rooms, rooms_max),
        (b"5", _) => data.opts.leave(data.rooms, rooms_max),
        (b"6", _) => data.opts.disconnect(data.close, rooms_max),
        _ => Ok(Wish::Other),
    }
}

impl Options {
    fn emit(self, packet: Packet, rooms_max: usize) -> Result<Wish, PacketError> {
        let to = self.recipients(rooms_max)?;
        if !matches!(packet.kind, EVENT | BINARY_EVENT) || packet.id.0 {
            return Ok(Wish::Other);
        }
        let event = packet.data;
        Ok(Wish::Emit { to, event })
    }

    fn join(self, rooms: Vec<Name>, rooms_max: usize) -> Result<Wish, PacketError> {
        Ok(Wish::Join {
            whom: self.recipients(rooms_max)?,
            rooms: names(rooms, rooms_max)?,
        })
    }

    fn leave(self, rooms: Vec<Name>, rooms_max: usize) -> Result<Wish, PacketError> {
        Ok(Wish::Leave {
            whom: self.recipients(rooms_max)?,
            rooms: names(rooms, rooms_max)?,
        })
    }

    fn disconnect(self, is_connection: bool, rooms_max: usize) -> Result<Wish, PacketError> {
        Ok(Wish::Disconnect {
            whom: self.recipients(rooms_max)?,
            is_connection,
        })
    }

    fn recipients(self, rooms_max: usize) -> Result<Recipients, PacketError> {
        Ok(Recipients {
            rooms: names(self.rooms, rooms_max)?,
            except: names(self.except, rooms_max)?,
        })
    }
}

fn names(rooms: Vec<Name>, rooms_max: usize) -> Result<Vec<String>, PacketError> {
    if rooms.len() > rooms_max {
        let rooms = rooms.len();
        return Err(PacketError::Rooms { rooms, rooms_max });
    }
    Ok(rooms.into_iter().map(|Name(name)| name).collect())
}

fn from_message_pack<'de, T: Deserialize<'de>>(
    bytes: &'de [u8],
) -> Result<T, rmp_serde::decode::Error> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    deserializer.set_max_depth(DEPTH_MAX);
    T::deserialize(&mut deserializer)
}

/// Returns whether a value of MessagePack that begins with this byte is a map.
const fn is_map(byte: u8) -> bool {
    matches!(byte, 0x80..=0x8f | 0xde | 0xdf)
}

#[cfg(test)]
mod tests;
