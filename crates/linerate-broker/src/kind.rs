//! Kinds of brokers: the URLs that name one, and how it is started.

use std::{error::Error, sync::Arc};

use crate::{broker::Broker, ingest::Ingest, options::BrokerOptions};

/// The reason why a kind of broker cannot be started. Must show no part of the URL, which may
/// contain a password.
pub type SetupError = Box<dyn Error + Send + Sync>;

/// Starts the broker that a URL names. It returns immediately, and passes everything that arrives
/// to the [`Ingest`].
pub type Start = fn(&str, BrokerOptions, Arc<dyn Ingest>) -> Result<Arc<dyn Broker>, SetupError>;

/// A kind of broker. Everything that depends on which brokers exist is derived from the list of
/// kinds, [`BROKERS`](crate::BROKERS).
#[derive(Clone, Copy, Debug)]
pub struct BrokerKind {
    /// The name for display, such as `redis`.
    pub name: &'static str,
    /// How its URLs begin, such as `redis://`. A URL may extend the part before the colon, as in
    /// `redis+cluster://`.
    pub schemes: &'static [&'static str],
    /// True if the broker is a part of the process, so that no other process can publish in it.
    pub is_embedded: bool,
    /// Starts a broker of this kind.
    pub start: Start,
}

/// The reason why a broker could not be created. The messages show no part of the URL, which may
/// contain a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL belongs to no broker.
    #[error("broker URL must begin with {schemes}")]
    Scheme {
        /// How the URLs of all brokers begin.
        schemes: String,
    },
    /// The URL or an option is invalid, or the system cannot start a thread.
    #[error("cannot set up the {name} broker")]
    Setup {
        /// The name of the broker.
        name: &'static str,
        /// The cause.
        source: SetupError,
    },
}

impl BrokerKind {
    /// Returns the one of `kinds` that a URL names.
    ///
    /// # Errors
    /// Returns an error if the URL names none of them.
    pub fn find<'a>(kinds: &'a [Self], url: &str) -> Result<&'a Self, ConnectError> {
        let scheme = url.split([':', '+']).next().unwrap_or_default();
        let is_named = |known: &&str| known.split(':').next() == Some(scheme);
        let found = kinds.iter().find(|kind| kind.schemes.iter().any(is_named));
        found.ok_or_else(|| ConnectError::Scheme {
            schemes: Self::schemes_of(kinds),
        })
    }

    /// Returns how the URLs of `kinds` begin, as a list for people.
    pub fn schemes_of(kinds: &[Self]) -> String {
        let schemes: Vec<&str> = kinds
            .iter()
            .flat_map(|kind| kind.schemes)
            .copied()
            .collect();
        match &*schemes {
            [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            few => few.concat(),
        }
    }

    /// Starts the broker that `url` names. Everything that arrives goes to `ingest`.
    ///
    /// # Errors
    /// Returns an error if the URL or an option is invalid, or if the system cannot start a thread.
    pub fn connect(
        &self,
        url: &str,
        options: BrokerOptions,
        ingest: Arc<dyn Ingest>,
    ) -> Result<Arc<dyn Broker>, ConnectError> {
        (self.start)(url, options, ingest).map_err(|source| ConnectError::Setup {
            name: self.name,
            source,
        })
    }
}
