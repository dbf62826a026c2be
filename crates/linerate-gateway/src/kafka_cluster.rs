//! How `[[kafka]]` connects to a cluster.

use linerate_kafka::{ClusterOptions, Login, TlsPaths};

use crate::{client_tls::TlsFiles, config::KafkaOptions, endpoint_error::EndpointProblem};

/// A cluster that can be connected to.
#[derive(Debug)]
pub(crate) struct KafkaCluster {
    pub(crate) options: ClusterOptions,
    /// True if there are files, which may have changed.
    pub(crate) has_files: bool,
}

impl KafkaCluster {
    /// Reads the password, and checks the certificates.
    ///
    /// # Errors
    /// A file cannot be read, or what it contains cannot be used.
    pub(crate) fn read(options: &KafkaOptions) -> Result<Self, EndpointProblem> {
        let tls = options.tls.then(|| TlsPaths {
            authorities: options.tls_authorities.clone(),
            certificate: options.tls_certificate.clone(),
            key: options.tls_key.clone(),
        });
        // librdkafka reads the files, and would report only later that it cannot use them.
        let files = TlsFiles {
            authorities: options.tls_authorities.as_deref(),
            certificate: options.tls_certificate.as_deref(),
            key: options.tls_key.as_deref(),
        };
        files.read()?;
        Ok(Self {
            options: ClusterOptions {
                servers: options.servers.clone(),
                tls,
                login: login(options)?,
            },
            has_files: files.authorities.is_some() || files.certificate.is_some(),
        })
    }
}

fn login(options: &KafkaOptions) -> Result<Option<Login>, EndpointProblem> {
    let (Some(user), Some(password)) = (&options.user, &options.password) else {
        return Ok(None);
    };
    let password = password.read();
    let mechanism = options.mechanism().ok_or("is unknown");
    Ok(Some(Login {
        mechanism: mechanism.map_err(|why| EndpointProblem::invalid("sasl_mechanism", why))?,
        user: user.clone(),
        password: password.map_err(|error| EndpointProblem::invalid("password", error))?,
    }))
}
