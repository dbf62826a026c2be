//! Whom clients trust: the servers of this program have certificates that they made themselves.

use std::sync::Arc;

use rustls::{ClientConfig, client::Resumption};

/// Returns how clients speak TLS to a server that they started: with whole handshakes.
pub(crate) fn anybody() -> Arc<ClientConfig> {
    let mut config = linerate::tls::danger_client_config_trusting_anybody();
    config.resumption = Resumption::disabled();
    Arc::new(config)
}
