//! The kinds of channels of Pusher clients, which the names of channels begin with.

/// What the name of a channel means to Pusher clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PusherKind {
    /// Who may subscribe.
    pub(crate) access: PusherAccess,
    /// True if a new subscriber gets the last event of the channel.
    pub(crate) is_cached: bool,
}

/// Who may subscribe to a channel of Pusher clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PusherAccess {
    /// Clients with a signature. Only clients can read the data.
    Encrypted,
    /// Clients with a signature that names their user; others see who is present.
    Presence,
    /// Clients with a signature.
    Private,
    /// Those that the options of the channel allow.
    Public,
    /// The clients of the user that the name of the channel ends with.
    User,
}

/// The prefix of the channels for the events of a user.
const USER: &str = "#server-to-user-";

impl PusherKind {
    /// Returns the kind of the channel with this name.
    pub(crate) fn of(name: &str) -> Self {
        let prefixes = [
            ("private-encrypted-", PusherAccess::Encrypted),
            ("private-", PusherAccess::Private),
            ("presence-", PusherAccess::Presence),
            (USER, PusherAccess::User),
            ("", PusherAccess::Public),
        ];
        let mut kinds = prefixes
            .into_iter()
            .filter_map(|(prefix, access)| Some((name.strip_prefix(prefix)?, access)));
        let (rest, access) = kinds.next().unwrap_or((name, PusherAccess::Public));
        Self {
            access,
            is_cached: access != PusherAccess::User && rest.starts_with("cache-"),
        }
    }

    /// Returns the user that the channel belongs to, if it is for the events of a user.
    pub(crate) fn user_of(name: &str) -> Option<&str> {
        name.strip_prefix(USER)
    }

    /// Returns whether clients need more than the options of the channel to subscribe.
    pub(crate) fn is_guarded(self) -> bool {
        self.access != PusherAccess::Public
    }
}

#[cfg(test)]
mod tests {
    use super::{PusherAccess, PusherKind};

    #[test]
    fn the_prefix_of_a_name_is_its_kind() {
        for (name, access, is_cached) in [
            ("news", PusherAccess::Public, false),
            ("cache-news", PusherAccess::Public, true),
            ("private", PusherAccess::Public, false),
            ("private-news", PusherAccess::Private, false),
            ("private-cache-news", PusherAccess::Private, true),
            ("private-encrypted-news", PusherAccess::Encrypted, false),
            (
                "private-encrypted-cache-news",
                PusherAccess::Encrypted,
                true,
            ),
            ("presence-room", PusherAccess::Presence, false),
            ("presence-cache-room", PusherAccess::Presence, true),
            ("#server-to-user-cache-7", PusherAccess::User, false),
        ] {
            let kind = PusherKind { access, is_cached };
            assert_eq!(PusherKind::of(name), kind, "{name}");
        }
        assert_eq!(PusherKind::user_of("#server-to-user-7"), Some("7"));
        assert_eq!(PusherKind::user_of("private-7"), None);
    }
}
