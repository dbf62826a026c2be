//! Tests of the protocol of Socket.IO.

mod client;
mod connections;
mod events;
mod hostile;
mod polling;
mod polling_client;
mod polling_hostile;
mod polling_upgrade;
mod recovery;
mod recovery_hostile;
mod redis;
mod returning;
mod rooms;

/// A server with two namespaces, in both of which every client is in a room.
const ON: &str = "
[protocols]
socketio = true
[socketio]
namespaces = [\"/\", \"/chat\"]
rooms = [\"all\", \"/chat:all\"]
";
