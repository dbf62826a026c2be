//! Any bytes as packets of Socket.IO's emitter and adapters.

use crate::source::socketio::fuzzing::packet;

/// Reads `data` as a packet in Redis.
pub fn emitter(data: &[u8]) {
    packet(data);
}
