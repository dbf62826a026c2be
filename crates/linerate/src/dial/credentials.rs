//! Users and passwords in requests (RFC 7617).

use base64::{Engine, prelude::BASE64_STANDARD};
use linerate_proto::url::Credentials;

/// Returns the header value for Basic authentication (RFC 7617 §2).
pub(crate) fn basic(credentials: &Credentials) -> String {
    let pair = [&credentials.user[..], b":", &credentials.password].concat();
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}
