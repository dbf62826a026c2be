//! Channel names as NATS subjects, and our own subjects and streams.

use linerate_hub::{ChannelName, ClientInfo};
use sha1_smol::Sha1;

use super::home::Home;

/// The subject on which nodes talk to each other.
const CONTROL: &str = "_linerate.control";

/// The prefix of the subjects on which nodes talk to a single one.
const NODE_CONTROL: &str = "_linerate.node.";

/// The prefix of the subjects of the beats of nodes.
const BEAT: &str = "_linerate.beat.";

/// The prefix of the subjects of entries of presence.
const PRESENCE: &str = "_linerate.presence.";

/// The prefix of the subjects of occupied names.
const OCCUPANCY: &str = "_linerate.occupancy.";

/// The token for leases, where other entries have a digest of their channel, or `names`.
const LEASES: &str = "leases";

/// The prefix of the subjects of durable publications, which streams store.
const STORED: &str = "_linerate.stored.";

/// The prefix of the subjects on which streams republish what they have stored.
const LIVE: &str = "_linerate.published.";

/// The prefix of the subjects of the positions of durable channels.
const POSITIONS: &str = "_linerate.positions.";

/// The number of streams among which durable channels with the same options are distributed.
///
/// A stream is written by one thread of a server, and in a cluster it has one leader, so more
/// streams use more cores and servers. Each costs about 75 KB of memory. A million channels are
/// 62,500 in each stream, which servers search quickly. It is not configurable, because all nodes
/// must agree.
pub(super) const SHARDS: u8 = 16;

/// The prefix of the subjects of values that nodes store for each other.
const KEPT: &str = "_linerate.kept.";

/// The prefix of the subjects of values that any node can take.
const DEPOSITS: &str = "_linerate.deposits.";

/// The number of characters of a subject that its stream's name shows.
const STREAM_NAME_READABLE_MAX: usize = 64;

/// Converts channel names to subjects.
#[derive(Clone, Debug)]
pub(super) struct Subjects {
    prefix: String,
}

/// The reason why a name cannot be a subject.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectError {
    /// A token is empty: between two dots, at the beginning or at the end.
    #[error("channel name must not begin or end with a dot, or contain two dots in a row")]
    EmptyToken,
    /// The prefix does not end with a dot.
    #[error("prefix must end with a dot")]
    PrefixEnd,
    /// The first token is reserved for NATS and for linerate.
    #[error("channel name must not begin with `$` or `_`, which NATS reserves")]
    Reserved,
    /// The pattern would also match internal subjects of NATS.
    #[error("pattern must not begin with a wildcard unless a prefix is configured")]
    TooWide,
    /// A wildcard is where a single channel is required, is only a part of a token, or is a `>`
    /// that is not the last token.
    #[error(
        "`*` and `>` are allowed only in subscriptions, as whole tokens, and `>` only as the last one"
    )]
    Wildcard,
}

impl Subjects {
    /// Checks `prefix`, which is put before every name.
    ///
    /// # Errors
    /// Returns an error if the prefix is neither empty nor a series of tokens that each end with a
    /// dot.
    pub(super) fn new(prefix: &str) -> Result<Self, SubjectError> {
        if !prefix.is_empty() {
            let tokens = prefix.strip_suffix('.').ok_or(SubjectError::PrefixEnd)?;
            check(tokens, Wildcards::Refused)?;
        }
        let prefix = prefix.to_owned();
        Ok(Self { prefix })
    }

    /// Returns the subject of a channel.
    pub(super) fn of_channel(&self, channel: &ChannelName) -> Result<String, SubjectError> {
        self.subject(channel, Wildcards::Refused)
    }

    /// Returns the subject of a channel or a pattern.
    pub(super) fn of_subscription(&self, channel: &ChannelName) -> Result<String, SubjectError> {
        self.subject(channel, Wildcards::Allowed)
    }

    /// Returns the channel of a subject, if the subject has the prefix and is a valid channel name.
    pub(super) fn channel(&self, subject: &str) -> Option<ChannelName> {
        ChannelName::new(subject.strip_prefix(&self.prefix)?).ok()
    }

    /// Returns the subject on which nodes with the same prefix talk to each other.
    pub(super) fn control(&self) -> String {
        match self.prefix.strip_suffix('.') {
            Some(prefix) => format!("{CONTROL}.{prefix}"),
            None => CONTROL.to_owned(),
        }
    }

    /// Returns the subject on which other nodes talk to `node`.
    pub(super) fn node_control(&self, node: &str) -> String {
        format!("{NODE_CONTROL}{}{node}", self.prefix)
    }

    /// Returns the subject of the beats of `node`, or of all nodes.
    pub(super) fn beat(&self, node: Option<&str>) -> String {
        format!("{BEAT}{}{}", self.prefix, node.unwrap_or("*"))
    }

    /// Returns the subject of all occupied names and the leases that occupy them.
    pub(super) fn occupancy(&self) -> String {
        format!("{OCCUPANCY}{}*.*", self.prefix)
    }

    /// Returns the subject of all occupied names.
    pub(super) fn all_occupied(&self) -> String {
        format!("{OCCUPANCY}{}names.*", self.prefix)
    }

    /// Returns the subject of an occupied name.
    pub(super) fn occupied(&self, name: &str) -> String {
        format!("{OCCUPANCY}{}names.{}", self.prefix, &digest(name)[..24])
    }

    /// Returns the subject of a lease that occupies names.
    pub(super) fn occupancy_lease(&self, lease: &str) -> String {
        format!("{OCCUPANCY}{}{LEASES}.{lease}", self.prefix)
    }

    /// Returns the subject of all entries of presence.
    pub(super) fn presence(&self) -> String {
        self.presence_subject("*", "*.*", "*.*")
    }

    /// Returns the subject of the entry of a client in a channel.
    pub(super) fn presence_entry(
        &self,
        channel: &ChannelName,
        node: &str,
        generation: u64,
        info: &ClientInfo,
    ) -> String {
        let (user, client) = (digest(&info.user), digest(&info.client));
        let client = format!("{}.{}", &user[..16], &client[..24]);
        self.presence_subject(
            &channel_token(channel),
            &format!("{node}.{generation}"),
            &client,
        )
    }

    /// Returns the subject of the entries in a channel.
    pub(super) fn presence_in(&self, channel: &ChannelName) -> String {
        self.presence_subject(&channel_token(channel), "*.*", "*.*")
    }

    /// Returns the subject of a lease under which a node stores entries.
    pub(super) fn presence_lease(&self, node: &str, generation: u64) -> String {
        self.presence_subject(LEASES, &format!("{node}.{generation}"), "-.-")
    }

    /// Returns the subject of all leases.
    pub(super) fn presence_leases(&self) -> String {
        self.presence_subject(LEASES, "*.*", "-.-")
    }

    /// Returns the subject of a lease and its entries.
    pub(super) fn presence_of_lease(&self, node: &str, generation: u64) -> String {
        self.presence_subject("*", &format!("{node}.{generation}"), "*.*")
    }

    fn presence_subject(&self, channel: &str, lease: &str, client: &str) -> String {
        format!("{PRESENCE}{}{channel}.{lease}.{client}", self.prefix)
    }

    /// Returns the subject of the value that nodes store under the digest of `id`, or of all values
    /// if `id` is `None`.
    pub(super) fn stored_value(&self, id: Option<&str>) -> String {
        let last = id.map_or("*".to_owned(), digest);
        format!("{KEPT}{}{last}", self.prefix)
    }

    /// Returns the subject of the value that any node can take under the digest of `key`, or of all
    /// such values if `key` is `None`.
    pub(super) fn deposit(&self, key: Option<&str>) -> String {
        let last = key.map_or("*".to_owned(), digest);
        format!("{DEPOSITS}{}{last}", self.prefix)
    }

    fn subject(&self, channel: &ChannelName, wildcards: Wildcards) -> Result<String, SubjectError> {
        let name = channel.as_str();
        check(name, wildcards)?;
        if self.prefix.is_empty() {
            if name.starts_with(['$', '_']) {
                return Err(SubjectError::Reserved);
            }
            if is_wildcard(first_token(name)) {
                return Err(SubjectError::TooWide);
            }
        }
        Ok(format!("{}{name}", self.prefix))
    }
}

/// Returns the shard of the channel with this subject.
pub(super) fn shard(subject: &str) -> u8 {
    Sha1::from(subject).digest().bytes()[0] % SHARDS
}

/// Returns the subject of the publications that the stream of `home` stores for a channel.
pub(super) fn stored(home: Home, subject: &str) -> String {
    format!("{STORED}{home}.{}.{subject}", shard(subject))
}

/// Returns the subject on which the publications of a durable channel are republished.
pub(super) fn live(subject: &str) -> String {
    format!("{LIVE}{}.{subject}", shard(subject))
}

/// Returns the subject of the position of a channel.
pub(super) fn position(subject: &str) -> String {
    format!("{POSITIONS}{}.{subject}", shard(subject))
}

/// Returns the subject on which the publications of all durable channels are republished that a
/// pattern matches.
pub(super) fn live_pattern(pattern: &str) -> String {
    format!("{LIVE}*.{pattern}")
}

/// Returns the channel's subject if `subject` is one on which publications are republished.
pub(super) fn of_live(subject: &str) -> Option<&str> {
    let (_, subject) = subject.strip_prefix(LIVE)?.split_once('.')?;
    Some(subject)
}

/// The subjects of the streams of a shard, for channels with a prefix.
pub(super) struct ShardSubjects<'a> {
    pub(super) prefix: &'a str,
    pub(super) shard: u8,
}

impl ShardSubjects<'_> {
    /// Returns the subjects of what the stream of `home` stores.
    pub(super) fn stored(&self, home: Home) -> String {
        format!("{STORED}{home}.{}.{}>", self.shard, self.prefix)
    }

    /// Returns the subjects on which it is republished.
    pub(super) fn live(&self) -> String {
        format!("{LIVE}{}.{}>", self.shard, self.prefix)
    }

    /// Returns the subjects of positions.
    pub(super) fn positions(&self) -> String {
        format!("{POSITIONS}{}.{}>", self.shard, self.prefix)
    }
}

/// Returns whether `subject` is what a stream of channels with `prefix` stores, of this version or
/// of earlier ones, which had a stream for each channel.
pub(super) fn is_stored(subject: &str, prefix: &str) -> bool {
    let Some(of_shard) = subject.strip_prefix(STORED) else {
        return subject.starts_with(prefix);
    };
    let channels = of_shard.splitn(3, '.').nth(2);
    channels.and_then(|channels| channels.strip_suffix('>')) == Some(prefix)
}

/// Returns the name of the stream of `subject`: a readable part, and a digest that makes it unique.
pub(super) fn stream(subject: &str) -> String {
    let readable = |char: char| match char.is_ascii_alphanumeric() {
        true => char,
        false => '-',
    };
    let chars = subject.chars().take(STREAM_NAME_READABLE_MAX);
    let mut name: String = "linerate-".chars().chain(chars.map(readable)).collect();
    name.push('-');
    name + &digest(subject)[..24]
}

/// Returns the token for a channel in subjects of presence.
fn channel_token(channel: &ChannelName) -> String {
    digest(channel.as_str())[..24].to_owned()
}

/// Returns the SHA-1 digest of `text` in hexadecimal digits.
fn digest(text: &str) -> String {
    Sha1::from(text).digest().to_string()
}

/// Checks that messages can be published on a subject.
pub(super) fn check_subject(subject: &str) -> Result<(), SubjectError> {
    check(subject, Wildcards::Refused)
}

/// Returns whether a name has a token that is a wildcard.
pub(super) fn is_pattern(name: &str) -> bool {
    name.split('.').any(is_wildcard)
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Wildcards {
    Allowed,
    Refused,
}

fn check(name: &str, wildcards: Wildcards) -> Result<(), SubjectError> {
    let mut tokens = name.split('.').peekable();
    while let Some(token) = tokens.next() {
        let is_last = tokens.peek().is_none();
        match token {
            "" => return Err(SubjectError::EmptyToken),
            "*" if wildcards == Wildcards::Allowed => (),
            ">" if wildcards == Wildcards::Allowed && is_last => (),
            _ if token.contains(['*', '>']) => return Err(SubjectError::Wildcard),
            _ => (),
        }
    }
    Ok(())
}

fn is_wildcard(token: &str) -> bool {
    matches!(token, "*" | ">")
}

fn first_token(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use linerate_hub::ChannelName;
    use proptest::prelude::*;

    use super::{
        Home, SHARDS, ShardSubjects, SubjectError, Subjects, is_pattern, is_stored, live,
        live_pattern, of_live, position, shard, stored, stream,
    };

    fn channel(name: &str) -> ChannelName {
        ChannelName::new(name).unwrap()
    }

    #[test]
    fn a_name_is_its_subject() {
        let subjects = Subjects::new("").unwrap();
        for name in ["news", "ticks:AAPL", "ticks.AAPL.1m", "größe", "a-b_c/d"] {
            assert_eq!(subjects.of_channel(&channel(name)).unwrap(), name);
            assert_eq!(subjects.channel(name).unwrap(), channel(name));
        }
    }

    #[test]
    fn a_prefix_precedes_every_name() {
        let subjects = Subjects::new("prod.eu.").unwrap();
        assert_eq!(
            subjects.of_channel(&channel("news")).unwrap(),
            "prod.eu.news"
        );
        assert_eq!(subjects.channel("prod.eu.news").unwrap(), channel("news"));
        assert_eq!(subjects.channel("news"), None);
        assert_eq!(subjects.control(), "_linerate.control.prod.eu");
        assert_eq!(
            subjects.of_subscription(&channel(">")).unwrap(),
            "prod.eu.>"
        );
        assert_eq!(Subjects::new("prod").unwrap_err(), SubjectError::PrefixEnd);
        assert_eq!(Subjects::new(".").unwrap_err(), SubjectError::EmptyToken);
        assert_eq!(Subjects::new("a.*.").unwrap_err(), SubjectError::Wildcard);
    }

    #[test]
    fn names_that_are_not_subjects_are_refused() {
        let subjects = Subjects::new("").unwrap();
        for (name, error) in [
            (".", SubjectError::EmptyToken),
            (".a", SubjectError::EmptyToken),
            ("a.", SubjectError::EmptyToken),
            ("a..b", SubjectError::EmptyToken),
            ("$JS.API.INFO", SubjectError::Reserved),
            ("_INBOX.x", SubjectError::Reserved),
            ("_linerate.control", SubjectError::Reserved),
            ("ticks.*", SubjectError::Wildcard),
            ("ticks.>", SubjectError::Wildcard),
            ("a*b", SubjectError::Wildcard),
        ] {
            assert_eq!(subjects.of_channel(&channel(name)), Err(error), "{name}");
        }
    }

    #[test]
    fn wildcards_are_whole_tokens_of_patterns() {
        let subjects = Subjects::new("").unwrap();
        for name in ["ticks.*", "ticks.>", "ticks.*.1m", "a.*.*.>"] {
            assert!(is_pattern(name));
            assert_eq!(subjects.of_subscription(&channel(name)).unwrap(), name);
        }
        for (name, error) in [
            ("ticks.>.1m", SubjectError::Wildcard),
            ("ticks.A*", SubjectError::Wildcard),
            (">", SubjectError::TooWide),
            ("*.b", SubjectError::TooWide),
            ("_INBOX.>", SubjectError::Reserved),
        ] {
            assert_eq!(
                subjects.of_subscription(&channel(name)),
                Err(error),
                "{name}"
            );
        }
        assert!(!is_pattern("a*b.c"));
    }

    #[test]
    fn names_of_streams_are_legal_and_unique() {
        let long = "x.".repeat(500) + "y";
        for subject in ["a.b", "a-b", "größe/7", &long] {
            let name = stream(subject);
            assert!(name.len() < 100, "{name}");
            let is_legal = |char: char| char.is_ascii_alphanumeric() || char == '-';
            assert!(name.chars().all(is_legal), "{name}");
        }
        assert_ne!(stream("a.b"), stream("a-b"));
    }

    #[test]
    fn channels_are_distributed_among_shards_by_their_names() {
        let mut channels = [0; SHARDS as usize];
        for number in 0..16_000 {
            channels[usize::from(shard(&format!("channel:{number}")))] += 1;
        }
        assert!(
            channels.iter().all(|count| (800..1_200).contains(count)),
            "{channels:?}"
        );
    }

    #[test]
    fn the_subjects_of_a_shard_match_those_of_its_channels() {
        let home = Home::parse("100-60000").unwrap();
        for (prefix, channel) in [("", "a.b"), ("one.", "one.a.b")] {
            let shard = shard(channel);
            let of_shard = ShardSubjects { prefix, shard };
            for (all, one) in [
                (of_shard.stored(home), stored(home, channel)),
                (of_shard.live(), live(channel)),
                (of_shard.positions(), position(channel)),
            ] {
                assert!(one.starts_with(all.strip_suffix('>').unwrap()), "{one}");
                assert!(one.ends_with(channel), "{one}");
            }
            assert_eq!(of_live(&live(channel)), Some(channel));
            let pattern = live_pattern(channel).replace('*', &shard.to_string());
            assert_eq!(pattern, live(channel));
            assert!(is_stored(&of_shard.stored(home), prefix));
            assert!(!is_stored(&of_shard.stored(home), "two."));
            assert!(is_stored(channel, prefix));
        }
        assert_eq!(of_live("news"), None);
    }

    /// Names made of characters that have a meaning to NATS or to us.
    fn arbitrary() -> impl Strategy<Value = String> {
        const PARTS: &[&str] = &[
            ".",
            "-",
            "_",
            "$",
            "*",
            ">",
            "{",
            "}",
            ":",
            "a",
            "b",
            "ü",
            "linerate-",
            "_linerate.published.",
            "_linerate.stored.1-1.1.",
            "_linerate.control",
            "private:room",
        ];
        let part = prop::sample::select(PARTS);
        prop::collection::vec(part, 1..7).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn no_name_reaches_the_subjects_of_another(
            a in arbitrary(),
            b in arbitrary(),
            prefix in prop::sample::select(&["", "p.", "a.", "_linerate-.p."][..]),
        ) {
            let subjects = Subjects::new(prefix).unwrap();
            let [Ok(of_a), Ok(of_b)] = [&a, &b].map(|name| subjects.of_channel(&channel(name))) else {
                return Ok(());
            };
            prop_assert_eq!(subjects.channel(&of_a), Some(channel(&a)));
            prop_assert!(!is_pattern(&a));
            prop_assert_ne!(&of_a, &subjects.control());
            prop_assert_ne!(&of_a, &live(&of_b));
            prop_assert_eq!(a == b, of_a == of_b);
            prop_assert_eq!(a == b, stream(&of_a) == stream(&of_b));
            let home = Home::parse("100-60000").unwrap();
            prop_assert_eq!(a == b, stored(home, &of_a) == stored(home, &of_b));
            prop_assert_eq!(a == b, position(&of_a) == position(&of_b));
            prop_assert_ne!(&of_a, &stored(home, &of_b));
        }
    }
}
