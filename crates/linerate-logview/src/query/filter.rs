//! A query as sets of codes, made once and asked for every request.

use super::pattern::Pattern;
use super::{Condition, Dimension, Query, QueryError};
use crate::aggregate::bots;
use crate::aggregate::country_codes::CountryCodes;
use crate::aggregate::counts::{CLASSES, STATUSES, class};
use crate::aggregate::dictionary::{Dictionary, NONE, OTHER};
use crate::aggregate::row::{ADDRESS, AGENT, Dictionaries, TEXTS};

/// How many conditions a query may have: more than a person clicks together.
pub(crate) const CONDITIONS_MAX: usize = 64;
/// How long the value of a condition may be: a thousand characters of four bytes, as long as values are
/// shown.
pub(crate) const VALUE_BYTES_MAX: usize = 4_000;

/// Which requests a query chooses.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) from: i64,
    /// The last moment that is chosen; the query is empty if it lies before `from`.
    pub(crate) last: i64,
    /// The columns with a condition, and which codes are chosen.
    pub(crate) sets: Vec<(usize, Set)>,
}

impl Filter {
    /// Finds out which codes a query chooses. `status` is the column of statuses, and `has_others` says
    /// whether a dimension has values without a code.
    pub(crate) fn new(
        query: &Query,
        dictionaries: &Dictionaries,
        countries: Option<&CountryCodes>,
        status: usize,
        has_others: impl Fn(usize) -> bool,
    ) -> Result<Self, QueryError> {
        check(query)?;
        let mut sets = Vec::new();
        for (text, dimension) in TEXTS.into_iter().enumerate() {
            let wanted = Wanted::new(query, dimension);
            if !wanted.is_empty() {
                let dictionary = dictionaries.of(text);
                if has_others(text) {
                    wanted.refuse_others(dictionary)?;
                }
                sets.push((text, wanted.codes(dictionary)));
            }
        }
        let bots = Wanted::new(query, Dimension::Bot);
        if !bots.is_empty() {
            let agents = dictionaries.of(AGENT);
            if has_others(AGENT) {
                return Err(bots.not_told_apart(agents));
            }
            sets.push((
                AGENT,
                bots.codes_by(agents.values().map(|it| bots::name(it).unwrap_or_default())),
            ));
        }
        let wanted = Wanted::new(query, Dimension::Country);
        if !wanted.is_empty() {
            let countries = countries.ok_or(QueryError::NoCountries)?;
            if has_others(ADDRESS) {
                return Err(wanted.not_told_apart(dictionaries.of(ADDRESS)));
            }
            sets.push((ADDRESS, wanted.codes_by(countries.of_addresses())));
        }
        let by_status =
            [Dimension::Status, Dimension::StatusClass].map(|it| Wanted::new(query, it));
        if by_status.iter().any(|wanted| !wanted.is_empty()) {
            sets.push((status, statuses(&by_status)));
        }
        Ok(Self {
            from: query.from.unwrap_or(i64::MIN),
            last: match query.until {
                Some(until) => until.saturating_sub(1),
                None => i64::MAX,
            },
            sets,
        })
    }
}

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Set {
    words: Vec<u64>,
}

impl Set {
    fn insert(&mut self, number: usize) {
        if number / 64 >= self.words.len() {
            self.words.resize(number / 64 + 1, 0);
        }
        self.words[number / 64] |= 1 << (number % 64);
    }

    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Says whether any number of a range is in the set.
    pub(crate) fn has_any(&self, lowest: u64, highest: u64) -> bool {
        let mut words = (0..).zip(&self.words).skip((lowest / 64) as usize);
        let mut words = words.by_ref().take_while(|(at, _)| *at <= highest / 64);
        words.any(|(at, word)| {
            let from = lowest.saturating_sub(at * 64);
            let beyond = (highest - at * 64).min(63);
            word & (u64::MAX << from) & (u64::MAX >> (63 - beyond)) != 0
        })
    }
}

fn check(query: &Query) -> Result<(), QueryError> {
    let conditions = query.conditions.len();
    if conditions > CONDITIONS_MAX {
        return Err(QueryError::TooManyConditions {
            conditions,
            conditions_max: CONDITIONS_MAX,
        });
    }
    if query.top_max > super::TOP_MAX {
        return Err(QueryError::TopTooLong {
            top: query.top_max,
            top_max: super::TOP_MAX,
        });
    }
    let longest = query.conditions.iter().map(|it| it.value.len()).max();
    match longest {
        Some(bytes) if bytes > VALUE_BYTES_MAX => Err(QueryError::ValueTooLong {
            bytes,
            bytes_max: VALUE_BYTES_MAX,
        }),
        _ => Ok(()),
    }
}

/// The conditions of one dimension.
struct Wanted<'a> {
    dimension: Dimension,
    included: Vec<Pattern<'a>>,
    excluded: Vec<Pattern<'a>>,
}

impl<'a> Wanted<'a> {
    fn new(query: &'a Query, dimension: Dimension) -> Self {
        let patterns = |exclude: bool| {
            let of_kind = |it: &&Condition| it.dimension == dimension && it.exclude == exclude;
            let conditions = query.conditions.iter().filter(of_kind);
            conditions.map(|it| Pattern::new(&it.value)).collect()
        };
        Self {
            dimension,
            included: patterns(false),
            excluded: patterns(true),
        }
    }

    fn is_empty(&self) -> bool {
        self.included.is_empty() && self.excluded.is_empty()
    }

    fn chooses(&self, value: &[u8]) -> bool {
        (self.included.is_empty() || self.included.iter().any(|it| it.matches(value)))
            && !self.excluded.iter().any(|it| it.matches(value))
    }

    /// Returns the codes that are chosen.
    ///
    /// Values without a code are chosen unless others are asked for: where a condition might concern
    /// them, the query was refused.
    fn codes(&self, dictionary: &Dictionary) -> Set {
        self.codes_by(dictionary.values())
    }

    /// Returns the codes of the values that are chosen by what each of them is one of.
    fn codes_by(&self, values: impl Iterator<Item = impl AsRef<[u8]>>) -> Set {
        let mut set = Set::default();
        if self.chooses(b"") {
            set.insert(NONE as usize);
        }
        if self.included.is_empty() {
            set.insert(OTHER as usize);
        }
        for (value, code) in values.zip(OTHER as usize + 1..) {
            if self.chooses(value.as_ref()) {
                set.insert(code);
            }
        }
        set
    }

    /// Refuses conditions that might concern values without a code: all but values that have one.
    fn refuse_others(&self, dictionary: &Dictionary) -> Result<(), QueryError> {
        let mut patterns = self.included.iter().chain(&self.excluded);
        let is_known = |pattern: &Pattern<'_>| {
            let literal = pattern.literal();
            literal.is_some_and(|value| dictionary.find(value).is_some())
        };
        if patterns.all(is_known) {
            return Ok(());
        }
        Err(self.not_told_apart(dictionary))
    }

    fn not_told_apart(&self, dictionary: &Dictionary) -> QueryError {
        QueryError::NotToldApart {
            dimension: self.dimension,
            values_max: dictionary.values_max(),
        }
    }
}

/// Returns the statuses that are chosen by code and by class.
fn statuses([codes, classes]: &[Wanted<'_>; 2]) -> Set {
    let mut set = Set::default();
    for status in 0..STATUSES {
        let code = format!("{status:03}");
        if codes.chooses(code.as_bytes())
            && classes.chooses(CLASSES[class(status as u16)].as_bytes())
        {
            set.insert(status);
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::{CONDITIONS_MAX, Filter, Set, VALUE_BYTES_MAX};
    use crate::aggregate::Limits;
    use crate::aggregate::row::{Dictionaries, PATH};
    use crate::query::{Condition, Dimension, Query, QueryError, TOP_MAX};

    const STATUS: usize = 9;

    fn condition(dimension: Dimension, value: &str, exclude: bool) -> Condition {
        Condition {
            dimension,
            value: value.into(),
            exclude,
        }
    }

    fn paths(values: &[&str]) -> Dictionaries {
        let mut dictionaries = Dictionaries::new(&Limits::default());
        for value in values {
            dictionaries.of_mut(PATH).code(value.as_bytes());
        }
        dictionaries
    }

    /// Returns which of the codes from 0 are chosen.
    fn chosen(conditions: &[Condition], others: bool) -> Result<Vec<u32>, QueryError> {
        let query = Query {
            conditions: conditions.to_vec(),
            ..Query::default()
        };
        let dictionaries = paths(&["/", "/a", "/b", "/a/c"]);
        let filter = Filter::new(&query, &dictionaries, None, STATUS, |_| others)?;
        let (column, set) = &filter.sets[0];
        assert_eq!(*column, PATH);
        Ok((0..9).filter(|&code| set.has(code)).collect())
    }

    #[test]
    fn conditions_of_one_dimension_include_any_and_exclude_all() {
        let path = |value, exclude| condition(Dimension::Path, value, exclude);
        let cases: [(&[Condition], &[u32]); 6] = [
            (&[path("/a", false)], &[3]),
            (&[path("/a", false), path("/b", false)], &[3, 4]),
            (&[path("/a*", false), path("/a", true)], &[5]),
            (&[path("/a", true)], &[0, 1, 2, 4, 5]),
            (&[path("", false)], &[0]),
            (&[path("/x", false)], &[]),
        ];
        for (conditions, codes) in cases {
            assert_eq!(chosen(conditions, false).as_deref(), Ok(codes));
        }
    }

    #[test]
    fn conditions_that_may_concern_others_are_refused() {
        let path = |value, exclude| [condition(Dimension::Path, value, exclude)];
        assert_eq!(chosen(&path("/a", false), true), Ok(vec![3]));
        assert_eq!(chosen(&path("/a", true), true), Ok(vec![0, 1, 2, 4, 5]));
        let refused = Err(QueryError::NotToldApart {
            dimension: Dimension::Path,
            values_max: 131_072,
        });
        for value in ["/x", "/a*", "*"] {
            for exclude in [false, true] {
                assert_eq!(chosen(&path(value, exclude), true), refused);
            }
        }
    }

    #[test]
    fn statuses_are_chosen_by_code_and_class_at_once() {
        let query = Query {
            conditions: vec![
                condition(Dimension::Status, "4*", false),
                condition(Dimension::StatusClass, "5xx", true),
                condition(Dimension::Status, "404", true),
            ],
            ..Query::default()
        };
        let filter = Filter::new(&query, &paths(&[]), None, STATUS, |_| true).unwrap();
        let (column, set) = &filter.sets[0];
        let count = (0..1_000).filter(|&status| set.has(status)).count();
        assert_eq!((*column, filter.sets.len(), count), (STATUS, 1, 99));
    }

    #[test]
    fn queries_at_the_limits_are_taken_and_beyond_them_refused() {
        let query = |conditions: usize, bytes: usize, top_max: usize| {
            let value = "x".repeat(bytes);
            let query = Query {
                conditions: vec![condition(Dimension::Path, &value, false); conditions],
                top_max,
                ..Query::default()
            };
            Filter::new(&query, &paths(&[]), None, STATUS, |_| false).map(|_| ())
        };
        assert_eq!(query(CONDITIONS_MAX, VALUE_BYTES_MAX, TOP_MAX), Ok(()));
        let conditions = QueryError::TooManyConditions {
            conditions: 65,
            conditions_max: 64,
        };
        assert_eq!(query(65, 1, 1), Err(conditions));
        let bytes = QueryError::ValueTooLong {
            bytes: 4_001,
            bytes_max: 4_000,
        };
        assert_eq!(query(1, 4_001, 1), Err(bytes));
        let top = QueryError::TopTooLong {
            top: 1_001,
            top_max: 1_000,
        };
        assert_eq!(query(1, 1, 1_001), Err(top));
    }

    #[test]
    fn sets_know_what_is_in_a_range() {
        let mut set = Set::default();
        assert!(!set.has_any(0, u64::MAX));
        set.insert(70);
        assert!(set.has(70) && !set.has(69) && !set.has(u32::MAX));
        assert!(set.has_any(0, u64::MAX) && set.has_any(70, 70));
        assert!(!set.has_any(0, 69) && !set.has_any(71, 1 << 40));
    }
}
