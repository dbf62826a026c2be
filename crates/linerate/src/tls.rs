//! TLS with rustls, for `wss://`.

mod accept;
mod danger;

use std::{
    io,
    sync::{Arc, LazyLock},
};

use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore,
    client::WantsClientCert,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, client::TlsStream};
use url::Host;

pub use accept::{Greeted, accept};
pub use danger::danger_client_config_trusting_anybody;
pub use linerate_tls::{provider, strict};
pub use rustls;

use crate::link::Transport;

/// Returns the default client configuration, which trusts the system's root certificates, or the
/// bundled ones if the system has none.
pub fn default_client_config() -> Arc<ClientConfig> {
    static CONFIG: LazyLock<Arc<ClientConfig>> =
        LazyLock::new(|| Arc::new(client_config(default_roots())));
    CONFIG.clone()
}

/// Returns the root certificates that clients trust by default: those of the system, or the bundled
/// ones if the system has none.
pub fn default_roots() -> RootCertStore {
    let roots = Some(system_roots()).filter(|roots| !roots.is_empty());
    roots.unwrap_or_else(bundled_roots)
}

/// Returns the root certificates that the system trusts; the environment variables `SSL_CERT_FILE`
/// and `SSL_CERT_DIR` select others.
pub fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::debug!(%error, "cannot load the system's root certificates");
    }
    roots.add_parsable_certificates(native.certs);
    roots
}

/// Returns the root certificates that Mozilla trusted when this version was built.
pub fn bundled_roots() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

/// Returns a client configuration that trusts `roots`.
pub fn client_config(roots: RootCertStore) -> ClientConfig {
    trusting(roots).with_no_client_auth()
}

/// Returns a client configuration that trusts `roots` and presents `chain`, starting with the
/// client's certificate, to servers that request one.
///
/// # Errors
/// The key does not belong to the certificate, or its type is not supported.
pub fn client_config_with_certificate(
    roots: RootCertStore,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, rustls::Error> {
    trusting(roots).with_client_auth_cert(chain, key)
}

fn trusting(roots: RootCertStore) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_root_certificates(roots)
}

/// Returns a server configuration that presents `chain`, starting with the server's certificate.
///
/// # Errors
/// The key does not belong to the certificate, or its type is not supported.
pub fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<rustls::ServerConfig, rustls::Error> {
    rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
}

/// Performs the TLS handshake on `io` and verifies that the certificate is for `host`; also returns
/// the protocol that ALPN selected.
pub(crate) async fn connect(
    config: Arc<ClientConfig>,
    host: &Host<String>,
    io: Transport,
) -> io::Result<(Transport, Option<Vec<u8>>)> {
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
        Host::Ipv4(address) => ServerName::IpAddress((*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress((*address).into()),
    };
    let connector = TlsConnector::from(config);
    match io {
        #[cfg(feature = "http2")]
        Transport::Http2(stream) => Ok(negotiated(connector.connect(name, stream).await?)),
        Transport::Other(io) => Ok(negotiated(connector.connect(name, io).await?)),
        Transport::Tcp(stream) => Ok(negotiated(connector.connect(name, stream).await?)),
    }
}

fn negotiated<S>(stream: TlsStream<S>) -> (Transport, Option<Vec<u8>>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let alpn = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    (Transport::Other(Box::new(stream)), alpn)
}
