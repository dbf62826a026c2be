//! Pages for people whose browser has opened an address that is an error.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::Response,
};

use super::assets;

/// Longer messages are not shown as a page, in bytes.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Shows an error as a page if a browser asks for one; programs receive its text.
pub(super) async fn for_browsers(request: Request, next: Next) -> Response {
    let is_for_page = *request.method() == Method::GET && prefers_page(request.headers());
    let response = next.run(request).await;
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_for_page || !is_error || !has_text(response.headers()) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let message = to_bytes(body, MESSAGE_BYTES_MAX).await.unwrap_or_default();
    let page = page(status, &String::from_utf8_lossy(&message));
    let headers = &mut head.headers;
    headers.remove(header::CONTENT_LENGTH);
    let content_type = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    Response::from_parts(head, Body::from(page))
}

/// Returns whether a browser is about to show the response, rather than a script to read it.
fn prefers_page(request: &HeaderMap) -> bool {
    let accepted = request.get(header::ACCEPT);
    let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.starts_with("text/html"))
        && !request.contains_key(header::UPGRADE)
}

fn has_text(response: &HeaderMap) -> bool {
    let content_type = response.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    content_type.is_some_and(|it| it.starts_with("text/plain"))
}

fn page(status: StatusCode, message: &str) -> String {
    let mut message = message.trim().to_owned();
    if let Some(first) = message.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let reason = status.canonical_reason().unwrap_or("Error");
    let status = format!("{} {reason}", status.as_u16());
    assets::text("error.html")
        .replace("{status}", &status)
        .replace("{message}", &escaped(&message))
}

/// Returns text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::page;

    #[test]
    fn what_a_message_quotes_is_shown_and_not_executed() {
        let page = page(StatusCode::NOT_FOUND, "host <script>x</script> & co\n");
        assert!(page.contains("Host &lt;script&gt;x&lt;/script&gt; &amp; co</p>"));
        assert_eq!(page.matches("404 Not Found").count(), 2);
    }
}
