//! The options of `[[kafka]]`, ready to be used.

use linerate_kafka::{Field, FieldError, Login, SourceOptions, Start, TlsPaths, TopicOptions};
use linerate_source::Template;

use super::{Identity, Reads, SourceSetup};
use crate::{
    client_tls::TlsFiles,
    config::{KafkaOptions, KafkaStart, KafkaTopic},
    endpoint_error::EndpointProblem,
};

pub(super) fn read(options: &KafkaOptions) -> Result<SourceSetup, EndpointProblem> {
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
    let login = login(options)?;
    let topics = options.topics.iter().map(topic);
    let reads = Reads::Records(SourceOptions {
        name: options.name.clone(),
        servers: options.servers.clone(),
        group: options.group.clone(),
        tls,
        login: login.clone(),
        start: match options.start {
            KafkaStart::Earliest => Start::Earliest,
            KafkaStart::Latest => Start::Latest,
        },
        record_bytes_max: options.record_bytes_max,
        prefetch_bytes_max: options.prefetch_bytes_max,
        session_timeout: options.session_timeout,
        topics: topics.collect::<Result<_, _>>()?,
    });
    Ok(SourceSetup {
        identity: Identity::Kafka(options.clone(), login),
        has_files: files.authorities.is_some() || files.certificate.is_some(),
        reads,
    })
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

fn topic(topic: &KafkaTopic) -> Result<TopicOptions, EndpointProblem> {
    let field = |key, name: &str| {
        let field = name.parse::<Field>();
        field.map_err(|error: FieldError| EndpointProblem::invalid(key, error))
    };
    let channel = Template::new(&topic.channel);
    let payload = topic.payload.as_deref();
    let tags = topic.tags.iter();
    let tags = tags.map(|(name, value)| Ok((name.clone(), field("tags", value)?)));
    Ok(TopicOptions {
        topic: topic.name.clone(),
        channel: channel.map_err(|error| EndpointProblem::invalid("channel", error))?,
        payload: payload.map(|name| field("payload", name)).transpose()?,
        tags: tags.collect::<Result<_, _>>()?,
    })
}
