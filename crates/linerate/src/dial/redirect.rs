//! Redirects, and which of them a client follows (RFC 9110 §15.4).
//!
//! RFC 6455 §4.1 leaves it to the client: "The client MAY follow redirects (but is not required
//! to)".

use super::Target;

/// Why a redirect is not followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectError {
    /// It leads to another origin, and a client certificate would reveal the client's identity to
    /// that server.
    #[error("it leads to another origin, which must not receive the client certificate")]
    ClientCertificate,
    /// It leads from `wss://` to `ws://`.
    #[error("it leads from wss:// to ws://")]
    Insecure,
    /// Its location is not a WebSocket URL.
    #[error("its location is not a WebSocket URL")]
    LocationInvalid,
    /// It exceeds the number of redirects to follow.
    #[error("it is number {redirects}, and the limit is {redirects_max}")]
    TooMany {
        /// The number of redirects so far, including this one.
        redirects: u32,
        /// The maximum number of redirects to follow.
        redirects_max: u32,
    },
}

/// Returns whether a status is a redirect.
pub(crate) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

impl Target {
    /// Resolves `location`, as sent by this target.
    ///
    /// # Errors
    /// It is not a WebSocket URL, or leads from TLS to plain text.
    pub(crate) fn redirected(&self, location: &str) -> Result<Self, RedirectError> {
        // Servers often redirect to HTTP URLs, which `join` accepts.
        let url = self.url.join(location);
        let mut target = Self::from(url.map_err(|_| RedirectError::LocationInvalid)?);
        if self.is_secure && !target.is_secure {
            return Err(RedirectError::Insecure);
        }
        // A server must not choose the credentials that we send to another server.
        target.credentials = match self.is_same_origin(&target) {
            true => self.credentials.clone(),
            false => None,
        };
        Ok(target)
    }

    /// Returns whether scheme, host and port are the same (RFC 6454 §5).
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        (self.is_secure, self.port) == (other.is_secure, other.port) && self.host == other.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirected(from: &str, location: &str) -> Result<String, RedirectError> {
        let target = Target::parse(from).unwrap().redirected(location)?;
        let scheme = if target.is_secure { "wss" } else { "ws" };
        Ok(format!(
            "{scheme}://{}{}",
            target.authority, target.path_and_query
        ))
    }

    #[test]
    fn locations_are_relative_to_where_they_come_from() {
        for (from, location, expected) in [
            ("ws://a/b/c?d", "e", "ws://a/b/e"),
            ("ws://a:81/b/c", "/e?f#g", "ws://a:81/e?f"),
            ("wss://a/", "//b:444/", "wss://b:444/"),
            ("ws://a/", "http://b/", "ws://b/"),
            ("ws://a/", "https://b:443/", "wss://b/"),
            ("wss://a/", "https://b:80/", "wss://b:80/"),
            ("wss://a/", "wss://b/", "wss://b/"),
            ("ws://a/", "", "ws://a/"),
        ] {
            assert_eq!(
                redirected(from, location),
                Ok(expected.into()),
                "{from} {location}"
            );
        }
    }

    #[test]
    fn c01_no_redirect_leads_from_tls_to_plain_text() {
        for location in ["ws://a/", "http://a:443/"] {
            let error = redirected("wss://a/", location);
            assert_eq!(error, Err(RedirectError::Insecure), "{location}");
        }
    }

    #[test]
    fn c01_what_is_no_websocket_is_not_followed() {
        for location in [
            "ftp://a/",
            "file:///etc/passwd",
            "javascript:1",
            "ws://[",
            "ws:///a/",
            "data:,x",
        ] {
            let error = redirected("ws://a/", location);
            assert_eq!(error, Err(RedirectError::LocationInvalid), "{location}");
        }
    }

    #[test]
    fn c01_users_and_passwords_stay_at_their_origin() {
        let target = Target::parse("ws://user:pass@a/").unwrap();
        for (location, stays) in [
            ("/x", true),
            ("ws://A:80/x", true),
            ("ws://other:user@a/x", true),
            ("ws://b/", false),
            ("ws://a:81/", false),
            ("wss://a/", false),
            ("ws://other:user@b/", false),
        ] {
            let redirected = target.redirected(location).unwrap();
            let expected = target.credentials.clone().filter(|_| stays);
            assert_eq!(redirected.credentials, expected, "{location}");
            assert_eq!(target.is_same_origin(&redirected), stays, "{location}");
        }
    }
}
