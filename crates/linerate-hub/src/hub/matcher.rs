//! Finds the classes that a publication belongs to.

use linerate_filter::{Evaluated, FilterSet};
use slab::Slab;

use crate::{Publication, hub::class::Class};

/// The classes of a channel, indexed by their payload filters.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    /// Classes that accept any payload.
    others: Vec<usize>,
    /// `None` if no class has a filter, as in most channels.
    payloads: Option<Box<FilterSet>>,
}

impl Matcher {
    /// Adds the class at `place`.
    pub(crate) fn add(&mut self, place: usize, class: &Class) {
        match class.filter().and_then(|filter| filter.payload()) {
            Some(payload) => {
                let payloads = self.payloads.get_or_insert_default();
                payloads.insert(place, payload.clone());
            }
            None => {
                if self.others.is_empty() {
                    self.others.reserve_exact(1);
                }
                self.others.push(place);
            }
        }
    }

    /// Removes the class at `place`.
    pub(crate) fn remove(&mut self, place: usize) {
        if let Some(payloads) = &mut self.payloads {
            payloads.remove(place);
        }
        self.others.retain(|other| *other != place);
    }

    /// Returns how many bytes of a payload are read to evaluate all filters, in addition to the
    /// scan.
    pub(crate) fn searched_bytes(&self, publication: &Publication) -> usize {
        let payloads = self.payloads.as_ref();
        let searches = payloads.map_or(0, |payloads| payloads.searches());
        searches.saturating_mul(publication.payload().len())
    }

    /// Evaluates filters until `is_over` returns true; returns whether all of them are evaluated.
    pub(crate) fn evaluate(
        &self,
        publication: &Publication,
        known: &mut Evaluated,
        is_over: impl FnMut() -> bool,
    ) -> bool {
        let payloads = self.payloads.as_ref();
        payloads.is_none_or(|payloads| payloads.evaluate(publication.payload(), known, is_over))
    }

    /// Calls `visit` with the place of each class that sees `publication`, and the class. Evaluates
    /// only the filters whose results are not known yet.
    pub(crate) fn visit(
        &self,
        classes: &mut Slab<Class>,
        publication: &Publication,
        known: &Evaluated,
        mut visit: impl FnMut(usize, &mut Class),
    ) {
        let mut visit = |place: usize| {
            let class = &mut classes[place];
            if class.admits(publication) {
                visit(place, class);
            }
        };
        self.others.iter().copied().for_each(&mut visit);
        if let Some(payloads) = &self.payloads {
            payloads.visit_evaluated(publication.payload(), known, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linerate_filter::{Evaluated, Limits};
    use slab::Slab;

    use super::Matcher;
    use crate::{EncodingId, Filter, Publication, SubscriptionOptions, hub::class::Class};

    /// Matches tagged publications with a given payload.
    #[derive(Debug)]
    struct Tagged(Option<Arc<linerate_filter::Filter>>);

    impl Filter for Tagged {
        fn expression(&self) -> &str {
            "tagged"
        }

        fn payload(&self) -> Option<&Arc<linerate_filter::Filter>> {
            self.0.as_ref()
        }

        fn admits(&self, publication: &Publication) -> bool {
            !publication.tags().is_empty()
        }
    }

    fn compiled(text: &str) -> Arc<linerate_filter::Filter> {
        Arc::new(linerate_filter::Filter::new(text, &Limits::default()).unwrap())
    }

    fn visited(
        matcher: &Matcher,
        classes: &mut Slab<Class>,
        publication: &Publication,
    ) -> Vec<usize> {
        let mut places = Vec::new();
        let known = Evaluated::default();
        matcher.visit(classes, publication, &known, |place, _| places.push(place));
        places.sort_unstable();
        places
    }

    #[test]
    fn a_class_matches_if_payload_and_other_conditions_match() {
        let filters: [Option<Arc<dyn Filter>>; 5] = [
            None,
            Some(Arc::new(compiled("a == 1"))),
            Some(Arc::new(compiled("a > 0"))),
            Some(Arc::new(Tagged(Some(compiled("a == 1"))))),
            Some(Arc::new(Tagged(None))),
        ];
        let (mut classes, mut matcher) = (Slab::new(), Matcher::default());
        for filter in filters {
            let options = SubscriptionOptions {
                filter,
                ..SubscriptionOptions::new(EncodingId(0))
            };
            let place = classes.insert(Class::of(&options));
            matcher.add(place, &classes[place]);
        }
        let plain = |json: &str| Publication::new(json.to_owned().into());
        let tags = || vec![("k".to_owned(), "v".to_owned())];
        let tagged = |json: &str| {
            Publication::build(json.to_owned().into())
                .with_tags(tags())
                .finish()
        };
        for (publication, places) in [
            (plain(r#"{"a":1}"#), &[0, 1, 2][..]),
            (plain(r#"{"a":2}"#), &[0, 2]),
            (tagged(r#"{"a":1}"#), &[0, 1, 2, 3, 4]),
            (tagged("no JSON"), &[0, 4]),
            (plain("no JSON"), &[0]),
        ] {
            assert_eq!(
                visited(&matcher, &mut classes, &publication),
                places,
                "{publication:?}"
            );
        }
        matcher.remove(1);
        matcher.remove(4);
        assert_eq!(
            visited(&matcher, &mut classes, &tagged(r#"{"a":1}"#)),
            [0, 2, 3]
        );
    }
}
