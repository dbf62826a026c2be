//! Scenarios: the files `bench/scenarios/*.toml`, expanded to cells.
//!
//! A scenario has a title, a text and groups of cells. If a group has lists for some fields, it
//! stands for one cell for each combination of their values, so that a matrix takes only a few
//! lines:
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

/// Largest number of cells in a scenario. It guards against groups with one list too many, which
/// would take too long to measure.
const CELLS_MAX: usize = 1_000;

/// Includes a scenario of `bench/scenarios` as `(name, text)`.
macro_rules! bundled {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../bench/scenarios/", $name, ".toml")),
        )
    };
}
/// The scenarios of the checkout from which linerate was built, as `(name, text)`, in the order in
/// which they are run.
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

/// A group of related cells with a title and a description.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of its file, without `.toml`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What it shows and what it does not, in a few sentences.
    pub about: String,
    /// Largest number of rounds, whatever the effort, for cells that take long or vary little.
    pub rounds_max: Option<u32>,
    /// The cells to measure.
    pub cells: Vec<Cell>,
    /// Names of the cells that belong to a quick run; `None` means all.
    pub quick: Option<Vec<String>>,
}

impl Scenario {
    /// Parses the text of a scenario file.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not valid TOML, has unknown or invalid fields, or exceeds a
    /// limit.
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

    /// Returns the scenarios that are built into linerate.
    ///
    /// # Errors
    ///
    /// Never returns an error in a build whose tests passed.
    pub fn bundled() -> Result<Vec<Self>, ScenarioError> {
        BUNDLED
            .iter()
            .map(|(name, text)| Self::parse(name, text))
            .collect()
    }

    /// Reads all `*.toml` files of a folder, in the order of their names.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder or a file cannot be read, or if a scenario is invalid.
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

    /// Checks that cell names are unique and that the quick cells exist.
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

/// The content of a scenario file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    title: String,
    about: String,
    rounds_max: Option<u32>,
    quick: Option<Vec<String>>,
    cells: Vec<Group>,
}

/// The reason why a scenario cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Two cells have the same name, because they differ only in settings that are not part of a
    /// name.
    #[error("scenario {scenario}: two cells are named {cell}")]
    Duplicate {
        /// Name of the scenario.
        scenario: String,
        /// Name of the cells.
        cell: String,
    },
    /// A number is outside its limits.
    #[error("scenario {scenario}: {field} is {value}, which is outside {min} to {max}")]
    OutOfRange {
        /// Name of the scenario.
        scenario: String,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: f64,
        /// Smallest value that is allowed.
        min: f64,
        /// Largest value that is allowed.
        max: f64,
    },
    /// The file is not valid TOML, or does not have the fields of a scenario.
    #[error("cannot parse scenario {scenario}")]
    Syntax {
        /// Name of the scenario.
        scenario: String,
        /// What is wrong, and where.
        source: Box<toml::de::Error>,
    },
    /// There are too many combinations.
    #[error("scenario {scenario}: more than {max} cells")]
    TooManyCells {
        /// Name of the scenario.
        scenario: String,
        /// Largest number of cells that is allowed.
        max: usize,
    },
    /// `quick` names a cell that does not exist.
    #[error("scenario {scenario}: `quick` names {cell}, which is not one of its cells")]
    UnknownQuick {
        /// Name of the scenario.
        scenario: String,
        /// Name of the cell.
        cell: String,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests;
