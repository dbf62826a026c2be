//! A query compiled to tests of columns: built once per query, then applied to every request.

mod set;

use super::agent_names::AgentNames;
use super::country_codes::CountryCodes;
use super::counts::{CLASSES, class};
use super::dictionaries::Dictionaries;
use super::dictionary::{Dictionary, FIRST};
use super::patterns::pattern;
use crate::query::condition::Condition;
use crate::query::encoding::{STATUSES, to_time};
use crate::query::ranges::Ranges;
use crate::query::values::Values;
use crate::query::{Field, Query, QueryError};
use crate::store::{ADDRESS, AGENT, BYTES_SENT, DURATION, PATH, STATUS, TEXTS, TIME};
use set::CodeSet;

/// Selects the requests of a query.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) from: i64,
    /// The last moment that is selected. If it is before `from`, nothing is selected.
    pub(super) last: i64,
    /// The tests that must also be true.
    pub(super) tests: Vec<Test>,
}

/// A test of columns.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// True if all of these are true. Holds at least two.
    All(Vec<Self>),
    /// True if any of these is true. Holds at least two.
    Any(Vec<Self>),
    /// True if the code in a column is in the set.
    Codes(usize, CodeSet),
    /// True for all requests, or for none. Never nested in another test.
    Constant(bool),
    /// True if the number in a column is in the ranges.
    Numbers(usize, Ranges),
}

/// The names of the values of a log.
pub(super) struct Names<'a> {
    pub(super) dictionaries: &'a Dictionaries,
    pub(super) bots: &'a AgentNames,
    pub(super) browsers: &'a AgentNames,
    pub(super) systems: &'a AgentNames,
    pub(super) countries: Option<&'a CountryCodes>,
}

impl Filter {
    /// Resolves the codes and numbers that a query selects. `has_others` returns whether a column
    /// contains values without a code.
    pub(super) fn new(
        query: &Query,
        names: &Names<'_>,
        has_others: impl Fn(usize) -> bool,
    ) -> Result<Self, QueryError> {
        let test = Test::new(&query.condition()?, names, &has_others)?;
        let mut filter = Self {
            from: query.from.unwrap_or(i64::MIN),
            last: match query.until {
                Some(until) => until.saturating_sub(1),
                None => i64::MAX,
            },
            tests: Vec::new(),
        };
        let tests = match test {
            Test::All(tests) => tests,
            Test::Constant(true) => Vec::new(),
            test => vec![test],
        };
        for test in tests {
            filter.add(test);
        }
        Ok(filter)
    }

    /// Returns approximately how many bytes of heap the filter holds.
    pub(super) fn memory_bytes(&self) -> usize {
        self.tests.iter().map(Test::memory_bytes).sum()
    }

    /// Adds a test. A single range of times narrows `from` and `last` instead, because those also
    /// determine the timeline that is drawn.
    fn add(&mut self, test: Test) {
        match test {
            Test::Constant(false) => (self.from, self.last) = (i64::MAX, i64::MIN),
            Test::Numbers(TIME, times) if times.is_empty() => {
                self.add(Test::Constant(false));
            }
            Test::Numbers(TIME, times) if times.only().is_some() => {
                let (first, last) = times.only().unwrap_or_default();
                self.from = self.from.max(to_time(first));
                self.last = self.last.min(to_time(last));
            }
            test => self.tests.push(test),
        }
    }
}

impl Test {
    fn memory_bytes(&self) -> usize {
        let more = match self {
            Self::All(tests) | Self::Any(tests) => tests.iter().map(Self::memory_bytes).sum(),
            Self::Codes(_, set) => set.memory_bytes(),
            Self::Constant(_) | Self::Numbers(..) => 0,
        };
        size_of::<Self>() + more
    }

    fn new(
        condition: &Condition,
        names: &Names<'_>,
        has_others: &impl Fn(usize) -> bool,
    ) -> Result<Self, QueryError> {
        let each = |conditions: &[Condition]| {
            let conditions = conditions.iter();
            conditions
                .map(|it| Self::new(it, names, has_others))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(match condition {
            Condition::All(conditions) => Self::combined(each(conditions)?, true),
            Condition::Any(conditions) => Self::combined(each(conditions)?, false),
            Condition::Constant(is_true) => Self::Constant(*is_true),
            Condition::Number(Field::Status, statuses) => {
                Self::Codes(STATUS, CodeSet::of(STATUSES, |it| statuses.has(it as u64)))
            }
            Condition::Number(field, numbers) => {
                let column = match field {
                    Field::BytesSent => BYTES_SENT,
                    Field::DurationUs => DURATION,
                    _ => TIME,
                };
                Self::Numbers(column, numbers.clone())
            }
            Condition::Text {
                field,
                values,
                negated,
            } => {
                let (column, mut codes) = names.codes(*field, values, has_others)?;
                if *negated {
                    codes.invert();
                }
                Self::Codes(column, codes)
            }
        })
    }

    /// Combines tests, all or any of which must be true. Tests of the same column become one.
    fn combined(tests: Vec<Self>, all: bool) -> Self {
        let mut combined: Vec<Self> = Vec::new();
        for test in tests {
            match (test, all) {
                (Self::All(tests), true) | (Self::Any(tests), false) => {
                    tests.into_iter().for_each(|it| it.join(&mut combined, all));
                }
                (Self::Constant(is_true), _) if is_true == all => {}
                (Self::Constant(is_true), _) => return Self::Constant(is_true),
                (test, _) => test.join(&mut combined, all),
            }
        }
        match combined.len() {
            0 => Self::Constant(all),
            1 => combined.swap_remove(0),
            _ if all => Self::All(combined),
            _ => Self::Any(combined),
        }
    }

    /// Adds the test to `others`, merging it into the test of the same column if there is one.
    fn join(self, others: &mut Vec<Self>, all: bool) {
        for other in others.iter_mut() {
            match (other, &self) {
                (Self::Codes(column, codes), Self::Codes(own, more)) if column == own => {
                    return if all {
                        codes.intersect(more)
                    } else {
                        codes.unite(more)
                    };
                }
                (Self::Numbers(column, numbers), Self::Numbers(own, more)) if column == own => {
                    *numbers = match all {
                        true => numbers.intersected(more),
                        false => numbers.united(more),
                    };
                    return;
                }
                _ => {}
            }
        }
        others.push(self);
    }
}

impl Names<'_> {
    /// Returns the column of a field, and the codes in it whose values match.
    fn codes(
        &self,
        field: Field,
        values: &Values,
        has_others: &impl Fn(usize) -> bool,
    ) -> Result<(usize, CodeSet), QueryError> {
        match field {
            Field::Bot | Field::Browser | Field::System => {
                self.refuse_others(field, AGENT, has_others)?;
                let names = match field {
                    Field::Bot => self.bots,
                    Field::Browser => self.browsers,
                    _ => self.systems,
                };
                let test = values.test();
                let chosen = names.of_agents(self.dictionaries.of(AGENT), &test);
                Ok((AGENT, self.set(AGENT, test(b""), &chosen)))
            }
            Field::Country => {
                let countries = self.countries.ok_or(QueryError::NoCountries)?;
                self.refuse_others(field, ADDRESS, has_others)?;
                let test = values.test();
                let chosen = countries.of_addresses(&test);
                Ok((ADDRESS, self.set(ADDRESS, test(b""), &chosen)))
            }
            Field::PathPattern => {
                self.refuse_others(field, PATH, has_others)?;
                let test = values.test();
                let paths = self.dictionaries.of(PATH).values();
                let chosen: Vec<bool> = paths.map(|path| test(&pattern(path))).collect();
                Ok((PATH, self.set(PATH, test(b""), &chosen)))
            }
            Field::StatusClass => {
                let test = values.test();
                let classes = CLASSES.map(|name| test(name.as_bytes()));
                Ok((
                    STATUS,
                    CodeSet::of(STATUSES, |it| classes[class(it as u16)]),
                ))
            }
            field => {
                let column = TEXTS.iter().position(|text| *text == field).unwrap_or(0);
                let dictionary = self.dictionaries.of(column);
                if let Some(literals) = values.literals() {
                    let codes = literals.map(|value| dictionary.find(value));
                    let codes: Vec<_> = codes.collect();
                    if !has_others(column) || codes.iter().all(Option::is_some) {
                        let mut set = CodeSet::empty(length(dictionary));
                        let codes = codes.into_iter().flatten();
                        codes.for_each(|code| set.insert(code as usize));
                        return Ok((column, set));
                    }
                }
                self.refuse_others(field, column, has_others)?;
                let test = values.test();
                let chosen: Vec<bool> = dictionary.values().map(&test).collect();
                Ok((column, self.set(column, test(b""), &chosen)))
            }
        }
    }

    /// Returns an error if the column has values without a code, because the test might match them.
    fn refuse_others(
        &self,
        field: Field,
        column: usize,
        has_others: &impl Fn(usize) -> bool,
    ) -> Result<(), QueryError> {
        match has_others(column) {
            true => Err(QueryError::NotToldApart {
                field,
                values_max: self.dictionaries.of(column).values_max(),
            }),
            false => Ok(()),
        }
    }

    /// Returns the set of the selected codes. `none` is true if requests without a value are
    /// selected.
    fn set(&self, column: usize, none: bool, chosen: &[bool]) -> CodeSet {
        // `OTHER` is treated like no value: the caller has ruled out values without a code.
        CodeSet::of(length(self.dictionaries.of(column)), |code| {
            match code.checked_sub(FIRST as usize) {
                Some(at) => chosen.get(at).copied().unwrap_or(false),
                None => none,
            }
        })
    }
}

/// Returns the number of codes.
fn length(dictionary: &Dictionary) -> usize {
    dictionary.len() + FIRST as usize
}

#[cfg(test)]
mod tests {
    use super::{Filter, Names, Test};
    use crate::aggregate::Limits;
    use crate::aggregate::agent_names::AgentNames;
    use crate::aggregate::dictionaries::Dictionaries;
    use crate::aggregate::{bots, browsers};
    use crate::query::{Field, Query, QueryError, TOP_MAX};
    use crate::store::{PATH, STATUS};

    /// Compiles filters for a log with some paths.
    fn filter(query: &Query, others: bool) -> Result<Filter, QueryError> {
        let mut dictionaries = Dictionaries::new(&Limits::default());
        for value in ["/", "/a", "/b", "/a/c"] {
            dictionaries.of_mut(PATH).code(value.as_bytes());
        }
        let names = Names {
            dictionaries: &dictionaries,
            bots: &AgentNames::new(bots::name),
            browsers: &AgentNames::new(browsers::browser),
            systems: &AgentNames::new(browsers::system),
            countries: None,
        };
        Filter::new(query, &names, |_| others)
    }

    fn of(filters: &[&str]) -> Query {
        Query {
            filters: filters.iter().map(|&it| it.to_owned()).collect(),
            ..Query::default()
        }
    }

    /// Returns the selected codes, from 0.
    fn chosen(filters: &[&str], others: bool) -> Result<Vec<u32>, QueryError> {
        let filter = filter(&of(filters), others)?;
        let [Test::Codes(PATH, set)] = &*filter.tests else {
            panic!("{filter:?}");
        };
        Ok((0..6).filter(|&code| set.has(code)).collect())
    }

    #[test]
    fn conditions_of_one_column_become_one() {
        for (filters, codes) in [
            (&[r#"path == "/a""#][..], &[3][..]),
            (&[r#"path in ["/a", "/b"]"#], &[3, 4]),
            (&[r#"path == "/a" || path == "/b""#], &[3, 4]),
            (&[r#"path.startsWith("/a") && path != "/a""#], &[5]),
            (&[r#"path.startsWith("/a")"#, r#"path != "/a""#], &[5]),
            (
                &[r#"!(path.startsWith("/a") && path != "/a")"#],
                &[0, 1, 2, 3, 4],
            ),
            (&[r#"path != "/a""#], &[0, 1, 2, 4, 5]),
            (&[r#"!(path in ["/a", ""])"#], &[1, 2, 4, 5]),
            (&[r#"path == """#], &[0]),
            (&[r#"path == "/x""#], &[]),
            (&[r#""/a" < path"#], &[4, 5]),
            (&[r#"size(path) > 2 || path.size() == 1"#], &[2, 5]),
            (
                &[r#"data.path.endsWith("c") || data["path"].contains("b")"#],
                &[4, 5],
            ),
        ] {
            assert_eq!(chosen(filters, false).as_deref(), Ok(codes), "{filters:?}");
        }
    }

    #[test]
    fn conditions_on_several_columns_are_refused() {
        assert_eq!(chosen(&[r#"path == "/a""#], true), Ok(vec![3]));
        assert_eq!(chosen(&[r#"path != "/a""#], true), Ok(vec![0, 1, 2, 4, 5]));
        assert_eq!(chosen(&[r#"path in ["/a", "/b"]"#], true), Ok(vec![3, 4]));
        let refused = |field| {
            Err(QueryError::NotToldApart {
                field,
                values_max: 131_072,
            })
        };
        for filter in [
            r#"path == "/x""#,
            r#"path in ["/a", "/x"]"#,
            r#"path.startsWith("/a")"#,
            r#"!path.contains("")"#,
            r#"path > "/""#,
        ] {
            assert_eq!(chosen(&[filter], true), refused(Field::Path), "{filter}");
        }
        assert!(chosen(&[r#"bot == "x""#], true).is_err());
    }

    #[test]
    fn statuses_are_selected_by_code_and_class_together() {
        let filters = [
            r#"status >= 400 && status < 500 && status_class != "5xx""#,
            "status != 404",
        ];
        let filter = filter(&of(&filters), true).unwrap();
        let [Test::Codes(STATUS, set)] = &*filter.tests else {
            panic!("{filter:?}");
        };
        assert_eq!((0..1_000).filter(|&status| set.has(status)).count(), 99);
    }

    #[test]
    fn times_are_a_range_and_trivial_conditions_are_dropped() {
        let query = Query {
            from: Some(100),
            until: Some(200),
            ..of(&["time >= 150 && 180 > time", "true || status == 1"])
        };
        let found = filter(&query, false).unwrap();
        assert_eq!((found.from, found.last, found.tests.len()), (150, 179, 0));
        for never in [
            "false",
            "true && false && status == 1",
            "time > 9 && time < 9",
        ] {
            let found = filter(&of(&[never]), false).unwrap();
            assert!(found.from > found.last && found.tests.is_empty(), "{never}");
        }
        let holes = filter(&of(&["time != 5"]), false).unwrap();
        assert_eq!((holes.from, holes.tests.len()), (i64::MIN, 1));
    }

    #[test]
    fn lists_of_maximum_length_are_accepted_and_longer_ones_refused() {
        let query = |top_max| Query {
            top_max,
            ..Query::default()
        };
        assert!(filter(&query(TOP_MAX), false).is_ok());
        let top = QueryError::TopTooLong {
            top: 1_001,
            top_max: 1_000,
        };
        assert_eq!(filter(&query(1_001), false).unwrap_err(), top);
    }
}
