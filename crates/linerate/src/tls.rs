//! TLS with rustls, for `wss://`.

mod accept;
mod danger;

use std::{
    io,
    sync::{Arc, LazyLock},
};

use linerate_proto::url::Host;
use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    sign::{CertifiedKey, SingleCertAndKey},
};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::TlsConnector;

pub use accept::{HelloInspector, accept};
pub use danger::danger_client_config_trusting_anybody;
pub use linerate_tls::{provider, strict};
pub use rustls;

pub use crate::info::TlsInfo;
use crate::transport::Transport;

/// Returns the default client configuration, which trusts what the operating system trusts, or the
/// bundled root certificates if the system has none.
///
/// See [`system_client_config`] for what that means on each system.
pub fn default_client_config() -> Arc<ClientConfig> {
    static CONFIG: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
        let config = system_client_config().unwrap_or_else(|error| {
            tracing::debug!(%error, "trusting the bundled root certificates");
            client_config(bundled_roots())
        });
        Arc::new(config)
    });
    CONFIG.clone()
}

/// Returns a client configuration that trusts what the operating system trusts.
///
/// On Android, iOS, macOS and Windows, the system verifies certificates itself, including
/// revocations and the restrictions that administrators have set. On other systems, its root
/// certificates are loaded from the usual files once, now; the environment variables
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` select others.
///
/// # Errors
/// The system has no root certificates, which is common in minimal containers.
pub fn system_client_config() -> Result<ClientConfig, rustls::Error> {
    Ok(builder().with_platform_verifier()?.with_no_client_auth())
}

/// Returns a client configuration that trusts `roots`.
pub fn client_config(roots: RootCertStore) -> ClientConfig {
    builder()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Returns the root certificates that Mozilla trusted when this version was built.
pub fn bundled_roots() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

/// Returns `config`, changed so that it presents `chain`, starting with the client's certificate,
/// to servers that request one.
///
/// # Errors
/// The key does not belong to the certificate, or its type is not supported.
pub fn with_client_certificate(
    mut config: ClientConfig,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, rustls::Error> {
    let certified = CertifiedKey::from_der(chain, key, config.crypto_provider())?;
    config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(certified));
    Ok(config)
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
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
    host: &Host,
    io: Transport,
) -> io::Result<(Transport, Option<Vec<u8>>)> {
    let name = match host {
        Host::Name(name) => ServerName::try_from(name.clone())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
        Host::Ipv4(address) => ServerName::IpAddress((*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress((*address).into()),
    };
    let connector = TlsConnector::from(config);
    let stream = connector.connect(name, io).await?;
    let alpn = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    Ok((Transport::Other(Box::new(stream)), alpn))
}
