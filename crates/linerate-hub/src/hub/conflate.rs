//! Conflation: leaves out publications that newer ones replace.

pub(crate) mod overflow;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use serde_json::Value;

use crate::{Conflate, JsonPointer, Publication, hub::ring::weight};

/// Publications by their numbers, and how many bytes of them fit into a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from: u64,
    /// The number after the last one.
    pub(crate) limit: u64,
    pub(crate) bytes_max: usize,
}

/// The publications of a span that no other publication of the span replaces.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) publications: Vec<Publication>,
    /// The number of the last of them.
    pub(crate) last: Option<u64>,
    /// The number up to which publications were considered.
    pub(crate) to: u64,
}

impl Conflate {
    /// Returns the publications that none of the others replaces. The argument and the result are
    /// in the order of publication.
    ///
    /// ```
    /// use linerate_hub::{Conflate, JsonPointer, Publication};
    ///
    /// let payloads = [r#"{"k":"a","n":1}"#, r#"{"k":"b","n":2}"#, r#"{"k":"a","n":3}"#];
    /// let publications = payloads.map(|payload| Publication::new(payload.into()));
    /// let by_key = Conflate::LatestPerKey(JsonPointer::new("/k")?);
    /// let newest = by_key.newest(&publications);
    /// let newest: Vec<_> = newest.iter().map(Publication::payload).collect();
    /// assert_eq!(newest, payloads[1..]);
    /// # Ok::<(), linerate_hub::pointer::JsonPointerError>(())
    /// ```
    pub fn newest<'a>(
        &self,
        publications: impl IntoIterator<Item = &'a Publication>,
    ) -> Vec<Publication> {
        let span = Span {
            from: 0,
            limit: u64::MAX,
            bytes_max: usize::MAX,
        };
        select((0..).zip(publications), span, self).publications
    }
}

/// Selects from `publications`, which are in the order of their numbers, as many as fit into a
/// block.
pub(crate) fn select<'a>(
    publications: impl Iterator<Item = (u64, &'a Publication)>,
    span: Span,
    conflate: &Conflate,
) -> Selection {
    match conflate {
        Conflate::Latest => {
            let last = publications.last();
            let publications = last.map(|(_, last)| last.clone());
            Selection {
                publications: publications.into_iter().collect(),
                last: last.map(|(number, _)| number),
                to: span.limit,
            }
        }
        Conflate::LatestPerKey(pointer) => select_by_key(publications, span, pointer),
    }
}

fn select_by_key<'a>(
    publications: impl Iterator<Item = (u64, &'a Publication)>,
    span: Span,
    pointer: &JsonPointer,
) -> Selection {
    let mut places: HashMap<&Value, usize, RandomState> = HashMap::default();
    let mut chosen: Vec<Option<&Publication>> = Vec::new();
    let mut bytes = 0;
    let (mut last, mut to) = (None, span.limit);
    for (number, publication) in publications {
        let key = find_key(publication, pointer);
        let place = key.and_then(|key| places.get(key)).copied();
        let replaced = place.and_then(|place| chosen[place]);
        let bytes_new = bytes + weight(publication) - replaced.map_or(0, weight);
        if bytes_new > span.bytes_max && number > span.from && bytes > 0 {
            to = number;
            break;
        }
        (bytes, last) = (bytes_new, Some(number));
        if let Some(place) = place {
            chosen[place] = None;
        }
        if let Some(key) = key {
            places.insert(key, chosen.len());
        }
        chosen.push(Some(publication));
    }
    let publications = chosen.into_iter().flatten().cloned().collect();
    Selection {
        publications,
        last,
        to,
    }
}

/// Returns the key that decides which publications replace each other, if the publication has one.
pub(crate) fn key<'a>(publication: &'a Publication, conflate: &Conflate) -> Option<&'a Value> {
    match conflate {
        Conflate::Latest => None,
        Conflate::LatestPerKey(pointer) => find_key(publication, pointer),
    }
}

fn find_key<'a>(publication: &'a Publication, pointer: &JsonPointer) -> Option<&'a Value> {
    pointer.find(publication.value()?)
}
