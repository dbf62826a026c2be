//! Creates the broker that a URL names.

use std::{io, sync::Arc};

use crate::{
    broker::Broker,
    ingest::Ingest,
    memory::Memory,
    nats::{Nats, NatsConfigError},
    options::BrokerOptions,
    redis::{Redis, RedisError},
};

/// The reason why a broker could not be created. The messages show no part of the URL, which may
/// contain a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// NATS cannot be set up.
    #[error("cannot set up NATS as the broker")]
    Nats(#[from] NatsConfigError),
    /// Redis cannot be set up.
    #[error("cannot set up Redis as the broker")]
    Redis(#[from] RedisError),
    /// The scheme of the URL belongs to no broker.
    #[error("broker URL must begin with memory:, redis://, rediss://, nats:// or tls://")]
    Scheme,
    /// The system could not start a thread.
    #[error("cannot start a thread for the embedded broker")]
    Thread(#[source] io::Error),
}

/// Starts the broker that `url` names: `memory:`, `redis://…`, `rediss://…` (both also with
/// `+sentinel` and `+cluster`), `nats://…` or `tls://…`. Everything that arrives goes to `ingest`.
///
/// Returns immediately. A broker with a server connects in the background, and reconnects for as
/// long as it lives.
///
/// ```
/// # use std::sync::Arc;
/// # use linerate_broker::{BoxFuture, BrokerOptions, Event, Ingest, connect};
/// # struct Node;
/// # impl Ingest for Node {
/// #     fn ingest(&self, _: Vec<Event>) -> BoxFuture<'_, ()> { Box::pin(async {}) }
/// # }
/// let broker = connect("memory:", BrokerOptions::default(), Arc::new(Node))?;
/// # Ok::<(), linerate_broker::ConnectError>(())
/// ```
///
/// # Errors
/// Returns an error if the URL or an option is invalid, or if the system cannot start a thread.
pub fn connect(
    url: &str,
    options: BrokerOptions,
    ingest: Arc<dyn Ingest>,
) -> Result<Arc<dyn Broker>, ConnectError> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme.split('+').next().unwrap_or_default() {
        "memory" => {
            let memory = Memory::new(&options, ingest).map_err(ConnectError::Thread)?;
            Ok(Arc::new(memory))
        }
        "nats" | "tls" => Ok(Arc::new(Nats::new(url, options, ingest)?)),
        "redis" | "rediss" => Ok(Arc::new(Redis::new(url, options, ingest)?)),
        _ => Err(ConnectError::Scheme),
    }
}

#[cfg(test)]
mod tests {
    use std::{error::Error, sync::Arc};

    use super::{ConnectError, connect};
    use crate::{BoxFuture, BrokerOptions, Event, Ingest};

    struct Nobody;

    impl Ingest for Nobody {
        fn ingest(&self, _: Vec<Event>) -> BoxFuture<'_, ()> {
            Box::pin(async {})
        }
    }

    #[test]
    fn the_scheme_selects_the_broker() {
        for (url, name) in [
            ("memory:", "Memory"),
            ("memory://", "Memory"),
            ("redis://127.0.0.1:1", "Redis"),
            ("redis+cluster://127.0.0.1:1", "Redis"),
            ("nats://127.0.0.1:1", "Nats"),
        ] {
            let broker = connect(url, BrokerOptions::default(), Arc::new(Nobody)).unwrap();
            assert!(format!("{broker:?}").starts_with(name), "{url}");
        }
    }

    #[test]
    fn wrong_urls_are_errors_that_show_no_password() {
        for url in ["", "hunter2", "http://h:hunter2@x", "redis://:hunter2/@h"] {
            let result = connect(url, BrokerOptions::default(), Arc::new(Nobody));
            let error = result.err().unwrap();
            let mut text = error.to_string();
            let mut source = error.source();
            while let Some(error) = source {
                text.push_str(&error.to_string());
                source = error.source();
            }
            assert!(!text.contains("hunter2"), "{text}");
            let is_scheme = matches!(error, ConnectError::Scheme);
            assert_eq!(is_scheme, !url.starts_with("redis"), "{url}");
        }
    }
}
