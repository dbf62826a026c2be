//! Responses to requests that are not for a WebSocket, such as health checks (RFC 9110, RFC 9112).

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use super::BuildError;
use super::headers::{ApplicationHeaders, append_header, check_header};
use super::response::reason_phrase;

/// A complete response to a request that is not for a WebSocket. It announces the end of the
/// connection, like a [`Refusal`](super::Refusal).
///
/// ```
/// use linerate_proto::handshake::HttpResponse;
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let response = HttpResponse::text("ok\n").with_header("Cache-Control", "no-store")?;
/// let mut output = Vec::new();
/// response.encode(&mut output);
/// assert_eq!(
///     String::from_utf8(output)?,
///     "HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: no-store\r\n\
///      Content-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n\r\nok\n"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpResponse {
    status: u16,
    content_type: Cow<'static, str>,
    headers: ApplicationHeaders,
    body: Cow<'static, [u8]>,
    has_body: bool,
}

impl HttpResponse {
    /// Creates a response with status 200 and a body of text.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        let body = match text.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Self::with_body("text/plain; charset=utf-8".into(), body)
    }

    /// Creates a response with status 200 and a body of the given media type.
    ///
    /// # Errors
    ///
    /// Fails if the media type contains a control character.
    pub fn bytes(
        content_type: impl Into<Cow<'static, str>>,
        body: impl Into<Cow<'static, [u8]>>,
    ) -> Result<Self, BuildError> {
        let content_type = content_type.into();
        check_header("Content-Type", content_type.as_bytes())?;
        Ok(Self::with_body(content_type, body.into()))
    }

    /// Sets the status.
    ///
    /// # Errors
    ///
    /// Fails with [`BuildError::ResponseStatusInvalid`] if the status is not from 200 to 599, or is
    /// 204, 205 or 304, which have no body.
    pub fn with_status(mut self, status: u16) -> Result<Self, BuildError> {
        self.status = match status {
            204 | 205 | 304 => return Err(BuildError::ResponseStatusInvalid { status }),
            200..=599 => status,
            _ => return Err(BuildError::ResponseStatusInvalid { status }),
        };
        Ok(self)
    }

    /// Adds a header, for example `Retry-After`.
    ///
    /// # Errors
    ///
    /// Fails if the name is not a token, the value contains a control character, or the response
    /// sets the header itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        if name.eq_ignore_ascii_case("Content-Type") {
            return Err(BuildError::HeaderReserved);
        }
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// Omits the body, as required in the response to a HEAD request (RFC 9110 §9.3.2);
    /// `Content-Length` is still sent.
    pub fn without_body(mut self) -> Self {
        self.has_body = false;
        self
    }

    /// Returns the status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Appends the response to `output`.
    pub fn encode(&self, output: &mut Vec<u8>) {
        let reason = reason_phrase(self.status);
        output.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", self.status).as_bytes());
        append_header(output, "Connection", b"close");
        for (name, value) in self.headers.iter() {
            append_header(output, name, value.as_bytes());
        }
        append_header(output, "Content-Type", self.content_type.as_bytes());
        output.extend_from_slice(format!("Content-Length: {}\r\n\r\n", self.body.len()).as_bytes());
        if self.has_body {
            output.extend_from_slice(&self.body);
        }
    }

    fn with_body(content_type: Cow<'static, str>, body: Cow<'static, [u8]>) -> Self {
        Self {
            status: 200,
            content_type,
            headers: ApplicationHeaders::default(),
            body,
            has_body: true,
        }
    }
}

impl fmt::Debug for HttpResponse {
    /// Omits the body and the application's headers, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_without_a_body_and_outside_the_range_are_refused() {
        for status in [200, 203, 206, 303, 305, 404, 503, 599] {
            let response = HttpResponse::text("x").with_status(status).unwrap();
            assert_eq!(response.status(), status);
        }
        for status in [0, 101, 199, 204, 205, 304, 600, u16::MAX] {
            let error = HttpResponse::text("x").with_status(status).unwrap_err();
            assert_eq!(error, BuildError::ResponseStatusInvalid { status });
        }
    }

    #[test]
    fn h23_headers_cannot_be_injected_or_set_twice() {
        for value in ["a\r\nX: b", "a\nX: b", "a\0"] {
            let error = HttpResponse::text("x").with_header("X", value).unwrap_err();
            assert_eq!(error, BuildError::HeaderValueInvalid { offset: 1 });
            let error = HttpResponse::bytes(value, &b"x"[..]).unwrap_err();
            assert_eq!(error, BuildError::HeaderValueInvalid { offset: 1 });
        }
        for name in [
            "content-length",
            "Content-type",
            "Transfer-Encoding",
            "CONNECTION",
        ] {
            let error = HttpResponse::text("x").with_header(name, "1").unwrap_err();
            assert_eq!(error, BuildError::HeaderReserved);
        }
    }

    #[test]
    fn the_response_to_head_has_the_length_of_the_body_it_omits() {
        let mut output = Vec::new();
        let response = HttpResponse::bytes("application/json", &b"{}"[..]).unwrap();
        response
            .with_status(503)
            .unwrap()
            .without_body()
            .encode(&mut output);
        assert_eq!(
            output,
            b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\
              Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
        );
    }
}
