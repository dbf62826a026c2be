//! Where clients connect.

use super::Gateway;
use crate::{config::Config, protocol::PROTOCOLS};

impl Gateway {
    /// Returns the client protocols that a configuration makes available, by their keys in
    /// `[protocols]`, with the paths that their clients request.
    pub fn client_paths(config: &Config) -> Vec<(&'static str, Vec<&'static str>)> {
        let available = PROTOCOLS
            .iter()
            .filter(|protocol| (protocol.switch.is_on)(&config.protocols));
        let named = available.map(|protocol| {
            let key = protocol.switch.key;
            let dialects = protocol.dialects.iter().map(|dialect| dialect.path);
            let polling = protocol.polling.map(|endpoint| endpoint.path);
            let emulation = protocol.emulation.as_ref().map(|endpoint| endpoint.path);
            let mut paths: Vec<_> = dialects.chain(polling).chain(emulation).collect();
            paths.dedup();
            (key.strip_prefix("protocols.").unwrap_or(key), paths)
        });
        named.collect()
    }
}
