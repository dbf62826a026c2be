//! What the user wants to happen on the connection.

use linerate::{CloseCode, Message};

#[derive(Debug, PartialEq)]
pub(super) enum Action {
    /// Closes the connection with at most 123 bytes as the reason.
    Close {
        code: CloseCode,
        reason: String,
    },
    /// Sends a Ping with this payload, at most 125 bytes, and shows how long its Pong took.
    Ping(String),
    Send(Message),
    /// Sends the content of a file and shows the progress.
    SendFile {
        name: String,
        message: Message,
    },
}
