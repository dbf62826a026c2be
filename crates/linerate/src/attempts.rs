//! The end of the attempts to connect.

/// The error returned when the maximum number of connection attempts has been made.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("gave up after {attempts_max} attempts to connect")]
#[non_exhaustive]
pub struct AttemptsExhausted {
    /// The maximum number of attempts.
    pub attempts_max: u32,
}
