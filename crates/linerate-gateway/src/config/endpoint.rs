//! The names and URLs of the application's endpoints: backends and webhooks.

use url::Url;

use super::check::Check;

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
