//! Scenarios: what `bench/scenarios/*.toml` says, turned into cells.
//!
//! A scenario is a title, a text and groups of cells. Where a group gives a list for a field, it
//! stands for a cell of each combination, so that a matrix is a few lines:
//!
//! ```
//! use linerate_bench::scenario::Scenario;
//!
//! # fn main() -> Result<(), linerate_bench::scenario::ScenarioError> {
//! let text = r#"
//!     title = "Pipelines"
//!     about = "Small messages, many in flight."
//!
//!     [[cells]]
//!     kind = "echo"
//!     connections = 8
//!     window = [16, 128]
//!     payload-bytes = [5, 20]
//! "#;
//! let scenario = Scenario::parse("pipeline", text)?;
//! let names: Vec<&str> = scenario.cells.iter().map(|cell| cell.name.as_str()).collect();
//! assert_eq!(names, ["5B-8c-16w", "20B-8c-16w", "5B-8c-128w", "20B-8c-128w"]);
//! # Ok(())
//! # }
//! ```

mod effort;
mod group;
pub(crate) mod naming;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::cell::Cell;

pub use effort::{Budgets, Effort};
use group::Group;

/// More cells than anybody has the time for; a list too many in a group would make them.
const CELLS_MAX: usize = 1_000;

/// A scenario of `bench/scenarios`, as `(name, text)`.
macro_rules! bundled {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../bench/scenarios/", $name, ".toml")),
        )
    };
}
/// The scenarios of the checkout from which this was built, as `(name, text)`, in the order in which they are run.
const BUNDLED: [(&str, &str); 11] = [
    bundled!("pingpong"),
    bundled!("pipeline"),
    bundled!("codec"),
    bundled!("large"),
    bundled!("split"),
    bundled!("deflate"),
    bundled!("churn"),
    bundled!("fanout"),
    bundled!("upload"),
    bundled!("idle"),
    bundled!("matrix"),
];

/// Cells that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The name of its file, without `.toml`.
    pub name: String,
    /// For people.
    pub title: String,
    /// What it shows and what it does not, in a few sentences.
    pub about: String,
    /// More rounds than these are not made, whatever the effort: for cells that take long or vary
    /// little.
    pub rounds_max: Option<u32>,
    /// What is measured.
    pub cells: Vec<Cell>,
    /// The names of the cells that belong to a quick run; `None` means all.
    pub quick: Option<Vec<String>>,
}

impl Scenario {
    /// Reads a scenario from the text of its file.
    ///
    /// # Errors
    ///
    /// The text is no TOML, has unknown or wrong fields, or asks for more than is sensible.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let file: File = toml::from_str(text).map_err(|source| ScenarioError::Syntax {
            scenario: name.into(),
            source: Box::new(source),
        })?;
        let mut cells = Vec::new();
        for group in &file.cells {
            group.expand(name, CELLS_MAX - cells.len(), &mut cells)?;
        }
        let scenario = Self {
            name: name.into(),
            title: file.title,
            about: file.about,
            rounds_max: file.rounds_max,
            cells,
            quick: file.quick,
        };
        scenario.check_names()?;
        Ok(scenario)
    }

    /// Returns the scenarios that come with linerate.
    ///
    /// # Errors
    ///
    /// None in a build whose tests passed.
    pub fn bundled() -> Result<Vec<Self>, ScenarioError> {
        BUNDLED
            .iter()
            .map(|(name, text)| Self::parse(name, text))
            .collect()
    }

    /// Reads all `*.toml` of a folder, in the order of their names.
    ///
    /// # Errors
    ///
    /// The folder or a file can't be read, or a scenario is wrong.
    pub fn load_folder(folder: &Path) -> Result<Vec<Self>, ScenarioError> {
        let unreadable = |path: &Path| {
            let path = path.to_path_buf();
            move |source| ScenarioError::Unreadable { path, source }
        };
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
            let path = entry.map_err(unreadable(folder))?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                paths.push(path);
            }
        }
        paths.sort();
        let load = |path: PathBuf| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = fs::read_to_string(&path).map_err(unreadable(&path))?;
            Self::parse(&name, &text)
        };
        paths.into_iter().map(load).collect()
    }

    /// Returns the cells that a run at this effort measures.
    pub fn cells_at(&self, effort: Effort) -> impl Iterator<Item = &Cell> {
        let quick = self.quick.as_ref().filter(|_| effort == Effort::Quick);
        self.cells
            .iter()
            .filter(move |cell| quick.is_none_or(|names| names.contains(&cell.name)))
    }

    /// Checks that names are unique, and that the quick ones exist.
    fn check_names(&self) -> Result<(), ScenarioError> {
        let mut names = HashSet::new();
        for cell in &self.cells {
            if !names.insert(cell.name.as_str()) {
                return Err(ScenarioError::Duplicate {
                    scenario: self.name.clone(),
                    cell: cell.name.clone(),
                });
            }
        }
        for quick in self.quick.iter().flatten() {
            if !names.contains(quick.as_str()) {
                return Err(ScenarioError::UnknownQuick {
                    scenario: self.name.clone(),
                    cell: quick.clone(),
                });
            }
        }
        Ok(())
    }
}

/// A file as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    title: String,
    about: String,
    rounds_max: Option<u32>,
    quick: Option<Vec<String>>,
    cells: Vec<Group>,
}

/// Why a scenario cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Two cells have one name, because they differ in nothing that a name tells.
    #[error("scenario {scenario}: there are two cells {cell}")]
    Duplicate {
        /// The scenario.
        scenario: String,
        /// The name.
        cell: String,
    },
    /// A number is outside of its limits.
    #[error("scenario {scenario}: {field} is {value}, not within {min} to {max}")]
    OutOfRange {
        /// The scenario.
        scenario: String,
        /// The field.
        field: &'static str,
        /// What it says.
        value: f64,
        /// The least that is allowed.
        min: f64,
        /// The most that is allowed.
        max: f64,
    },
    /// The file is no TOML, or not of this form.
    #[error("scenario {scenario} cannot be read")]
    Syntax {
        /// The scenario.
        scenario: String,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// The combinations are too many.
    #[error("scenario {scenario}: more than {max} cells")]
    TooManyCells {
        /// The scenario.
        scenario: String,
        /// The most that are allowed.
        max: usize,
    },
    /// A quick run is to measure a cell that is not there.
    #[error("scenario {scenario}: `quick` names {cell}, which is none of its cells")]
    UnknownQuick {
        /// The scenario.
        scenario: String,
        /// The name.
        cell: String,
    },
    /// A file or folder cannot be read.
    #[error("can't read {}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests;
