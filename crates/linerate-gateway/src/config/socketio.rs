//! `[socketio]`: the namespaces of Socket.IO clients, and their limits.

mod redis;

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use linerate_broker::PUT_TTL_MAX;
use linerate_hub::ChannelName;
use serde::{Deserialize, de::IgnoredAny};

use super::{check::Check, unit};
pub use redis::SocketIoRedisOptions;

/// Maximum number of namespaces: a client can be connected to all of them.
const NAMESPACES_MAX: usize = 64;

/// Maximum number of channels that every client is subscribed to.
const ROOMS_MAX: usize = 64;

/// Maximum number of replies.
const REPLIES_MAX: usize = 1_024;

/// The namespaces of Socket.IO clients, and their limits.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SocketIoOptions {
    /// The namespaces that clients may connect to, such as `/` and `/chat`.
    pub namespaces: Vec<String>,
    /// The channels that every client is subscribed to in the namespaces it connects to.
    #[serde(default)]
    pub rooms: Vec<String>,
    /// Maximum number of attachments of an event from a client.
    pub attachments_max: usize,
    /// How long a client may be gone and return to its session, with what it has missed. Zero
    /// switches this off.
    #[serde(rename = "recovery_s", with = "unit::seconds")]
    pub recovery: Duration,
    /// The arguments with which events are acknowledged without asking a backend: a JSON array for
    /// each name of an event; in a namespace such as `/chat`, the name begins with `/chat:`.
    #[serde(default)]
    pub replies: BTreeMap<String, String>,
    /// The Redis in which Socket.IO's own server and emitter publish.
    pub redis: SocketIoRedisOptions,
}

impl SocketIoOptions {
    pub(super) fn check(&self, check: &mut Check) {
        check.range("attachments_max", self.attachments_max, 0..=1_000);
        check.range("namespaces", self.namespaces.len(), 1..=NAMESPACES_MAX);
        let mut names = HashSet::new();
        for name in &self.namespaces {
            let is_printable = name.bytes().all(|byte| byte.is_ascii_graphic());
            if !name.starts_with('/') || !is_printable || name.contains([':', ',', '?', '*', '[']) {
                let because = "must begin with a slash and contain only printable ASCII characters \
                               other than : , ? * [";
                check.refuse("namespaces", name, because);
            }
            if !names.insert(name) {
                check.refuse("namespaces", name, "is in the list twice");
            }
        }
        check.range("rooms", self.rooms.len(), 0..=ROOMS_MAX);
        for room in &self.rooms {
            if let Err(error) = ChannelName::new(room) {
                check.refuse("rooms", room, &error.to_string());
            }
        }
        let recovery = self.recovery.as_secs();
        check.range("recovery_s", recovery, 0..=PUT_TTL_MAX.as_secs());
        if recovery > 0 && self.redis.url.is_some() {
            let because = "requires that socketio.redis.url is not set: what is published there \
                           cannot be recovered";
            check.refuse("recovery_s", recovery, because);
        }
        check.section("redis", |check| self.redis.check(check));
        check.range("replies", self.replies.len(), 0..=REPLIES_MAX);
        check.section("replies", |check| {
            for (name, reply) in &self.replies {
                if serde_json::from_str::<Vec<IgnoredAny>>(reply).is_err() {
                    check.refuse(name, reply, "must be a JSON array of arguments");
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Loader;

    fn error(toml: &str) -> String {
        let loaded = Loader::new().with_text("test.toml", toml).load();
        loaded.unwrap_err().to_string()
    }

    #[test]
    fn names_of_namespaces_are_checked() {
        for name in ["", "chat", "/a:b", "/a,b", "/a?b", "/a b", "/a*", "/ü"] {
            let text = error(&format!("[socketio]\nnamespaces = [{name:?}]"));
            assert!(text.contains("socketio.namespaces"), "{text}");
        }
        let text = error("[socketio]\nnamespaces = [\"/\", \"/\"]");
        assert!(text.contains("twice"), "{text}");
        let text = error("[socketio]\nnamespaces = []");
        assert!(text.contains("between 1 and 64"), "{text}");
    }

    #[test]
    fn rooms_are_channels() {
        let text = error("[socketio]\nrooms = [\"news\", \"a b\"]");
        assert!(text.contains("socketio.rooms = a b"), "{text}");
    }

    #[test]
    fn what_is_read_from_redis_is_checked() {
        for (toml, message) in [
            ("key = \"\"", "socketio.redis.key"),
            (
                "streams = [\"a\", \"a\"]",
                "socketio.redis.streams = a is in",
            ),
            ("streams = [\"\"]", "socketio.redis.streams"),
            ("packet_bytes_max = 1", "between 1024 and 67108864"),
            ("rooms_max = 0", "between 1 and 100000"),
        ] {
            let text = error(&format!("[socketio.redis]\n{toml}"));
            assert!(text.contains(message), "{text}");
        }
    }

    #[test]
    fn recovery_has_a_limit_and_no_events_from_redis() {
        let load = |toml| Loader::new().with_text("test.toml", toml).load();
        assert!(load("[socketio]\nrecovery_s = 3600").is_ok());
        let text = error("[socketio]\nrecovery_s = 3601");
        assert!(text.contains("between 0 and 3600"), "{text}");
        let redis = "[socketio.redis]\nurl = \"redis://localhost\"";
        assert!(load(redis).is_ok());
        let text = error(&format!("[socketio]\nrecovery_s = 1\n{redis}"));
        assert!(text.contains("socketio.recovery_s"), "{text}");
    }

    #[test]
    fn replies_are_arrays() {
        let toml = "[socketio.replies]\nsaved = '[\"ok\"]'";
        let config = Loader::new().with_text("test.toml", toml).load().unwrap();
        assert_eq!(config.socketio.replies["saved"], "[\"ok\"]");
        for reply in ["", "1", "{}", "["] {
            let text = error(&format!("[socketio.replies]\nsaved = {reply:?}"));
            assert!(text.contains("socketio.replies.saved"), "{text}");
        }
    }
}
