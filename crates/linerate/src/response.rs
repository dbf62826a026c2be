//! The server's response to the opening handshake.

use std::{
    borrow::Cow,
    fmt,
    time::{Duration, SystemTime},
};

use linerate_proto::handshake::{Headers, Negotiated};

/// The server's response to the request to open a WebSocket.
///
/// If the server refuses the request, it is in
/// [`Error::StatusUnexpected`](crate::Error::StatusUnexpected); otherwise
/// [`Client::connect_with_response`](crate::Client::connect_with_response) returns it.
///
/// ```no_run
/// # async fn f() -> linerate::Result<()> {
/// use linerate::{Client, Error};
///
/// match Client::new().connect("wss://example.com/chat").await {
///     Err(Error::StatusUnexpected(response)) if response.status == 401 => {
///         println!("{:?}", response.headers.first_text("WWW-Authenticate"));
///         println!("{}", response.text());
///     }
///     opened => _ = opened?,
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Response {
    /// The HTTP status. 101 opens a WebSocket; over HTTP/2 and HTTP/3, 200 to 299 do.
    pub status: u16,
    /// The headers.
    pub headers: Headers,
    /// The beginning of the body of a refusal, at most
    /// [`response_body_bytes_max`](crate::Options::response_body_bytes_max) bytes. Empty for
    /// redirects and for a response that opens a WebSocket.
    pub body: Vec<u8>,
    /// True if the rest of the body is missing: it is too long, was too slow, or was cut off.
    pub is_truncated: bool,
}

impl Response {
    /// Creates the response that opened a WebSocket.
    pub(crate) fn opened(negotiated: Negotiated) -> Self {
        Self {
            status: negotiated.status(),
            headers: negotiated.into_headers(),
            body: Vec::new(),
            is_truncated: false,
        }
    }

    /// Returns the body as text, with replacement characters for bytes that are not UTF-8. The
    /// server controls this text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Returns how long to wait before the next attempt, if the server asks for that with a
    /// `Retry-After` header (RFC 9110 §10.2.3). The server chooses any value;
    /// [`Backoff`](crate::Backoff::with_retry_after_max) limits it.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(self.headers.first_text("Retry-After")?, SystemTime::now())
    }
}

/// Returns the time from `now` that a `Retry-After` header asks to wait: a number of seconds or a
/// date, which counts as no time if it is past.
fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit is longer than any limit.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

impl fmt::Display for Response {
    /// Writes the status and the likely remedy, without text that the server controls.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "server refused the WebSocket with status {}",
            self.status
        )?;
        let remedy = match self.status {
            200..=299 => "it may not be a WebSocket server, or the path is wrong",
            300..=399 => "see the Location header and Client::with_redirects_max",
            401 => "credentials are missing or wrong",
            403 => "check the credentials and the Origin header",
            404 => "check the path of the URL",
            407 => "a proxy requires credentials",
            426 => "see the Upgrade and Sec-WebSocket-Version headers",
            429 | 503 => "try again later",
            _ => return Ok(()),
        };
        write!(f, ": {remedy}")
    }
}

impl fmt::Debug for Response {
    /// Omits the body, which the server controls and which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .field("is_truncated", &self.is_truncated)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, expected) in [
            ("0", Some(0)),
            ("120", Some(120)),
            ("99999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:38 GMT", Some(1)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("1, 2", None),
            ("soon", None),
            ("Sun, 99 Nov 1994 08:49:38 GMT", None),
        ] {
            let expected = expected.map(Duration::from_secs);
            assert_eq!(retry_after(value, now), expected, "{value}");
        }
    }
}
