//! The options of channels whose names mean something to Pusher clients.
//!
//! Such a name means the same to the clients of all protocols: otherwise they could read a private
//! channel without the signature that Pusher clients need.

use linerate_hub::ChannelName;

use super::{ChannelOptions, Config, PusherAccess, PusherKind};

/// The options of the channels of a namespace.
#[derive(Clone, Debug)]
pub(super) struct Variants {
    plain: ChannelOptions,
    /// `None` if the protocol of Pusher is switched off.
    pusher: Option<Box<PusherVariants>>,
}

#[derive(Clone, Debug)]
struct PusherVariants {
    public: Pair,
    private: Pair,
    presence: Pair,
}

/// The options of channels of one kind.
#[derive(Clone, Debug)]
struct Pair {
    plain: ChannelOptions,
    cached: ChannelOptions,
}

impl Variants {
    pub(super) fn new(options: &ChannelOptions, config: &Config) -> Self {
        let is_on = config.protocols.pusher;
        Self {
            plain: options.clone(),
            pusher: is_on.then(|| Box::new(PusherVariants::new(options, config))),
        }
    }

    /// Returns the options of a channel whose name means nothing to Pusher clients.
    pub(super) const fn plain(&self) -> &ChannelOptions {
        &self.plain
    }

    /// Returns the options of a channel.
    pub(super) fn of(&self, channel: &ChannelName) -> &ChannelOptions {
        let Some(pusher) = &self.pusher else {
            return &self.plain;
        };
        let kind = PusherKind::of(channel.as_str());
        let pair = match kind.access {
            PusherAccess::Public => &pusher.public,
            PusherAccess::Presence => &pusher.presence,
            PusherAccess::Encrypted | PusherAccess::Private | PusherAccess::User => &pusher.private,
        };
        match kind.is_cached {
            true => &pair.cached,
            false => &pair.plain,
        }
    }
}

impl PusherVariants {
    fn new(options: &ChannelOptions, config: &Config) -> Self {
        let private = ChannelOptions {
            allow_subscribe: false,
            allow_publish: false,
            ..options.clone()
        };
        let presence = ChannelOptions {
            presence: true,
            join_leave: true,
            ..private.clone()
        };
        Self {
            public: Pair::new(options.clone(), config),
            private: Pair::new(private, config),
            presence: Pair::new(presence, config),
        }
    }
}

impl Pair {
    fn new(plain: ChannelOptions, config: &Config) -> Self {
        // The broker stores the last event, because a node without subscribers does not receive it.
        let cached = ChannelOptions {
            durable: true,
            history_size: plain.history_size.max(1),
            history_ttl: config.pusher.cache_ttl,
            ..plain.clone()
        };
        Self { plain, cached }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_hub::ChannelName;

    use crate::config::{ChannelOptions, Loader, Namespaces};

    const PUSHER: &str = "
[protocols]
pusher = true
[pusher]
app_id = \"1\"
key = \"key\"
secret = \"0123456789abcdef\"
cache_ttl_s = 60
";

    fn options(toml: &str, channel: &str) -> ChannelOptions {
        let config = Loader::new().with_text("test.toml", toml).load().unwrap();
        let channel = ChannelName::new(channel).unwrap();
        Namespaces::new(&config).options(&channel).clone()
    }

    #[test]
    fn private_channels_are_closed_to_all_protocols() {
        for channel in [
            "private-a",
            "presence-a",
            "#server-to-user-7",
            "private-demo:a",
        ] {
            let closed = options(PUSHER, channel);
            assert!(
                !closed.allow_subscribe && !closed.allow_publish,
                "{channel}"
            );
            assert!(options("", channel).allow_subscribe, "{channel}");
        }
        assert!(options(PUSHER, "news").allow_subscribe);
        assert!(options(PUSHER, "demo:a").allow_publish);
    }

    #[test]
    fn presence_channels_have_presence() {
        let toml = format!("{PUSHER}[channel]\npresence = false\n");
        let presence = options(&toml, "presence-room");
        assert!(presence.presence && presence.join_leave);
        assert!(!options(&toml, "private-room").presence);
    }

    #[test]
    fn cache_channels_store_their_last_event() {
        let toml = format!("{PUSHER}[channel]\nhistory_size = 0\n");
        for channel in ["cache-a", "private-cache-a", "presence-cache-a"] {
            let cached = options(&toml, channel);
            let stored = (cached.durable, cached.history_size, cached.history_ttl);
            assert_eq!(stored, (true, 1, Duration::from_secs(60)), "{channel}");
        }
        assert_eq!(options(&toml, "news").history_size, 0);
    }
}
