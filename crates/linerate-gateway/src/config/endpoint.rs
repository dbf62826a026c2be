//! What the sections of the application's endpoints have in common: names, URLs, headers and TLS of
//! backends, webhooks and databases.

use std::{collections::BTreeMap, path::PathBuf};

use http::{HeaderName, HeaderValue};
use url::Url;

use super::{Secret, check::Check};

/// What is wrong with the name of a header.
pub(super) const NOT_A_HEADER: &str =
    "must be the name of a header that linerate does not set itself";

/// Checks a name, which is also a label value in metrics.
pub(super) fn check_name(name: &str, check: &mut Check) {
    let is_label = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_label) {
        let because = "must be 1 to 64 letters, digits, hyphens, underscores or dots";
        check.refuse("name", name, because);
    }
}

/// Checks a URL. An error contains `shown` in its place, and `about_users` if it contains a user,
/// which is never shown.
pub(super) fn check_url(url: &str, shown: &str, about_users: &str, check: &mut Check) {
    let is_usable = |url: &Url| {
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.fragment().is_none()
    };
    match Url::parse(url) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            check.refuse("url", "(with a user)", about_users);
        }
        Ok(url) if is_usable(&url) => {}
        _ => check.refuse("url", shown, "must be an https:// or http:// URL"),
    }
}

/// Checks the headers that each request has.
pub(super) fn check_headers(headers: &BTreeMap<String, Secret>, check: &mut Check) {
    check.range("headers", headers.len(), 0..=64);
    for (name, value) in headers {
        if !is_header_name(name) {
            check.refuse("headers", name, NOT_A_HEADER);
        }
        if !value.is_file() && HeaderValue::try_from(value.expose()).is_err() {
            check.refuse("headers", name, "has a value that no header can have");
        }
    }
}

/// Returns whether this can be the name of a header that is set.
pub(super) fn is_header_name(name: &str) -> bool {
    HeaderName::try_from(name).is_ok_and(|name| !is_ours(&name))
}

/// Checks that there is a key for a certificate, and a certificate for a key.
pub(super) fn check_tls(certificate: &Option<PathBuf>, key: &Option<PathBuf>, check: &mut Check) {
    let (name, path) = match (certificate, key) {
        (Some(path), None) => ("tls_certificate", path),
        (None, Some(path)) => ("tls_key", path),
        _ => return,
    };
    check.refuse(
        name,
        path.display(),
        "requires both tls_certificate and tls_key",
    );
}

/// Returns whether requests have this header anyway, or must not have it (RFC 9110 §7.6.1).
fn is_ours(name: &HeaderName) -> bool {
    const OURS: [&str; 16] = [
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "x-forwarded-for",
    ];
    OURS.contains(&name.as_str())
}
