//! The application's backends, which are asked over HTTP what clients may do.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `answer` | decodes answers |
//! | `breaker` | stops asking a backend that does not answer |
//! | `call` | sends a question, with limits on time, number and size |
//! | `error` | why there is no answer |
//! | `headers` | headers of clients that are forwarded |
//! | `http` | the HTTP client of a backend |
//! | `question` | encodes questions |
//!
//! Questions and answers are JSON with the field names of Centrifugo's proxies. What cannot be
//! answered is refused: a backend that is deaf, slow or wrong admits no client.

pub(crate) mod answer;
mod breaker;
mod call;
mod error;
mod headers;
mod http;
mod question;

use std::{collections::HashMap, sync::Arc};

pub(crate) use answer::{Admitted, Published, Renewal, Verdict};
pub(crate) use call::Backend;
pub(crate) use error::AskError;
pub(crate) use headers::{ForwardedHeaders, Forwarding, HEADERS_BYTES_MAX, PortableHeaders};
use question::Event;
pub(crate) use question::{Asker, Question};

use crate::{
    config::{BackendOptions, backend_name},
    endpoint_error::EndpointError,
};

/// The configured backends.
#[derive(Debug, Default)]
pub(crate) struct Backends {
    named: HashMap<String, Arc<Backend>>,
    /// Which headers of clients to keep for them.
    pub(crate) forwarding: Forwarding,
}

impl Backends {
    /// Prepares the backends. One whose options have not changed since `previous` keeps its
    /// connections, and what is known of its failures.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or a certificate or header is invalid.
    pub(crate) fn new(
        options: &[BackendOptions],
        previous: Option<&Self>,
    ) -> Result<Self, EndpointError> {
        let renew = |options: &BackendOptions| {
            let known = previous.and_then(|previous| previous.named.get(&options.name));
            let backend = match known.filter(|known| known.still_has(options)) {
                Some(known) => known.clone(),
                None => Arc::new(Backend::new(options)?),
            };
            Ok((options.name.clone(), backend))
        };
        Ok(Self {
            named: options.iter().map(renew).collect::<Result<_, _>>()?,
            forwarding: Forwarding::new(options),
        })
    }

    /// Returns all backends, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Backend>> {
        let mut all: Vec<_> = self.named.values().cloned().collect();
        all.sort_unstable_by(|one, other| one.name().cmp(other.name()));
        all
    }

    /// Returns the backend that an option refers to, if it is set.
    pub(crate) fn find(&self, name: &Option<String>) -> Option<Arc<Backend>> {
        self.named.get(backend_name(name)?).cloned()
    }
}
