//! Tests of the protocol of Pusher.

pub(crate) mod api;
mod backends;
mod cache;
mod channels;
pub(crate) mod client;
mod client_events;
mod connections;
mod presence;
mod subscription_counts;
mod users;

/// The app, with client events, on a server where clients may subscribe to public channels.
pub(crate) const APP: &str = "
[protocols]
pusher = true
[pusher]
app_id = \"7\"
key = \"app-key\"
secret = \"the secret of the app\"
client_events = true
";
