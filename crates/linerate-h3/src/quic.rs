//! QUIC configuration (RFC 9001, RFC 9114 §3.1).

use std::{io, sync::Arc};

use quinn::{
    ClientConfig, ServerConfig,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};

use crate::limits::Http3Limits;

const ALPN: &[u8] = b"h3";

/// Returns the configuration of a server. ALPN is always `h3`, regardless of `tls`.
///
/// # Errors
/// Returns an error if `tls` does not allow TLS 1.3 with AES-128-GCM, which QUIC requires for its
/// first packets.
pub fn server_config(tls: &rustls::ServerConfig, limits: &Http3Limits) -> io::Result<ServerConfig> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    // Early data could be replayed by an attacker.
    tls.max_early_data_size = 0;
    let crypto = QuicServerConfig::try_from(tls).map_err(unusable)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(limits.transport(limits.streams_max));
    Ok(config)
}

/// Returns the configuration of a client. ALPN is always `h3`, regardless of `tls`.
///
/// # Errors
/// The same as those of [`server_config`].
pub fn client_config(tls: &rustls::ClientConfig, limits: &Http3Limits) -> io::Result<ClientConfig> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.enable_early_data = false;
    let crypto = QuicClientConfig::try_from(tls).map_err(unusable)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    // RFC 9114 §6.1: servers open no request streams.
    config.transport_config(limits.transport(0));
    Ok(config)
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
