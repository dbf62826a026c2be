//! A certificate for one run, for tests over TLS.

use std::sync::Arc;

use linerate::tls::rustls::{self, pki_types::PrivateKeyDer};

/// Returns a TLS configuration with a new self-signed certificate for `localhost`, `127.0.0.1` and
/// `::1`.
pub(crate) fn self_signed() -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let names = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
    let certified = rcgen::generate_simple_self_signed(names)?;
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der())
        .map_err(|error| anyhow::anyhow!("key of the self-signed certificate: {error}"))?;
    let config = linerate::tls::server_config(vec![certified.cert.der().clone()], key)?;
    Ok(Arc::new(config))
}
