//! Sections that an application adds to the configuration.

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;

use super::{check::Check, layer::Value};

/// A section of the configuration that belongs to the application. It is loaded, checked and
/// documented like those of the gateway.
pub trait Section: DeserializeOwned {
    /// The name of its table.
    const NAME: &'static str;
    /// Its table, in which each key has its default and a comment with its meaning.
    const DEFAULT_TOML: &'static str;

    /// Returns the keys whose values have a range, with their values.
    fn ranges(&self) -> Vec<(&'static str, u64, RangeInclusive<u64>)>;
}

/// A type that implements [`Section`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionType {
    pub(super) name: &'static str,
    pub(super) default_toml: &'static str,
    /// Reads a value and checks its ranges.
    pub(super) check: fn(Value, &mut Check) -> Result<(), ReadError>,
}

pub(super) type ReadError = serde_path_to_error::Error<toml::de::Error>;

impl SectionType {
    pub(super) fn of<S: Section>() -> Self {
        Self {
            name: S::NAME,
            default_toml: S::DEFAULT_TOML,
            check: check::<S>,
        }
    }
}

/// Reads a section.
pub(super) fn read<S: Section>(value: Value) -> Result<S, ReadError> {
    serde_path_to_error::deserialize(value)
}

fn check<S: Section>(value: Value, check: &mut Check) -> Result<(), ReadError> {
    for (key, value, allowed) in read::<S>(value)?.ranges() {
        check.range(key, value, allowed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use serde::Deserialize;

    use super::Section;
    use crate::config::{ConfigError, Loader};

    /// Its name begins with that of a section of the gateway.
    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    struct Logbook {
        authors: Vec<String>,
        authors_max: u64,
    }

    impl Default for Logbook {
        fn default() -> Self {
            Self {
                authors: Vec::new(),
                authors_max: 3,
            }
        }
    }

    impl Section for Logbook {
        const NAME: &'static str = "logbook";
        const DEFAULT_TOML: &'static str = "\
# Who reports what happens.
[logbook]
# Authors.
authors = []
# Maximum number of authors. Rarely changed.
authors_max = 3
";

        fn ranges(&self) -> Vec<(&'static str, u64, RangeInclusive<u64>)> {
            vec![("authors_max", self.authors_max, 1..=9)]
        }
    }

    fn loader(text: &str) -> Loader {
        Loader::new()
            .with_section::<Logbook>()
            .with_text("test.toml", text)
    }

    fn load(loader: &Loader) -> Result<Logbook, ConfigError> {
        loader.load()?.section()
    }

    #[test]
    fn section_is_set_like_those_of_the_gateway() {
        assert_eq!(load(&loader("")).unwrap(), Logbook::default());
        let loader = loader("[logbook]\nauthors_max = 4")
            .with_environment([("LINERATE_LOGBOOK_AUTHORS".into(), "Ann, Bo Li".into())])
            .with_flag("--authors-max", "logbook.authors_max", 5);
        let expected = Logbook {
            authors: vec!["Ann".into(), "Bo Li".into()],
            authors_max: 5,
        };
        assert_eq!(load(&loader).unwrap(), expected);
    }

    #[test]
    fn errors_in_a_section_name_the_place_and_what_is_allowed() {
        let error = |text: &str| loader(text).load().unwrap_err().to_string();
        assert_eq!(
            error("[logbook]\n\nauthor_max = 1"),
            "test.toml, line 3: logbook.author_max: unknown key; did you mean `authors_max`?"
        );
        assert_eq!(
            error("[logbook]\nauthors_max = 10\n[client]\nchannels_max = 0"),
            "test.toml, line 4: client.channels_max = 0 must be between 1 and 100000\n\
             test.toml, line 2: logbook.authors_max = 10 must be between 1 and 9"
        );
        assert_eq!(
            error("[logbok]\nauthors_max = 1"),
            "test.toml, line 1: logbok: unknown key; did you mean `logbook`?"
        );
        let message = error("logbook = 1");
        assert!(
            message.starts_with("test.toml, line 1: logbook: invalid type"),
            "{message}"
        );
        let message = error("[logbook]\nauthors_max = true");
        assert!(
            message.starts_with("test.toml, line 2: logbook.authors_max: "),
            "{message}"
        );
        let variable = [("LINERATE_LOGBOK_AUTHORS".into(), "a".into())];
        let message = loader("").with_environment(variable).load().unwrap_err();
        assert!(
            message.to_string().contains("did you mean `logbook`?"),
            "{message}"
        );
    }

    #[test]
    fn section_is_documented_and_its_limits_are_listed() {
        let loader = loader("[logbook]\nauthors_max = 4");
        let documentation = loader.default_toml();
        assert!(documentation.ends_with(&format!("\n\n{}", Logbook::DEFAULT_TOML)));
        let limits = loader.limits().unwrap();
        let last = limits.last().unwrap();
        assert_eq!((&*last.key, last.value), ("logbook.authors_max", 4));
        assert_eq!(last.meaning, "Maximum number of authors");
    }

    #[test]
    fn section_that_was_not_added_is_unknown() {
        let loader = Loader::new().with_text("test.toml", "[logbook]\nauthors_max = 4");
        assert!(loader.load().is_err());
    }
}
