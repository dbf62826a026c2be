//! Why a backend has given no answer, and why one cannot be set up.

use std::time::Duration;

use http::StatusCode;

use crate::protocol::codes::ClientError;

/// Why there is no answer to a question. The client is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum AskError {
    /// Too many questions wait.
    #[error("{waiting_max} requests are waiting, which is the limit")]
    Busy { waiting_max: usize },
    /// The answer is not what Centrifugo's proxies return.
    #[error("answer is not valid: {0}")]
    Invalid(String),
    /// The connection was lost.
    #[error("{0}")]
    Lost(String),
    /// The payload of the client is not JSON, and the backend only takes JSON.
    #[error("payload is not JSON")]
    NotJson,
    /// The backend is not asked, because it has not answered for a while.
    #[error("not asked, because the previous requests were not answered")]
    Paused,
    /// The node stops.
    #[error("node is stopping")]
    Stopping,
    /// The backend responded with another status than 200.
    #[error("server responded with status {0}")]
    Status(StatusCode),
    /// The time is over.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The answer is too large.
    #[error("answer has more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    /// The backend cannot be connected to, so that it has not received the question.
    #[error("{0}")]
    Unsent(String),
}

impl AskError {
    /// Returns whether the backend may answer the same question soon.
    pub(super) const fn is_unavailable(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Timeout(_) | Self::Unsent(_) => true,
            Self::Status(status) => matches!(status.as_u16(), 502..=504),
            _ => false,
        }
    }

    /// Returns a value for metric labels.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "busy",
            Self::Paused => "paused",
            Self::Timeout(_) => "timeout",
            Self::Lost(_) | Self::Stopping | Self::Unsent(_) => "unavailable",
            Self::Status(_) if self.is_unavailable() => "unavailable",
            Self::Invalid(_) | Self::NotJson | Self::Status(_) | Self::TooLarge { .. } => "invalid",
        }
    }

    /// Returns what the client learns.
    pub(crate) fn to_client(&self) -> ClientError {
        match self {
            Self::NotJson => {
                let message = "bad request: payload must be JSON, because a backend receives it";
                ClientError::BAD_REQUEST.with_message(message.into())
            }
            _ => ClientError::INTERNAL,
        }
    }
}
