//! The options of the broker that the configuration names.

use std::fs;

use linerate_broker::{BrokerOptions, sequencer::SequencerLimits};

use super::{BindError, to_usize};
use crate::config::Config;

/// Returns the options, with the certificates that they name.
///
/// # Errors
/// The certificates cannot be read.
pub(super) fn options(config: &Config) -> Result<BrokerOptions, BindError> {
    let (broker, history) = (&config.broker, &config.history);
    let authorities = broker.tls_authorities.as_ref().map(|path| {
        fs::read(path).map_err(|source| BindError::Authorities {
            path: path.clone(),
            source,
        })
    });
    Ok(BrokerOptions {
        command_timeout: broker.request_timeout,
        prefix: broker.prefix.clone(),
        probe_interval: broker.probe_interval,
        probe_timeout: broker.probe_timeout,
        reconnect_delay_max: broker.reconnect_wait_max,
        sequencer: SequencerLimits {
            channel_bytes_max: history.channel_bytes_max,
            channel_messages_max: history.channel_messages_max,
            channels_max: history.channels_max,
            total_bytes_max: to_usize(config.history_budget_bytes()),
            ..SequencerLimits::default()
        },
        stream_bytes_max: broker.stream_bytes_max,
        stream_replicas: broker.stream_replicas,
        tls_authorities: authorities.transpose()?,
        ..BrokerOptions::default()
    })
}
