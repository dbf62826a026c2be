//! The registered brokers, and the start of the one that a URL names.

use std::sync::Arc;

use crate::{
    broker::Broker,
    ingest::Ingest,
    kind::{BrokerKind, ConnectError},
    memory, nats,
    options::BrokerOptions,
    redis,
};

/// All brokers, in the order in which messages list their URLs.
pub const BROKERS: &[BrokerKind] = &[memory::KIND, redis::KIND, nats::KIND];

/// Starts the one of [`BROKERS`] that `url` names. Everything that arrives goes to `ingest`.
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
    BrokerKind::find(BROKERS, url)?.connect(url, options, ingest)
}

#[cfg(test)]
mod tests {
    use std::{error::Error, sync::Arc};

    use super::{BROKERS, connect};
    use crate::{BoxFuture, BrokerKind, BrokerOptions, ConnectError, Event, Ingest};

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
    fn each_scheme_belongs_to_one_broker() {
        let listed = "memory:, redis://, rediss://, nats:// or tls://";
        assert_eq!(BrokerKind::schemes_of(BROKERS), listed);
        for kind in BROKERS {
            for scheme in kind.schemes {
                let found = BrokerKind::find(BROKERS, scheme).unwrap();
                assert_eq!(found.name, kind.name, "{scheme}");
            }
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
            let is_scheme = matches!(error, ConnectError::Scheme { .. });
            assert_eq!(is_scheme, !url.starts_with("redis"), "{url}");
        }
    }
}
