//! What fuzzers call.

use crate::{folder::name, message::ClientMessage};

/// Parses a text message of a client, and checks the name of the file that it announces.
pub fn read_message(text: &str) {
    let Ok(message) = ClientMessage::parse(text) else {
        return;
    };
    if let ClientMessage::Start { name, .. } | ClientMessage::Resume { name, .. } = message {
        check_name(&name);
    }
}

/// Checks that a name which is accepted refers to a file in the folder itself.
///
/// # Panics
/// Panics if the name could refer to another place.
pub fn check_name(name: &str) {
    if name::check(name).is_ok() {
        let path = std::path::Path::new("folder").join(name);
        assert_eq!(path.parent(), Some(std::path::Path::new("folder")));
        assert!(!name.contains(['/', '\\', '\0']) && name != ".." && name.len() <= 255);
    }
}
