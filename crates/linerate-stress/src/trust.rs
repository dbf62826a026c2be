//! TLS configuration of the clients, for servers with self-signed certificates.

use std::sync::Arc;

use rustls::{ClientConfig, client::Resumption};

/// Returns a client configuration that accepts any certificate and never resumes sessions.
pub(crate) fn anybody() -> Arc<ClientConfig> {
    let mut config = linerate::tls::danger_client_config_trusting_anybody();
    config.resumption = Resumption::disabled();
    Arc::new(config)
}
