//! Groups of requests: those that have the same value in a field.

use std::borrow::Cow;

use super::agent_names::AgentNames;
use super::country_codes::CountryCodes;
use super::dictionaries::Dictionaries;
use super::dictionary::{Dictionary, FIRST, NONE, OTHER};
use super::filter::Names;
use super::patterns::pattern;
use crate::query::encoding::STATUSES;
use crate::query::{Field, QueryError};
use crate::store::{ADDRESS, AGENT, PATH, Row, TEXTS};

/// Numbers the values of a field: from [`FIRST`], or [`NONE`] without a value, or [`OTHER`] if the
/// value is not tracked.
#[derive(Debug)]
pub(super) struct Groups {
    source: Source,
    /// The values, unless they are those of a column.
    names: Option<Dictionary>,
}

#[derive(Debug)]
enum Source {
    /// The codes of a column.
    Column(usize),
    /// For each code of a column, the number of what its value belongs to.
    Derived(usize, Vec<u32>),
    Status,
}

impl Groups {
    /// Groups requests by a field.
    ///
    /// # Errors
    /// The values of the field cannot be listed, or the country database is missing.
    pub(super) fn new(field: Field, names: &Names<'_>) -> Result<Self, QueryError> {
        let of_agents = |list: &AgentNames| {
            let agents = names.dictionaries.of(AGENT);
            Self::derived(AGENT, agents, |code, _| list.name_of(code).into())
        };
        Ok(match field {
            Field::Bot => of_agents(names.bots),
            Field::Browser => of_agents(names.browsers),
            Field::System => of_agents(names.systems),
            Field::Country => {
                let countries: &CountryCodes = names.countries.ok_or(QueryError::NoCountries)?;
                let addresses = names.dictionaries.of(ADDRESS);
                Self::derived(ADDRESS, addresses, |code, _| {
                    countries.codes().value(countries.code_of(code)).into()
                })
            }
            Field::PathPattern => {
                let paths = names.dictionaries.of(PATH);
                Self::derived(PATH, paths, |_, path| pattern(path))
            }
            Field::Status => {
                let mut statuses = Dictionary::new(STATUSES, usize::MAX);
                (0..STATUSES).for_each(|it| {
                    statuses.code(format!("{it:03}").as_bytes());
                });
                Self {
                    source: Source::Status,
                    names: Some(statuses),
                }
            }
            field => {
                let column = TEXTS.iter().position(|text| *text == field);
                Self {
                    source: Source::Column(column.ok_or(QueryError::NotListed)?),
                    names: None,
                }
            }
        })
    }

    /// Groups the values of a column by the name that `name` returns for their code and text.
    fn derived<'a>(
        column: usize,
        values: &'a Dictionary,
        name: impl Fn(u32, &'a [u8]) -> Cow<'a, [u8]>,
    ) -> Self {
        let mut names = Dictionary::new(usize::MAX, usize::MAX);
        let codes = (FIRST..).zip(values.values());
        let codes = codes.map(|(code, value)| names.code(&name(code, value)));
        let by_code = [NONE, OTHER].into_iter().chain(codes).collect();
        Self {
            source: Source::Derived(column, by_code),
            names: Some(names),
        }
    }

    /// Returns the number of a request's value.
    #[inline]
    pub(super) fn of(&self, row: &Row) -> u32 {
        match &self.source {
            Source::Column(column) => row.codes[*column],
            Source::Derived(column, by_code) => {
                let code = by_code.get(row.codes[*column] as usize);
                code.copied().unwrap_or(OTHER)
            }
            Source::Status => u32::from(row.status) + FIRST,
        }
    }

    /// Returns the value with a number.
    pub(super) fn value<'a>(&'a self, number: u32, dictionaries: &'a Dictionaries) -> &'a [u8] {
        match (&self.names, &self.source) {
            (Some(names), _) => names.value(number),
            (None, Source::Column(column)) => dictionaries.of(*column).value(number),
            (None, _) => b"",
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let by_code = match &self.source {
            Source::Derived(_, by_code) => by_code.capacity() * size_of::<u32>(),
            Source::Column(_) | Source::Status => 0,
        };
        by_code + self.names.as_ref().map_or(0, Dictionary::memory_bytes)
    }
}
