//! Contenders: the folders of `bench/contenders`, their manifests and their programs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::cell::{Deflate, Mode, Service};
use crate::load::Wire;
use crate::record::ContenderNote;

/// Name of the file that makes a folder a contender.
const MANIFEST: &str = "contender.toml";

/// Folder in which `make contenders` puts the contenders' programs, relative to the root of the
/// checkout, which is two folders above the folder of contenders.
const BUILT: &str = ".cache/contenders";

/// A server that takes part in the comparison, or would if its program were available.
#[derive(Clone, Debug)]
pub struct Contender {
    /// Name of its folder.
    pub name: String,
    /// Content of its manifest.
    pub manifest: Manifest,
    /// Location of its program.
    pub program: Program,
}

/// Content of `contender.toml`; `bench/contenders/README.md` explains the fields.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Title for people.
    pub title: String,
    /// Language in which the library's users write their code.
    pub language: String,
    /// Version of the library.
    pub version: String,
    /// Programs that are needed to build and run it.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What it offers in addition to a plain echo.
    #[serde(default)]
    pub offers: Vec<Offer>,
    /// Protocol that it speaks.
    #[serde(default)]
    pub wire: Wire,
    /// Milliseconds of load before its first measurement in a run, in addition to the warm-up that
    /// all contenders get before each measurement.
    #[serde(default)]
    pub warm_up_ms: u64,
    /// How the server is written, and each setting that is not the library's default.
    pub notes: String,
}

/// A service that a server can offer in addition to a plain echo.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Offer {
    /// Answers with the number of bytes that it received.
    Acknowledge,
    /// Compresses each message independently.
    Deflate,
    /// Compresses with context takeover.
    DeflateTakeover,
    /// Sends a message to all connections.
    Fanout,
    /// Serves `wss://`.
    Tls,
}

/// Location of a contender's program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Program {
    /// The program is not available, for this reason.
    Absent(String),
    /// The program is this executable file.
    Built(PathBuf),
}

impl Contender {
    /// Reads all contenders of a folder, in the order of their names.
    ///
    /// A folder that contains an executable `server` needs no building. For the others, the result
    /// of `make contenders` in `.cache/contenders`, two folders above `folder`, decides whether
    /// there is a program.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder or a manifest cannot be read, or if a manifest is invalid. A
    /// missing program is not an error.
    pub fn discover(folder: &Path) -> Result<Vec<Self>, ContenderError> {
        let unreadable = |source| ContenderError::Unreadable {
            path: folder.to_path_buf(),
            source,
        };
        let built = folder
            .canonicalize()
            .map_err(unreadable)?
            .join("../..")
            .join(BUILT);
        let mut contenders = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.join(MANIFEST).is_file() {
                contenders.push(Self::read(&path, &built)?);
            }
        }
        contenders.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(contenders)
    }

    fn read(folder: &Path, built: &Path) -> Result<Self, ContenderError> {
        let path = folder.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(|source| ContenderError::Unreadable {
            path: path.clone(),
            source,
        })?;
        let manifest = toml::from_str(&text).map_err(|source| ContenderError::Manifest {
            path,
            source: Box::new(source),
        })?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self {
            program: Program::find(folder, &built.join(&*name)),
            name: name.into_owned(),
            manifest,
        })
    }

    /// Returns what the contender lacks to be started in this mode, as part of a sentence: "TLS is
    /// not offered".
    pub fn lacks(&self, mode: Mode) -> Option<&'static str> {
        let service = match mode.service {
            Service::Acknowledge => Some((Offer::Acknowledge, "acknowledging is not offered")),
            Service::Echo => None,
            Service::Fanout => Some((Offer::Fanout, "publishing is not offered")),
        };
        let tls = mode.tls.then_some((Offer::Tls, "TLS is not offered"));
        let deflate = match mode.deflate {
            Deflate::NoTakeover => Some((Offer::Deflate, "compression is not offered")),
            Deflate::Off => None,
            Deflate::Takeover => Some((
                Offer::DeflateTakeover,
                "compression with context takeover is not offered",
            )),
        };
        let needed = [service, tls, deflate].into_iter().flatten();
        needed
            .filter(|(offer, _)| !self.manifest.offers.contains(offer))
            .map(|(_, lack)| lack)
            .next()
    }

    /// Returns the description of the contender for a record.
    pub fn note(&self) -> ContenderNote {
        let manifest = &self.manifest;
        ContenderNote {
            name: self.name.clone(),
            title: manifest.title.clone(),
            language: manifest.language.clone(),
            version: manifest.version.clone(),
            notes: manifest.notes.trim().to_owned(),
            absent: match &self.program {
                Program::Absent(reason) => Some(reason.clone()),
                Program::Built(_) => None,
            },
        }
    }
}

impl Program {
    fn find(folder: &Path, built: &Path) -> Self {
        for folder in [folder, built] {
            let server = folder.join("server");
            if server.is_file() {
                return Self::Built(server);
            }
        }
        match fs::read_to_string(built.join("absent")) {
            Ok(reason) => Self::Absent(reason.trim().to_owned()),
            Err(_) => Self::Absent("not built; run `make contenders`".into()),
        }
    }
}

/// The reason why a folder of contenders cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContenderError {
    /// A manifest is not valid TOML, or does not have the fields of a manifest.
    #[error("{}: not a contender manifest", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong, and where.
        source: Box<toml::de::Error>,
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
mod tests {
    use std::error::Error;

    use super::*;

    const TEXT: &str = r#"
        title = "Some library"
        language = "Rust"
        version = "1.2.3"
        offers = ["acknowledge", "tls"]
        notes = "As in its example.\n"
    "#;

    /// Creates `bench/contenders/<name>` in a temporary folder and returns `bench/contenders`.
    fn folder_with(manifests: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let contenders = root.path().join("bench/contenders");
        for (name, text) in manifests {
            let folder = contenders.join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(MANIFEST), text).unwrap();
        }
        (root, contenders)
    }

    fn some_contender() -> Contender {
        let (_root, folder) = folder_with(&[("some", TEXT)]);
        Contender::discover(&folder).unwrap().remove(0)
    }

    #[test]
    fn what_a_manifest_does_not_say_has_a_default() {
        let manifest = some_contender().manifest;
        assert_eq!(manifest.offers, [Offer::Acknowledge, Offer::Tls]);
        assert_eq!((manifest.wire, manifest.warm_up_ms), (Wire::WebSocket, 0));
    }

    #[test]
    fn an_unknown_offer_is_named_with_its_file_and_what_is_allowed() {
        let text = TEXT.replace("tls", "ssl");
        let (_root, folder) = folder_with(&[("some", &text)]);
        let error = Contender::discover(&folder).unwrap_err();
        assert!(error.to_string().contains("some/contender.toml"), "{error}");
        let source = error.source().unwrap().to_string();
        assert!(
            source.contains("`ssl`") && source.contains("`deflate-takeover`"),
            "{source}"
        );
    }

    #[test]
    fn an_unknown_field_is_an_error() {
        let text = format!("{TEXT}\nthreads = 2");
        let (_root, folder) = folder_with(&[("some", &text)]);
        let error = Contender::discover(&folder).unwrap_err();
        let source = error.source().unwrap().to_string();
        assert!(source.contains("`threads`"), "{source}");
    }

    #[test]
    fn programs_are_found_where_they_were_built_or_lie() {
        let (root, folder) = folder_with(&[
            ("script", TEXT),
            ("built", TEXT),
            ("failed", TEXT),
            ("new", TEXT),
        ]);
        // Not a contender, because it has no manifest.
        fs::create_dir(folder.join("common")).unwrap();
        fs::write(folder.join("script/server"), "").unwrap();
        let cache = root.path().join(BUILT);
        for (name, file, text) in [("built", "server", ""), ("failed", "absent", "no go\n")] {
            fs::create_dir_all(cache.join(name)).unwrap();
            fs::write(cache.join(name).join(file), text).unwrap();
        }
        let found = Contender::discover(&folder).unwrap();
        let absent: Vec<_> = found
            .iter()
            .map(|contender| (contender.name.as_str(), contender.note().absent))
            .collect();
        let unbuilt = "not built; run `make contenders`";
        assert_eq!(
            absent,
            [
                ("built", None),
                ("failed", Some("no go".into())),
                ("new", Some(unbuilt.into())),
                ("script", None),
            ]
        );
    }

    #[test]
    fn a_mode_is_refused_for_what_is_not_offered() {
        let contender = some_contender();
        let mut mode = Mode::plain(Service::Echo);
        assert_eq!(contender.lacks(mode), None);
        mode.tls = true;
        assert_eq!(contender.lacks(mode), None);
        mode.deflate = Deflate::Takeover;
        assert_eq!(
            contender.lacks(mode),
            Some("compression with context takeover is not offered")
        );
        let lack = contender.lacks(Mode::plain(Service::Fanout));
        assert_eq!(lack, Some("publishing is not offered"));
        assert_eq!(contender.lacks(Mode::plain(Service::Acknowledge)), None);
    }
}
