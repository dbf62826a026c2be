//! What channels and keys are called in Redis.

use linerate_hub::ChannelName;

use super::cluster::slot;

/// Stands before the names of what only nodes use among themselves.
const OWN: &str = "linerate.";

/// Says how channels and keys are called.
#[derive(Clone, Debug)]
pub(super) struct Names {
    prefix: String,
    /// The prefix, for patterns, in which it must not have any special meaning.
    escaped_prefix: String,
}

/// The keys of a durable channel.
#[derive(Debug)]
pub(super) struct StreamKeys {
    pub(super) meta: String,
    pub(super) stream: String,
}

impl Names {
    pub(super) fn new(prefix: &str) -> Self {
        let mut escaped_prefix = String::new();
        for char in prefix.chars() {
            if matches!(char, '*' | '?' | '[' | ']' | '\\') {
                escaped_prefix.push('\\');
            }
            escaped_prefix.push(char);
        }
        Self {
            prefix: prefix.to_owned(),
            escaped_prefix,
        }
    }

    /// Returns what a channel is called; `None` for a name that would be taken for one of our own.
    pub(super) fn channel(&self, channel: &ChannelName) -> Option<String> {
        let is_own = channel.as_str().starts_with(OWN);
        (!is_own).then(|| format!("{}{channel}", self.prefix))
    }

    /// Returns what a pattern is called.
    pub(super) fn pattern(&self, pattern: &ChannelName) -> String {
        format!("{}{pattern}", self.escaped_prefix)
    }

    /// Returns the channel in which nodes talk.
    pub(super) fn control(&self) -> String {
        format!("{}{OWN}control", self.prefix)
    }

    /// Returns the channel in which a link of a node listens to itself. Other numbers lie in other slots.
    pub(super) fn probe(&self, node: &str, number: u32) -> String {
        format!("{}{OWN}probe.{node}.{number}", self.prefix)
    }

    /// Returns the channel that messages of this name were published in; `None` if it is one of our own, or its
    /// name can't be one here.
    pub(super) fn source(&self, name: &[u8]) -> Option<ChannelName> {
        let name = std::str::from_utf8(name).ok()?;
        let name = name.strip_prefix(&self.prefix)?;
        ChannelName::new(name)
            .ok()
            .filter(|name| !name.as_str().starts_with(OWN))
    }

    /// Says whether a name is one of those that nodes use among themselves.
    pub(super) fn is_own(&self, name: &[u8]) -> bool {
        let rest = name.strip_prefix(self.prefix.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(OWN.as_bytes()))
    }

    /// Returns the keys of the stream of a channel that is called `name`.
    pub(super) fn stream(&self, name: &str) -> StreamKeys {
        StreamKeys {
            meta: beside(name, "meta"),
            stream: beside(name, "stream"),
        }
    }

    /// Returns where the answer to a publication with an idempotency key is kept.
    pub(super) fn answer(&self, name: &str, key: &str) -> String {
        format!("{}.{key}", beside(name, "answer"))
    }
}

/// Returns a key in the slot of `name`: by the name's own hash tag, if it has one, or by making it one.
///
/// There is none for a name without a hash tag that holds `}`; a cluster refuses its stream.
fn beside(name: &str, what: &str) -> String {
    let plain = format!("{OWN}{what}.{name}");
    match slot(plain.as_bytes()) == slot(name.as_bytes()) {
        true => plain,
        false => format!("{OWN}{what}.{{{name}}}"),
    }
}

#[cfg(test)]
mod tests {
    use linerate_hub::ChannelName;

    use super::Names;
    use crate::redis::cluster::slot;

    fn name(text: &str) -> ChannelName {
        ChannelName::new(text).unwrap()
    }

    #[test]
    fn a_channel_is_called_as_it_is_unless_there_is_a_prefix() {
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
    fn our_own_channels_are_nobody_elses() {
        let names = Names::new("p.");
        let control = names.control();
        assert!(names.is_own(control.as_bytes()));
        assert_eq!(names.source(control.as_bytes()), None);
        assert_eq!(names.channel(&name("linerate.control")), None);
        assert!(!names.is_own(b"linerate.control"));
    }

    #[test]
    fn keys_lie_in_the_slot_of_their_channel() {
        let names = Names::new("");
        for channel in ["ticks", "a{b}c", "{x}", "a{b", "ünï"] {
            let keys = names.stream(channel);
            for key in [keys.meta, keys.stream, names.answer(channel, "k}{")] {
                assert_eq!(slot(key.as_bytes()), slot(channel.as_bytes()), "{key}");
            }
        }
    }
}
