//! Turns the history for a returning subscriber into a reply and streamed publications.

use linerate_broker::History;
use linerate_hub::{Publication, StreamPosition};

use super::{Recovery, StartPosition, Subscribe};

/// The size charged for a publication besides its payload, tags and publisher: field names and an
/// offset.
const FIELDS_BYTES: usize = 64;

/// The result of recovering from a history.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    /// The position after which live publications follow, once the subscriber has received all of
    /// this.
    pub(super) newest: Option<StreamPosition>,
    /// The position that the reply reports, with the trail of the client; what is streamed follows
    /// it.
    pub(super) position: Option<StreamPosition>,
    pub(super) is_complete: bool,
    pub(super) replied: Vec<Publication>,
    pub(super) streamed: Vec<Publication>,
}

impl Recovered {
    pub(super) fn new(
        subscribe: &Subscribe,
        history: Option<History>,
        reply_bytes_max: usize,
    ) -> Self {
        let Some(history) = history else {
            return Self::default();
        };
        let (Recovery::Reply { publications_max } | Recovery::Stream { publications_max }) =
            subscribe.recovery;
        let epoch = history.newest.epoch.clone();
        let is_complete = is_complete(subscribe, &history);
        let mut recovered = Self {
            position: Some(StreamPosition {
                epoch: subscribe.trail.told(&epoch),
                ..history.newest
            }),
            newest: Some(history.newest),
            ..Self::default()
        };
        let since = match &subscribe.from {
            StartPosition::After(since) => since,
            StartPosition::Cached(seen) => {
                recovered.recall(subscribe, seen, history.publications, reply_bytes_max);
                return recovered;
            }
            StartPosition::Live | StartPosition::Newest => return recovered,
        };
        // If part of the same epoch is missing, recover nothing; the client can request the rest
        // itself. If the epoch was replaced, the new epoch holds everything that there is, unless
        // the client has been in that epoch before.
        let is_next =
            !history.is_contiguous && since.epoch != epoch && !subscribe.trail.contains(&epoch);
        if !(history.is_contiguous || is_next) || history.publications.len() > publications_max {
            return recovered;
        }
        recovered.is_complete = is_complete;
        recovered.streamed = history.publications;
        if matches!(subscribe.recovery, Recovery::Reply { .. }) {
            let sees = |found: &Publication| subscribe.options.sees(found);
            recovered.streamed.retain(sees);
            if let Some(conflate) = &subscribe.options.conflate {
                recovered.streamed = conflate.newest(&recovered.streamed);
            }
            recovered.fill_reply(reply_bytes_max);
        }
        recovered
    }

    /// Recovers the newest publication that the subscriber sees, unless it has it. `publications`
    /// are the newest ones, in reverse order.
    fn recall(
        &mut self,
        subscribe: &Subscribe,
        seen: &StreamPosition,
        publications: Vec<Publication>,
        reply_bytes_max: usize,
    ) {
        let Some(newest) = &self.newest else {
            return;
        };
        let is_same_epoch = seen.epoch == newest.epoch;
        let is_seen = |offset| is_same_epoch && seen.offset >= offset && offset > 0;
        // The newest publication may have expired, or have been removed.
        let is_kept = |first: &Publication| first.offset() == newest.offset;
        if !publications.first().is_some_and(is_kept) {
            self.is_complete = is_seen(newest.offset);
            return;
        }
        self.is_complete = true;
        let mut publications = publications.into_iter();
        let found = publications.find(|publication| subscribe.options.sees(publication));
        let found = found.filter(|publication| !is_seen(publication.offset()));
        self.streamed = found.into_iter().collect();
        if matches!(subscribe.recovery, Recovery::Reply { .. }) {
            self.fill_reply(reply_bytes_max);
        }
    }

    /// Moves as many publications into the reply as fit.
    fn fill_reply(&mut self, bytes_max: usize) {
        let fitting = fitting(&self.streamed, bytes_max);
        let rest = self.streamed.split_off(fitting);
        self.replied = std::mem::replace(&mut self.streamed, rest);
        if let (Some(first), Some(position)) = (self.streamed.first(), &mut self.position) {
            position.offset = first.offset().saturating_sub(1);
        }
    }
}

/// Returns whether a history has everything that a returning subscriber has missed, which is no
/// more than it may recover.
pub(super) fn is_complete(subscribe: &Subscribe, history: &History) -> bool {
    let (Recovery::Reply { publications_max } | Recovery::Stream { publications_max }) =
        subscribe.recovery;
    history.is_contiguous && history.publications.len() <= publications_max
}

/// Returns how many of the first publications fit into `bytes_max` bytes of a reply.
pub(crate) fn fitting(publications: &[Publication], bytes_max: usize) -> usize {
    let mut left = bytes_max;
    let fits = |publication: &&Publication| match left.checked_sub(weight(publication)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    publications.iter().take_while(fits).count()
}

/// Returns the approximate size of a publication in a reply, in bytes.
pub(crate) fn weight(publication: &Publication) -> usize {
    let tags = publication.tags().iter();
    let tags: usize = tags.map(|(key, value)| key.len() + value.len() + 6).sum();
    let info = publication.info().map_or(0, |info| {
        let claims = [&info.connection, &info.channel];
        let claims = claims.into_iter().flatten();
        let claims: usize = claims.map(|json| json.len()).sum();
        info.user.len() + info.client.len() + claims + FIELDS_BYTES
    });
    publication.payload().len() + tags + info + FIELDS_BYTES
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linerate_hub::{Epoch, Filter};

    use super::*;
    use crate::node::{Trail, tests::subscription};

    fn publications(count: usize) -> Vec<Publication> {
        let payload = "x".repeat(100 - FIELDS_BYTES);
        vec![Publication::new(payload.into()); count]
    }

    #[test]
    fn as_many_fit_as_have_at_most_so_many_bytes() {
        for (bytes_max, expected) in [(0, 0), (99, 0), (100, 1), (299, 2), (300, 3), (1_000, 3)] {
            assert_eq!(fitting(&publications(3), bytes_max), expected);
        }
    }

    fn of_epoch(name: &str, is_contiguous: bool) -> History {
        let epoch = Epoch::new(name);
        let at = |offset| StreamPosition {
            epoch: epoch.clone(),
            offset,
        };
        let publication = |offset| {
            Publication::build("x".into())
                .with_position(at(offset))
                .finish()
        };
        History {
            publications: (1..=3).map(publication).collect(),
            newest: at(3),
            is_contiguous,
        }
    }

    fn recover(history: History, reply_bytes_max: usize) -> Recovered {
        let subscribe = Subscribe {
            from: StartPosition::After(StreamPosition {
                epoch: Epoch::new("e"),
                offset: 9,
            }),
            recovery: Recovery::Reply {
                publications_max: 3,
            },
            ..subscription("a")
        };
        Recovered::new(&subscribe, Some(history), reply_bytes_max)
    }

    #[test]
    fn what_an_epoch_holds_that_has_followed_is_given_out_though_it_is_not_all() {
        let recovered = recover(of_epoch("f", false), 1_000);
        assert!(!recovered.is_complete);
        assert_eq!(recovered.replied.len(), 3);
        assert_eq!(recovered.position.unwrap().offset, 3);
        // What does not fit into the reply follows it, starting at the position of the reply.
        for (reply_bytes_max, replied) in [(0, 0), (FIELDS_BYTES + 1, 1)] {
            let recovered = recover(of_epoch("f", false), reply_bytes_max);
            assert_eq!(recovered.replied.len(), replied);
            assert_eq!(recovered.streamed.len(), 3 - replied);
            assert_eq!(recovered.position.unwrap().offset, replied as u64);
        }
    }

    #[test]
    fn an_epoch_in_which_the_client_has_been_is_not_given_out_again() {
        let position = StreamPosition {
            epoch: Epoch::new("e~f"),
            offset: 9,
        };
        let (since, trail) = Trail::split(&position);
        let subscribe = Subscribe {
            from: StartPosition::After(since),
            trail,
            recovery: Recovery::Stream {
                publications_max: 3,
            },
            ..subscription("a")
        };
        for (epoch, streamed, told) in [("f", 0, "f~e"), ("g", 3, "g~e~f")] {
            let history = of_epoch(epoch, false);
            let recovered = Recovered::new(&subscribe, Some(history), 1_000);
            assert!(!recovered.is_complete);
            assert_eq!(recovered.streamed.len(), streamed);
            assert_eq!(recovered.position.unwrap().epoch.as_str(), told);
            assert_eq!(recovered.newest.unwrap().epoch.as_str(), epoch);
        }
    }

    /// Recovers from a cache whose newest position has offset 3.
    fn recall(newest: &[u64], seen: (&str, u64), filter: Option<Arc<dyn Filter>>) -> Recovered {
        let mut history = of_epoch("e", true);
        history.publications.reverse();
        let is_kept = |found: &Publication| newest.contains(&found.offset());
        history.publications.retain(is_kept);
        let mut subscribe = Subscribe {
            from: StartPosition::Cached(StreamPosition {
                epoch: Epoch::new(seen.0),
                offset: seen.1,
            }),
            ..subscription("a")
        };
        subscribe.options.filter = filter;
        Recovered::new(&subscribe, Some(history), 1_000)
    }

    fn offsets(recovered: &Recovered) -> Vec<u64> {
        let publications = recovered.replied.iter().chain(&recovered.streamed);
        publications.map(Publication::offset).collect()
    }

    #[test]
    fn a_cache_gives_out_its_newest_publication_to_who_has_not_got_it() {
        for (newest, seen, is_complete, expected) in [
            (&[3][..], ("", 0), true, &[3][..]),
            (&[3], ("e", 2), true, &[3]),
            (&[3], ("e", 3), true, &[]),
            (&[3], ("f", 3), true, &[3]),
            // The newest publication has expired.
            (&[], ("e", 3), true, &[]),
            (&[], ("e", 2), false, &[]),
            (&[], ("f", 3), false, &[]),
            (&[], ("e", 0), false, &[]),
            (&[2], ("e", 1), false, &[]),
        ] {
            let recovered = recall(newest, seen, None);
            assert_eq!(recovered.is_complete, is_complete, "{newest:?} {seen:?}");
            assert_eq!(offsets(&recovered), expected, "{newest:?} {seen:?}");
            assert_eq!(recovered.newest.as_ref().unwrap().offset, 3);
            assert_eq!(recovered.position.unwrap().offset, 3);
        }
    }

    #[test]
    fn a_cache_gives_out_the_newest_publication_that_a_filter_matches() {
        #[derive(Debug)]
        struct Second;
        impl Filter for Second {
            fn expression(&self) -> &'static str {
                "second"
            }
            fn admits(&self, publication: &Publication) -> bool {
                publication.offset() == 2
            }
        }
        for (seen, expected) in [(0, &[2][..]), (1, &[2]), (2, &[]), (3, &[])] {
            let recovered = recall(&[1, 2, 3], ("e", seen), Some(Arc::new(Second)));
            assert!(recovered.is_complete);
            assert_eq!(offsets(&recovered), expected, "{seen}");
        }
    }

    #[test]
    fn what_is_left_of_the_same_epoch_is_not_given_out_as_if_it_was_all() {
        let recovered = recover(of_epoch("e", false), 1_000);
        assert!(!recovered.is_complete && recovered.replied.is_empty());
        assert_eq!(recovered.position.unwrap().offset, 3);
    }

    #[test]
    fn what_is_not_payload_counts_as_well() {
        let tags = vec![("key".to_owned(), "value".to_owned())];
        let plain = weight(&publications(1)[0]);
        let tagged = Publication::build("x".repeat(100 - FIELDS_BYTES).into()).with_tags(tags);
        assert_eq!(weight(&tagged.finish()), plain + 14);
    }
}
