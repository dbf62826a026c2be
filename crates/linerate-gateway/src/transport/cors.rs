//! Cross-origin access to responses (Fetch Standard §3.3). Whether the origin is allowed has been
//! checked before.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::Admitted;

/// The value of the request's `Origin` header. The origin has been checked.
#[derive(Clone, Debug)]
pub(crate) struct Cors(Option<HeaderValue>);

impl Cors {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self(headers.get(header::ORIGIN).cloned())
    }

    /// Adds the headers that let the page read the response.
    pub(crate) fn allow(self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = self.0 {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            let credentials = header::ACCESS_CONTROL_ALLOW_CREDENTIALS;
            headers.insert(credentials, HeaderValue::from_static("true"));
        }
        response
    }
}

/// Answers a preflight request.
pub(super) async fn preflight(admitted: Admitted) -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, x-phoenix-authtoken",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    admitted
        .cors
        .allow((StatusCode::NO_CONTENT, headers).into_response())
}
