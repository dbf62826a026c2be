//! Errors of JetStream as errors of the broker.

use async_nats::jetstream::{
    ErrorCode,
    context::{CreateStreamError, CreateStreamErrorKind},
};

use crate::broker::BrokerError;

/// Converts an error: either the server is unavailable at the moment, or it refuses.
pub(super) fn explain(error: &CreateStreamError) -> BrokerError {
    let is_away = match error.kind() {
        CreateStreamErrorKind::JetStream(error) => {
            error.error_code() == ErrorCode::CLUSTER_NOT_AVAILABLE
        }
        CreateStreamErrorKind::TimedOut
        | CreateStreamErrorKind::Response
        | CreateStreamErrorKind::ResponseParse => true,
        _ => false,
    };
    match is_away {
        true => BrokerError::away(error),
        false => BrokerError::refused(error),
    }
}

/// Converts an error that means that JetStream did not answer: it is disabled, is still starting,
/// or the link is gone.
pub(super) fn unavailable(error: &dyn std::error::Error) -> BrokerError {
    let source = error.source().map(|source| format!(": {source}"));
    BrokerError::away(format!("JetStream: {error}{}", source.unwrap_or_default()))
}
