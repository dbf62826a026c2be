//! The options of `[[kafka]]`, ready to be used.

use linerate_kafka::{Field, FieldError, SourceOptions, Start, TopicOptions};
use linerate_source::Template;

use super::{Identity, Reads, SourceSetup};
use crate::{
    config::{KafkaOptions, KafkaStart, KafkaTopic},
    endpoint_error::EndpointProblem,
    kafka_cluster::KafkaCluster,
};

pub(super) fn read(options: &KafkaOptions) -> Result<SourceSetup, EndpointProblem> {
    let cluster = KafkaCluster::read(options)?;
    let topics = options.topics.iter().map(topic);
    let reads = Reads::Records(SourceOptions {
        name: options.name.clone(),
        cluster: cluster.options.clone(),
        group: options.group.clone(),
        start: match options.start {
            KafkaStart::Earliest => Start::Earliest,
            KafkaStart::Latest => Start::Latest,
        },
        record_bytes_max: options.record_bytes_max,
        prefetch_bytes_max: options.prefetch_bytes_max,
        session_timeout: options.session_timeout,
        topics: topics.collect::<Result<_, _>>()?,
    });
    // Producers are replaced without the source.
    let read = KafkaOptions {
        producers: Vec::new(),
        ..options.clone()
    };
    Ok(SourceSetup {
        identity: Identity::Kafka(read, cluster.options.login),
        has_files: cluster.has_files,
        reads,
    })
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
