//! Names of channels and keys in Redis. No two channels share a name or a key.
//!
//! A channel's keys are in the same slot as the channel. The keys of `NAME` are
//! - `linerate.meta.{NAME}`, `linerate.stream.{NAME}` and `linerate.answer.{NAME}.KEY` if `NAME`
//!   has no brace, and
//! - `linerate.meta:{TAG}NAME`, `linerate.stream:{TAG}NAME` and
//!   `linerate.answer:{TAG}LENGTH.NAME.KEY` if it has one. `TAG` has no `}`, so the text after the
//!   first `}` begins with `NAME` or with its length, whatever `NAME` contains.

use linerate_hub::ChannelName;

use super::{
    cluster::{hash_tag, number_in, slot},
    leases::Family,
};

/// The prefix of the names that only nodes use among themselves.
const OWN: &str = "linerate.";

/// Returns the Redis names of channels and keys.
#[derive(Clone, Debug)]
pub(super) struct Names {
    prefix: String,
    /// The prefix for patterns, escaped so that it has no special meaning.
    escaped_prefix: String,
}

/// The keys of a durable channel.
#[derive(Debug)]
pub(super) struct StreamKeys {
    pub(super) meta: String,
    pub(super) stream: String,
}

/// A durable channel in Redis.
#[derive(Debug)]
pub(super) struct DurableKeys {
    pub(super) keys: StreamKeys,
    /// The keys that earlier versions used, if no other channel had the same ones. Their contents
    /// move to `keys`.
    pub(super) former: Option<StreamKeys>,
}

/// The keys of the leases under which nodes store what ends with them.
#[derive(Debug)]
pub(super) struct LeaseKeys {
    pub(super) current: String,
    pub(super) ended: String,
    pub(super) run: String,
}

impl Names {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            escaped_prefix: literal(prefix),
        }
    }

    /// Returns the Redis name of a channel, or `None` if it would be one of our own names.
    pub(super) fn channel(&self, channel: &ChannelName) -> Option<String> {
        let is_own = channel.as_str().starts_with(OWN);
        (!is_own).then(|| format!("{}{channel}", self.prefix))
    }

    /// Returns the Redis name of a pattern.
    pub(super) fn pattern(&self, pattern: &ChannelName) -> String {
        format!("{}{pattern}", self.escaped_prefix)
    }

    /// Returns the name of the channel in which nodes talk to one node, or to all of them.
    pub(super) fn control(&self, to: Option<&str>) -> String {
        match to {
            Some(node) => format!("{}{OWN}control.{node}", self.prefix),
            None => format!("{}{OWN}control", self.prefix),
        }
    }

    /// Returns the keys of the registry: the nodes by the time of their last beat, and their
    /// details.
    pub(super) fn registry(&self) -> (String, String) {
        let key = |what| format!("{OWN}{what}:{{nodes}}{}", self.prefix);
        (key("nodes"), key("node-details"))
    }

    /// Returns the keys of the values that nodes store for each other: the values by id, and their
    /// expiry times.
    pub(super) fn kept(&self) -> (String, String) {
        let key = |what| format!("{OWN}{what}:{{kept}}{}", self.prefix);
        (key("kept"), key("kept-until"))
    }

    /// Returns the key of a value that any node can take.
    pub(super) fn deposit(&self, key: &str) -> String {
        format!("{OWN}deposit:{}{key}", self.prefix)
    }

    /// Returns the keys of the leases under which nodes store entries in a shard.
    pub(super) fn leases(&self, family: Family, shard: u16) -> LeaseKeys {
        let tag = tag_of(family);
        let key = |what| format!("{OWN}{what}:{{{tag}{shard}}}{}", self.prefix);
        LeaseKeys {
            current: key("leases"),
            ended: key("ended-leases"),
            run: key("run"),
        }
    }

    /// Returns the key of what is stored in a shard under a lease.
    pub(super) fn entries(&self, family: Family, shard: u16, lease: &str) -> String {
        let tag = tag_of(family);
        format!("{OWN}entries:{{{tag}{shard}}}{}{lease}", self.prefix)
    }

    /// Returns the key of the leases that occupy a name.
    pub(super) fn occupants(&self, shard: u16, name: &str) -> String {
        let tag = tag_of(Family::Occupancy);
        format!("{OWN}occupants:{{{tag}{shard}}}{}{name}", self.prefix)
    }

    /// Returns the keys of the clients and the users that are present in the channel with the Redis
    /// name `name`.
    pub(super) fn present(&self, shard: u16, name: &str) -> (String, String) {
        let key = |what| format!("{OWN}{what}:{{p{shard}}}{name}");
        (key("present"), key("present-users"))
    }

    /// Returns the name of the channel in which a link of a node publishes to itself. Different
    /// numbers are in different slots.
    pub(super) fn probe(&self, node: &str, number: u32) -> String {
        format!("{}{OWN}probe.{node}.{number}", self.prefix)
    }

    /// Returns the channel in which messages of this Redis name were published. `None` if it is one
    /// of our own, or if its name is not a valid channel name.
    pub(super) fn source(&self, name: &[u8]) -> Option<ChannelName> {
        let name = std::str::from_utf8(name).ok()?;
        let name = name.strip_prefix(&self.prefix)?;
        ChannelName::new(name)
            .ok()
            .filter(|name| !name.as_str().starts_with(OWN))
    }

    /// Returns whether a name is one of those that nodes use among themselves.
    pub(super) fn is_own(&self, name: &[u8]) -> bool {
        let rest = name.strip_prefix(self.prefix.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(OWN.as_bytes()))
    }

    /// Returns the keys of the stream of a channel with the Redis name `name`.
    pub(super) fn durable_keys(&self, name: &str) -> DurableKeys {
        let keys = match tag(name) {
            None => StreamKeys::new(|what| unbraced(name, what)),
            Some(tag) => StreamKeys::new(|what| format!("{OWN}{what}:{{{tag}}}{name}")),
        };
        DurableKeys {
            keys,
            former: former(name),
        }
    }

    /// Returns the key of the answer to a publication with an idempotency key.
    pub(super) fn answer(&self, name: &str, key: &str) -> String {
        match tag(name) {
            None => format!("{OWN}answer.{{{name}}}.{key}"),
            Some(tag) => format!("{OWN}answer:{{{tag}}}{}.{name}.{key}", name.len()),
        }
    }
}

impl StreamKeys {
    fn new(key: impl Fn(&str) -> String) -> Self {
        Self {
            meta: key("meta"),
            stream: key("stream"),
        }
    }
}

/// Returns how the hash tags of the shards of a family begin.
const fn tag_of(family: Family) -> char {
    match family {
        Family::Occupancy => 'o',
        Family::Presence => 'p',
    }
}

/// Returns a pattern that only this text matches.
pub fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern
}

/// Returns a hash tag in the slot of `name`, or `None` if `name` has no brace and can be a hash tag
/// itself.
fn tag(name: &str) -> Option<String> {
    if !name.contains(['{', '}']) {
        return None;
    }
    Some(match hash_tag(name.as_bytes()) {
        Some(range) => name[range].to_owned(),
        None if !name.contains('}') => name.to_owned(),
        None => number_in(slot(name.as_bytes())).to_string(),
    })
}

/// Returns a key in the slot of `name`, which has no brace. For a few names, no hash tag is needed
/// for that.
fn unbraced(name: &str, what: &str) -> String {
    let plain = format!("{OWN}{what}.{name}");
    match slot(plain.as_bytes()) == slot(name.as_bytes()) {
        true => plain,
        false => format!("{OWN}{what}.{{{name}}}"),
    }
}

/// Returns the keys that earlier versions used for a name with a hash tag. The keys of `{x}` were
/// also those of `x`, so it is unknown whose history they hold.
fn former(name: &str) -> Option<StreamKeys> {
    hash_tag(name.as_bytes())?;
    let is_ambiguous = name.starts_with('{') && name.ends_with('}');
    (!is_ambiguous).then(|| StreamKeys::new(|what| format!("{OWN}{what}.{name}")))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use linerate_hub::ChannelName;
    use proptest::prelude::*;

    use super::{DurableKeys, Names};
    use crate::redis::cluster::slot;

    fn name(text: &str) -> ChannelName {
        ChannelName::new(text).unwrap()
    }

    #[test]
    fn a_channel_keeps_its_name_unless_there_is_a_prefix() {
        let bare = Names::new("");
        assert_eq!(bare.channel(&name("ticks")).unwrap(), "ticks");
        let names = Names::new("app[1].");
        assert_eq!(names.channel(&name("ticks")).unwrap(), "app[1].ticks");
        assert_eq!(names.pattern(&name("t*")), "app\\[1\\].t*");
        assert_eq!(names.source(b"app[1].ticks"), Some(name("ticks")));
        assert_eq!(names.source(b"ticks"), None);
        assert_eq!(names.source(b"app[1].a b"), None);
        assert_eq!(names.source(b"app[1].\xff"), None);
    }

    #[test]
    fn internal_channels_do_not_collide_with_others() {
        let names = Names::new("p.");
        let control = names.control(None);
        assert!(names.is_own(control.as_bytes()));
        assert_eq!(names.source(control.as_bytes()), None);
        assert_eq!(names.channel(&name("linerate.control")), None);
        assert!(!names.is_own(b"linerate.control"));
    }

    #[test]
    fn ordinary_names_keep_their_former_keys() {
        let stored = Names::new("").durable_keys("ticks:AAPL");
        assert_eq!(stored.keys.meta, "linerate.meta.{ticks:AAPL}");
        assert_eq!(stored.keys.stream, "linerate.stream.{ticks:AAPL}");
        assert!(stored.former.is_none());
    }

    #[test]
    fn history_of_a_formerly_ambiguous_name_is_not_adopted() {
        let names = Names::new("");
        for name in ["{x}", "{a}b{c}", "a{b", "{a{b}", "{}x", "a}b"] {
            assert!(names.durable_keys(name).former.is_none(), "{name}");
        }
        let former = names.durable_keys("{user}.chat").former.unwrap();
        assert_eq!(former.meta, "linerate.meta.{user}.chat");
    }

    #[test]
    fn keys_are_in_the_slot_of_their_channel() {
        let names = Names::new("");
        for channel in [
            "ticks", "a{b}c", "{x}", "a{b", "a}b", "{}x", "{}", "}{", "ünï",
        ] {
            assert_in_slot(&names, channel, "k}{");
        }
    }

    fn assert_in_slot(names: &Names, channel: &str, key: &str) {
        for key in keys(names, channel, key) {
            assert_eq!(slot(key.as_bytes()), slot(channel.as_bytes()), "{key}");
        }
    }

    /// Returns all keys of a channel, including those that it may take over.
    fn keys(names: &Names, channel: &str, key: &str) -> Vec<String> {
        let DurableKeys { keys, former } = names.durable_keys(channel);
        let mut all = vec![keys.meta, keys.stream, names.answer(channel, key)];
        all.extend(former.into_iter().flat_map(|keys| [keys.meta, keys.stream]));
        all
    }

    /// Names made of characters that have a meaning to Redis or to us, so that two of them often
    /// differ only a little.
    fn arbitrary() -> impl Strategy<Value = String> {
        const PARTS: &[&str] = &[
            "{",
            "}",
            "{}",
            ".",
            ":",
            "*",
            "?",
            "[",
            "]",
            "\\",
            "a",
            "b",
            "ü",
            "1",
            "linerate.",
            "meta.",
            "stream.",
            "answer.",
            "private:room",
        ];
        let part = prop::sample::select(PARTS);
        prop::collection::vec(part, 1..7).prop_map(|parts| parts.concat())
    }

    /// Pairs of names, many of which differ only in what surrounds one of them.
    fn pair() -> impl Strategy<Value = (String, String)> {
        let related = (arbitrary(), 0..7_usize).prop_map(|(a, how)| {
            let b = match how {
                0 => format!("{{{a}}}"),
                1 => format!("{{{{{a}}}}}"),
                2 => format!("{{{a}}}{a}"),
                3 => format!("linerate.meta.{a}"),
                4 => format!("{a}."),
                5 => format!("{}.{a}", a.len()),
                _ => format!("{{{a}}}.{a}"),
            };
            (a, b)
        });
        prop_oneof![(arbitrary(), arbitrary()), related]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn no_name_reaches_the_keys_of_another(
            (a, b) in pair(),
            key_a in arbitrary(),
            key_b in arbitrary(),
            prefix in prop_oneof![Just(String::new()), arbitrary()],
        ) {
            let names = Names::new(&prefix);
            let [Some(called_a), Some(called_b)] = [&a, &b].map(|text| names.channel(&name(text))) else {
                return Ok(());
            };
            assert_in_slot(&names, &called_a, &key_a);
            prop_assert_eq!(names.source(called_a.as_bytes()), Some(name(&a)));
            prop_assert!(!names.is_own(called_a.as_bytes()));
            prop_assert!(called_a != names.control(None) && called_a != names.probe("n", 1));
            let of_a = keys(&names, &called_a, &key_a);
            prop_assert_eq!(HashSet::<&String>::from_iter(&of_a).len(), of_a.len());
            if a != b {
                prop_assert_ne!(&called_a, &called_b);
                let of_b = keys(&names, &called_b, &key_b);
                prop_assert!(of_a.iter().all(|key| !of_b.contains(key)), "{:?} {:?}", of_a, of_b);
            } else if key_a != key_b {
                prop_assert_ne!(names.answer(&called_a, &key_a), names.answer(&called_a, &key_b));
            }
        }

        #[test]
        fn the_name_of_a_pattern_is_not_a_channel_name(a in arbitrary(), b in arbitrary(), prefix in arbitrary()) {
            let globs = ['*', '?', '['];
            let (pattern, channel) = (name(&format!("{a}*")), name(&format!("c{}", b.replace(globs, ""))));
            let names = Names::new(&prefix);
            prop_assert_ne!(Some(names.pattern(&pattern)), names.channel(&channel));
        }

        #[test]
        fn keys_of_any_text_are_in_its_slot(bytes in "\\PC{1,40}", key in "\\PC{0,10}") {
            let names = Names::new("");
            assert_in_slot(&names, &bytes, &key);
        }
    }
}
