//! The servers and how to authenticate with them: the URL of the broker.

use std::{fmt, fs, io, path::Path, sync::Arc, time::Duration};

use async_nats::{ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use rustls_platform_verifier::BuilderVerifierExt;
use url::Url;

use super::subject::SubjectError;
use crate::options::BrokerOptions;

/// The maximum number of servers in a URL.
const SERVERS_MAX: usize = 32;

/// The maximum size in bytes of a file with credentials, keys or certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The reason why a NATS broker cannot be set up with the configuration. Never shows secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NatsConfigError {
    /// The file with credentials contains none.
    #[error("file named by {parameter} contains no credentials")]
    Credentials {
        /// The parameter of the URL that names the file.
        parameter: &'static str,
    },
    /// A file cannot be read.
    #[error("cannot read the file named by {parameter}")]
    File {
        /// The parameter of the URL that names the file.
        parameter: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A server has no name.
    #[error("broker URL has no host")]
    Host,
    /// A parameter is unknown.
    #[error("broker URL has the unknown parameter `{name}`; use {}", PARAMETERS.join(", "))]
    Parameter {
        /// The name of the parameter.
        name: String,
    },
    /// The prefix cannot begin a subject.
    #[error("invalid prefix for NATS subjects")]
    Prefix(#[from] SubjectError),
    /// The scheme is not `nats` or `tls`.
    #[error("broker URL must begin with nats:// or tls://")]
    Scheme,
    /// The URL names too many servers.
    #[error("broker URL names {servers} servers; at most {servers_max} are allowed")]
    Servers {
        /// The number of servers.
        servers: usize,
        /// The maximum number of servers.
        servers_max: usize,
    },
    /// The subject cannot be published on.
    #[error("invalid NATS subject")]
    Subject(#[source] SubjectError),
    /// The system could not start a thread.
    #[error("cannot start a thread for the NATS broker")]
    Thread(#[source] io::Error),
    /// Certificates or keys cannot be used.
    #[error("cannot use the TLS certificates or keys")]
    Tls(#[from] rustls::Error),
    /// The text is not a URL.
    #[error("invalid broker URL")]
    Url(#[from] url::ParseError),
}

const PARAMETERS: [&str; 6] = [
    "creds",
    "nkey",
    "tls",
    "tls_ca",
    "tls_certificate",
    "tls_key",
];

/// The servers, and how to connect to them.
#[derive(Clone)]
pub(super) struct Connector {
    servers: Vec<ServerAddr>,
    auth: Auth,
    is_tls: bool,
    tls: Option<Arc<ClientConfig>>,
    dial_timeout: Duration,
    command_timeout: Duration,
}

#[derive(Clone)]
enum Auth {
    Anonymous,
    /// The contents of a credentials file: a token of the user, and the seed of a key.
    Credentials(String),
    /// The seed of a key.
    Nkey(String),
    Token(String),
    User {
        name: String,
        password: String,
    },
}

#[derive(Default)]
struct Parameters {
    credentials: Option<String>,
    nkey: Option<String>,
    is_tls: bool,
    authorities: Option<Vec<u8>>,
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

impl Connector {
    /// Parses the URL of the broker, and reads the files that it names.
    ///
    /// The form is `nats://[user[:password]@]host[:port][,host[:port]…][?parameter=…&…]`. A user
    /// without a password is a token; `tls://` requires TLS.
    pub(super) fn new(url: &str, options: &BrokerOptions) -> Result<Self, NatsConfigError> {
        let urls = urls(url)?;
        let mut auth = Auth::Anonymous;
        let mut parameters = Parameters::default();
        let mut servers = Vec::new();
        for mut url in urls {
            auth = match Auth::of(&url) {
                Auth::Anonymous => auth,
                other => other,
            };
            parameters.read(&url)?;
            parameters.is_tls |= url.scheme() == "tls";
            servers.push(without_secrets(&mut url)?);
        }
        if let Some(credentials) = parameters.credentials.take() {
            auth = Auth::Credentials(credentials);
        } else if let Some(seed) = parameters.nkey.take() {
            auth = Auth::Nkey(seed);
        }
        // The server may also require TLS on its own.
        let tls = match parameters.is_tls || options.tls_authorities.is_some() {
            true => Some(Arc::new(parameters.tls(options)?)),
            false => None,
        };
        let dial = Self {
            servers,
            auth,
            is_tls: parameters.is_tls,
            tls,
            dial_timeout: options.dial_timeout,
            command_timeout: options.command_timeout,
        };
        // Detect invalid settings now, not at the first connection.
        dial.connect_options()?;
        Ok(dial)
    }

    /// Returns the servers, without any secrets.
    pub(super) fn servers(&self) -> &[ServerAddr] {
        &self.servers
    }

    /// Returns the scheme for addresses that servers announce.
    pub(super) const fn scheme(&self) -> &'static str {
        match self.is_tls {
            true => "tls",
            false => "nats",
        }
    }

    /// Returns the options for a connection to any of the servers.
    pub(super) fn connect_options(&self) -> Result<ConnectOptions, NatsConfigError> {
        let options = ConnectOptions::new()
            .name("linerate")
            .connection_timeout(self.dial_timeout)
            .request_timeout(Some(self.command_timeout));
        let options = match &self.auth {
            Auth::Anonymous => options,
            Auth::Credentials(text) => {
                let refused = |_| NatsConfigError::Credentials { parameter: "creds" };
                options.credentials(text).map_err(refused)?
            }
            Auth::Nkey(seed) => options.nkey(seed.clone()),
            Auth::Token(token) => options.token(token.clone()),
            Auth::User { name, password } => {
                options.user_and_password(name.clone(), password.clone())
            }
        };
        Ok(match &self.tls {
            Some(tls) => options
                .require_tls(self.is_tls)
                .tls_client_config(ClientConfig::clone(tls)),
            None => options,
        })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("servers", &self.servers)
            .field("is_tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

impl Auth {
    fn of(url: &Url) -> Self {
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        match (url.username(), url.password()) {
            ("", None) => Self::Anonymous,
            (token, None) => Self::Token(decode(token)),
            (name, Some(password)) => Self::User {
                name: decode(name),
                password: decode(password),
            },
        }
    }
}

impl Parameters {
    fn read(&mut self, url: &Url) -> Result<(), NatsConfigError> {
        for (name, value) in url.query_pairs() {
            match &*name {
                "creds" => self.credentials = Some(read_text("creds", &value)?),
                "nkey" => self.nkey = Some(read_text("nkey", &value)?.trim().to_owned()),
                "tls" => self.is_tls = value != "false",
                "tls_ca" => self.authorities = Some(read("tls_ca", &value)?),
                "tls_certificate" => self.certificate = Some(read("tls_certificate", &value)?),
                "tls_key" => self.key = Some(read("tls_key", &value)?),
                _ => {
                    let name = name.into_owned();
                    return Err(NatsConfigError::Parameter { name });
                }
            }
        }
        Ok(())
    }

    fn tls(&self, options: &BrokerOptions) -> Result<ClientConfig, NatsConfigError> {
        let authorities = self
            .authorities
            .as_ref()
            .or(options.tls_authorities.as_ref());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = match authorities {
            Some(pem) => config.with_root_certificates(roots(pem)?),
            None => config.with_platform_verifier()?,
        };
        let (Some(certificate), Some(key)) = (&self.certificate, &self.key) else {
            return Ok(config.with_no_client_auth());
        };
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| not_usable())?;
        Ok(config.with_client_auth_cert(chain, key)?)
    }
}

fn urls(url: &str) -> Result<Vec<Url>, NatsConfigError> {
    let (scheme, rest) = url.split_once("://").ok_or(NatsConfigError::Scheme)?;
    if !matches!(scheme, "nats" | "tls") {
        return Err(NatsConfigError::Scheme);
    }
    let servers = rest.split(',').count();
    if servers > SERVERS_MAX {
        let servers_max = SERVERS_MAX;
        return Err(NatsConfigError::Servers {
            servers,
            servers_max,
        });
    }
    let parse = |server: &str| {
        let server = server.split_once("://").map_or(server, |(_, rest)| rest);
        Ok(Url::parse(&format!("{scheme}://{server}"))?)
    };
    rest.split(',').map(parse).collect()
}

/// Removes secrets from an address, because async-nats logs addresses as they are.
fn without_secrets(url: &mut Url) -> Result<ServerAddr, NatsConfigError> {
    if url.host_str().is_none_or(str::is_empty) {
        return Err(NatsConfigError::Host);
    }
    url.set_query(None);
    url.set_fragment(None);
    url.set_path("");
    url.set_username("")
        .and_then(|()| url.set_password(None))
        .map_err(|()| NatsConfigError::Host)?;
    ServerAddr::from_url(url.clone()).map_err(|_| NatsConfigError::Scheme)
}

fn read(parameter: &'static str, path: &str) -> Result<Vec<u8>, NatsConfigError> {
    let read = || {
        let path = Path::new(path);
        if fs::metadata(path)?.len() > FILE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        fs::read(path)
    };
    read().map_err(|source| NatsConfigError::File { parameter, source })
}

fn read_text(parameter: &'static str, path: &str) -> Result<String, NatsConfigError> {
    let bytes = read(parameter, path)?;
    String::from_utf8(bytes).map_err(|_| NatsConfigError::Credentials { parameter })
}

fn roots(pem: &[u8]) -> Result<RootCertStore, NatsConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, NatsConfigError> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(not_usable()),
    }
}

fn not_usable() -> NatsConfigError {
    NatsConfigError::Tls(rustls::Error::General("not PEM".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::{error::Error as _, fs};

    use super::{Auth, Connector, NatsConfigError};
    use crate::options::BrokerOptions;

    fn dial(url: &str) -> Result<Connector, NatsConfigError> {
        Connector::new(url, &BrokerOptions::default())
    }

    fn addresses(dial: &Connector) -> Vec<&str> {
        dial.servers()
            .iter()
            .map(|server| server.as_url_str())
            .collect()
    }

    #[test]
    fn a_url_names_one_server_or_several() {
        let one = dial("nats://127.0.0.1:4223").unwrap();
        assert_eq!(addresses(&one), ["nats://127.0.0.1:4223"]);
        let two = dial("nats://a:4222,nats://b:4223").unwrap();
        assert_eq!(addresses(&two), ["nats://a:4222", "nats://b:4223"]);
        let default = dial("nats://[::1],b").unwrap();
        assert_eq!(default.servers()[0].port(), 4222);
    }

    #[test]
    fn secrets_are_taken_out_of_the_address_and_never_shown() {
        for url in [
            "nats://max:s3cr%40t@a:4222",
            "nats://s3cr%40t@a:4222",
            "tls://max:s3cr%40t@a:4222,b",
        ] {
            let dial = dial(url).unwrap();
            assert!(!format!("{dial:?} {:?}", addresses(&dial)).contains("s3cr"));
            match &dial.auth {
                Auth::Token(secret) => assert_eq!(secret, "s3cr@t"),
                Auth::User { name, password } => {
                    assert_eq!((name.as_str(), password.as_str()), ("max", "s3cr@t"));
                }
                _ => panic!("found no secret"),
            }
        }
        for url in [
            "nats://max:s3cret@",
            "redis://max:s3cret@a",
            "nats://max:s3cret@a:x",
            "nats://max:s3cret@a?x=1",
        ] {
            let error = dial(url).unwrap_err();
            let source = error.source().map(ToString::to_string);
            assert!(!format!("{error} {error:?} {source:?}").contains("s3cret"));
        }
    }

    #[test]
    fn contradictory_settings_are_an_error() {
        assert!(matches!(dial("a:4222"), Err(NatsConfigError::Scheme)));
        assert!(matches!(
            dial("nats://"),
            Err(NatsConfigError::Url(_) | NatsConfigError::Host)
        ));
        let error = dial("nats://a?tls_cert=x").unwrap_err();
        assert!(error.to_string().contains("`tls_cert`"), "{error}");
        assert!(matches!(
            dial("nats://a?creds=/nowhere"),
            Err(NatsConfigError::File { .. })
        ));
        let many = format!("nats://{}", ["a"; 33].join(","));
        let error = dial(&many).unwrap_err().to_string();
        assert!(error.contains("33") && error.contains("32"), "{error}");
        assert!(dial(&format!("nats://{}", ["a"; 32].join(","))).is_ok());
    }

    #[test]
    fn files_must_have_the_expected_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "nothing of use").unwrap();
        let path = file.path().display();
        assert!(matches!(
            dial(&format!("nats://a?creds={path}")),
            Err(NatsConfigError::Credentials { .. })
        ));
        assert!(matches!(
            dial(&format!("tls://a?tls_ca={path}")),
            Err(NatsConfigError::Tls(_))
        ));
    }
}
