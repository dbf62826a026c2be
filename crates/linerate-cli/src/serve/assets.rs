//! The web pages and the files that they load, embedded in the binary.

mod coding;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Path,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::{MethodRouter, get},
};
use rust_embed::{Embed, EmbeddedFile};

use coding::{Coding, accepted};

/// The output of `make web`.
#[derive(Embed)]
#[folder = "../../web/dist"]
struct Dist;

/// Returns the route of a page.
pub(super) fn page<S: Clone + Send + Sync + 'static>(file: &'static str) -> MethodRouter<S> {
    get(async move |request: HeaderMap| respond(file, &request))
}

/// Returns a file of text, or nothing if there is none.
pub(crate) fn text(path: &str) -> String {
    let file = Dist::get(path).map(|file| file.data);
    String::from_utf8_lossy(&file.unwrap_or_default()).into_owned()
}

pub(super) async fn asset(Path(name): Path<String>, request: HeaderMap) -> Response {
    let mut response = respond(&format!("assets/{name}"), &request);
    // Assets are the same for every client, and pages of other origins import linerate.js.
    let anyone = HeaderValue::from_static("*");
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, anyone);
    response
}

/// Returns the routes of the documentation. Its pages refer to each other by relative links, so the
/// address of the first one has to end with a slash.
pub(super) fn docs<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/docs", get(async || Redirect::permanent("/docs/")))
        .route("/docs/", page("docs/index.html"))
        .route("/docs/{*path}", get(docs_page))
}

async fn docs_page(Path(path): Path<String>, request: HeaderMap) -> Response {
    respond(&format!("docs/{path}"), &request)
}

fn respond(path: &str, request: &HeaderMap) -> Response {
    let Some(file) = Dist::get(path) else {
        return (StatusCode::NOT_FOUND, "file not found\n").into_response();
    };
    let content_type = content_type(&file);
    let (file, coding) = smallest(path, request).unwrap_or((file, None));
    let tag = entity_tag(&file);
    let mut response = if is_known(request, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        content(file, &content_type, coding)
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    // File names contain no version, so a browser may keep a file but must ask whether it has
    // changed.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// Returns the smallest copy of a file that the client understands, if there is one.
fn smallest(path: &str, request: &HeaderMap) -> Option<(EmbeddedFile, Option<Coding>)> {
    accepted(request).find_map(|coding| {
        let file = Dist::get(&format!("{path}{}", coding.extension))?;
        Some((file, Some(coding)))
    })
}

fn content_type(file: &EmbeddedFile) -> String {
    match file.metadata.mimetype() {
        text if text.starts_with("text/") => format!("{text}; charset=utf-8"),
        other => other.to_owned(),
    }
}

fn content(file: EmbeddedFile, content_type: &str, coding: Option<Coding>) -> Response {
    let bytes = match file.data {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => bytes.into(),
    };
    let coding = coding.map(|coding| [(header::CONTENT_ENCODING, coding.name)]);
    let content_type = [(header::CONTENT_TYPE, content_type)];
    (content_type, coding, Body::from(bytes)).into_response()
}

/// Returns the strong entity tag of a file (RFC 9110 §8.8.3), from the hash of its content.
fn entity_tag(file: &EmbeddedFile) -> String {
    use std::fmt::Write;
    let mut tag = String::from("\"");
    for byte in &file.metadata.sha256_hash()[..16] {
        // Writing to a string cannot fail.
        _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

/// Returns whether the client already has the file with this tag (RFC 9110 §13.1.2, weak
/// comparison).
fn is_known(request: &HeaderMap, tag: &str) -> bool {
    let mut tags = elements(request, header::IF_NONE_MATCH);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// Returns the elements of a header field that is a list (RFC 9110 §5.6.1).
fn elements(request: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lists = request.get_all(name).into_iter();
    lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(',').map(str::trim))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::is_known;

    fn asking(lists: &[&'static str]) -> HeaderMap {
        let values = lists.iter().map(|list| HeaderValue::from_static(list));
        values.map(|value| (header::IF_NONE_MATCH, value)).collect()
    }

    #[test]
    fn a_tag_is_found_in_any_list_and_compared_weakly() {
        let known = |lists: &[&'static str]| is_known(&asking(lists), "\"a1\"");
        assert!(known(&["\"a1\""]));
        assert!(known(&["\"b2\" , W/\"a1\""]));
        assert!(known(&["\"b2\"", "\"a1\""]));
        assert!(known(&["*"]));
        assert!(!known(&[]));
        assert!(!known(&["\"a\", \"a11\", a1"]));
    }
}
