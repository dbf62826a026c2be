//! Why a request to Pusher's HTTP API is refused.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use linerate_broker::BrokerError;
use linerate_hub::channel::ChannelNameError;
use linerate_kafka::ProduceError;

use crate::node::PublishError;

/// Why a request is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum PusherError {
    /// A parameter of the signature is missing or wrong.
    #[error("authentication parameter {0} is missing or wrong")]
    Authentication(&'static str),
    /// A batch has too many events.
    #[error("batch has {count} events; at most {count_max} are allowed")]
    Batch { count: usize, count_max: usize },
    /// The body is too long, or cannot be read.
    #[error("cannot read the request, or it has more than {bytes_max} bytes")]
    Body { bytes_max: usize },
    /// The broker refuses, or is unavailable.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The name of a channel is not valid.
    #[error(transparent)]
    Channel(#[from] ChannelNameError),
    /// An event has no channel, or too many.
    #[error("event has {count} channels; 1 to {count_max} are allowed")]
    Channels { count: usize, count_max: usize },
    /// The data of an event is too long.
    #[error("event has {bytes} bytes of data; at most {bytes_max} are allowed")]
    Data { bytes: usize, bytes_max: usize },
    /// The time of the request differs too much from that of the server.
    #[error("auth_timestamp is more than {seconds_max} s from the time of the server")]
    Expired { seconds_max: u64 },
    /// Kafka has not stored the event.
    #[error(transparent)]
    Kafka(#[from] ProduceError),
    /// Too many signatures from the same address were wrong.
    #[error("too many wrong signatures from your address; try again in {} s", .0.as_secs() + 1)]
    Limited(Duration),
    /// The body is not the JSON of the method.
    #[error("malformed request: {0}")]
    Malformed(String),
    /// The name of an event is empty, too long, or only for the server.
    #[error("name of the event must have 1 to {bytes_max} bytes and not begin with \"pusher:\"")]
    Name { bytes_max: usize },
    /// Only presence channels have users.
    #[error("users are only known in presence channels")]
    NoPresence,
    /// The channel is a pattern of the broker.
    #[error("cannot use a pattern as a channel")]
    Pattern,
    /// The signature does not match.
    #[error("signature is wrong")]
    Signature,
    /// The socket ID is not two numbers.
    #[error("socket_id must be two numbers, such as 123.456")]
    SocketId,
    /// The API is switched off.
    #[error("this API is switched off (protocols.pusher = false)")]
    SwitchedOff,
    /// The app is another one.
    #[error("unknown app")]
    UnknownApp,
    /// There is no such method.
    #[error("unknown method")]
    UnknownMethod,
}

impl PusherError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Authentication(_) | Self::Expired { .. } | Self::Signature => {
                StatusCode::UNAUTHORIZED
            }
            Self::Body { .. }
            | Self::Broker(BrokerError::PayloadTooLarge { .. })
            | Self::Data { .. }
            | Self::Kafka(ProduceError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broker(_) | Self::Kafka(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Limited(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::SwitchedOff | Self::UnknownApp | Self::UnknownMethod => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

impl From<PublishError> for PusherError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Broker(error) => error.into(),
            PublishError::Kafka(error) => error.into(),
        }
    }
}

impl IntoResponse for PusherError {
    fn into_response(self) -> Response {
        let mut response = (self.status(), format!("{self}\n")).into_response();
        if let Self::Limited(wait) = self {
            let seconds = HeaderValue::from(wait.as_secs() + 1);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}
