//! Which channels belong to a namespace: a room of the main namespace `/` is the channel of this
//! name, and a room of another namespace such as `/chat` is the channel `/chat:room`.

use std::borrow::Cow;

/// The main namespace.
pub(crate) const MAIN: &str = "/";

/// Returns the namespace and the room that a channel stands for.
pub(crate) fn split(channel: &str) -> (&str, &str) {
    match channel.split_once(':') {
        Some((namespace, room)) if namespace.len() > 1 && namespace.starts_with('/') => {
            (namespace, room)
        }
        _ => (MAIN, channel),
    }
}

/// Returns a name with its namespace: of the channel of a room, or of the method of an event.
pub(crate) fn qualified<'a>(namespace: &str, name: &'a str) -> Cow<'a, str> {
    match namespace {
        MAIN => Cow::Borrowed(name),
        namespace => Cow::Owned(format!("{namespace}:{name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{qualified, split};

    #[test]
    fn a_channel_names_its_namespace() {
        for (channel, namespace, room) in [
            ("news", "/", "news"),
            ("user:7", "/", "user:7"),
            ("/chat:lobby", "/chat", "lobby"),
            ("/chat:user:7", "/chat", "user:7"),
            ("/a/b:c", "/a/b", "c"),
            ("/chat:", "/chat", ""),
        ] {
            assert_eq!(split(channel), (namespace, room));
            assert_eq!(qualified(namespace, room), channel);
        }
    }

    #[test]
    fn a_slash_without_a_namespace_belongs_to_the_room() {
        for channel in ["/chat", "/:a", ""] {
            assert_eq!(split(channel), ("/", channel));
        }
    }
}
