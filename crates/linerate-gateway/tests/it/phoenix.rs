//! Tests of the protocol of Phoenix Channels.

mod broadcasts;
mod client;
mod connections;
mod hostile;
mod joins;
mod longpoll;
mod longpoll_client;
mod longpoll_hostile;
mod presence;
mod pushes;

const ON: &str = "[protocols]\nphoenix = true\n";
