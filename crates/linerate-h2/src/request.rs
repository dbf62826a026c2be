//! Converts requests of HTTP libraries to the form that the handshake rules expect, and creates the
//! responses (RFC 6455 §4.2, RFC 8441 §5).

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header::COOKIE, request::Parts};
use linerate_proto::handshake::{
    Acceptance, HandshakeError, HandshakeLimits, HttpVersion, PseudoHeaders, Refusal, Request,
};

/// Joins the parts of a cookie.
///
/// RFC 9113 §8.2.3: "If there are multiple Cookie header fields after decompression, these MUST be
/// concatenated into a single octet string using the two-octet delimiter of 0x3b, 0x20 … before
/// being passed into a non-HTTP/2 context".
pub(crate) fn join_cookies(headers: &mut HeaderMap) {
    let parts = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes);
    let parts: Vec<_> = parts.collect();
    if parts.len() > 1
        && let Ok(cookie) = HeaderValue::from_bytes(&parts.join(&b"; "[..]))
    {
        headers.insert(COOKIE, cookie);
    }
}

/// Returns a request of HTTP/1.1 or HTTP/2, which an HTTP library has read, in the form that the
/// handshake rules expect.
///
/// `protocol` is the value of `:protocol` if the library has read it, as hyper does over HTTP/2.
///
/// # Errors
/// The request exceeds a limit or is malformed.
pub fn request(
    parts: &Parts,
    protocol: Option<&str>,
    limits: HandshakeLimits,
) -> Result<Request, HandshakeError> {
    let (method, uri) = (parts.method.as_str(), &parts.uri);
    let target = uri.path_and_query().map(http::uri::PathAndQuery::as_str);
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    let version = match parts.version {
        Version::HTTP_10 => HttpVersion::Http10,
        Version::HTTP_11 => HttpVersion::Http11,
        Version::HTTP_2 => {
            let ours = parts.extensions.get::<h2::ext::Protocol>();
            let pseudo = PseudoHeaders {
                version: HttpVersion::Http2,
                method,
                protocol: ours.map(h2::ext::Protocol::as_str).or(protocol),
                authority: uri.authority().map(http::uri::Authority::as_str),
                path: target.unwrap_or(""),
            };
            return Request::from_pseudo(pseudo, headers, limits);
        }
        _ => return Err(HandshakeError::HttpVersionUnsupported),
    };
    Request::from_parts(method, target.unwrap_or("/"), version, headers, limits)
}

/// Returns the response that opens a WebSocket, for HTTP libraries.
///
/// # Errors
/// A header that the application has added cannot be sent.
pub fn response(acceptance: &Acceptance<'_>) -> Result<Response<()>, HandshakeError> {
    let mut response = Response::builder().status(acceptance.status());
    for (name, value) in acceptance.headers() {
        response = response.header(name, value);
    }
    response
        .body(())
        .map_err(|_| HandshakeError::HeaderValueInvalid)
}

/// Refuses a request.
///
/// # Errors
/// Returns an error if the stream has ended.
pub(crate) fn refuse(
    respond: &mut SendResponse<Bytes>,
    refusal: &Refusal,
) -> Result<(), h2::Error> {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = Response::new(());
    *response.status_mut() = status;
    for (name, value) in refusal.headers() {
        // RFC 9113 §8.2.2: "An endpoint MUST NOT generate an HTTP/2 message containing
        // connection-specific header fields."
        if name.eq_ignore_ascii_case("Connection") || name.eq_ignore_ascii_case("Upgrade") {
            continue;
        }
        if let (Ok(name), Ok(value)) = (
            http::HeaderName::try_from(name),
            http::HeaderValue::try_from(value),
        ) {
            response.headers_mut().append(name, value);
        }
    }
    let body = Bytes::copy_from_slice(refusal.body());
    let mut stream = respond.send_response(response, false)?;
    stream.send_data(body, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_cookie_are_one_and_other_fields_stay() {
        let mut headers = HeaderMap::new();
        join_cookies(&mut headers);
        assert!(headers.is_empty());
        for (name, value) in [
            ("cookie", "a=b"),
            ("accept", "x"),
            ("accept", "y"),
            ("cookie", "c=d"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        join_cookies(&mut headers);
        let values = |name| headers.get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(values("cookie"), ["a=b; c=d"]);
        assert_eq!(values("accept"), ["x", "y"]);
    }
}
