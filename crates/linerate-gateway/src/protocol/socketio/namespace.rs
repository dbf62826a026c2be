//! Which channels belong to a namespace: a room of the main namespace `/` is the channel of this
//! name, and a room of another namespace such as `/chat` is the channel `/chat:room`.

use std::borrow::Cow;

use linerate_hub::ChannelName;

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

/// Returns the name of the channel of all clients in a namespace: `/:`, or `/chat:`.
pub(crate) fn everyone(namespace: &str) -> String {
    format!("{namespace}:")
}

/// Returns the channel of a room; `None` if no client can be in it.
pub(crate) fn channel(namespace: &str, room: &str) -> Option<ChannelName> {
    let channel = ChannelName::new(&qualified(namespace, room)).ok()?;
    // A room of the main namespace could have the name of a room of another one.
    let is_same = split(channel.as_str()) == (namespace, room);
    is_same.then_some(channel)
}

#[cfg(test)]
mod tests {
    use super::{channel, everyone, qualified, split};

    #[test]
    fn a_room_is_a_channel_of_its_own_namespace() {
        let name = |namespace, room| channel(namespace, room).map(|one| one.to_string());
        assert_eq!(name("/", "user:7").as_deref(), Some("user:7"));
        assert_eq!(name("/chat", "lobby").as_deref(), Some("/chat:lobby"));
        assert_eq!(name("/", "/chat:lobby"), None);
        assert_eq!(name("/", ""), None);
        assert_eq!(name("/", "a b"), None);
    }

    #[test]
    fn all_clients_of_a_namespace_have_a_channel_there() {
        for namespace in ["/", "/chat"] {
            assert_eq!(split(&everyone(namespace)).0, namespace);
        }
    }

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
