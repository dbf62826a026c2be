//! Which pages may connect from a browser (RFC 6455 §10.2, RFC 6454).

use http::{HeaderMap, header};
use linerate::handshake::{Origin, Scheme};

use super::AuthSetupError;

/// Which pages may connect. Programs other than browsers send no origin and are always allowed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(Vec<Pattern>);

/// The origin of the page is not allowed, or the request has two origins.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("pages of this origin may not connect")]
pub(crate) struct OriginDenied;

#[derive(Clone, Debug)]
enum Pattern {
    Any,
    Exact(String),
    /// Any host that has at least one label before `suffix`. `scheme` includes `://`, and `suffix`
    /// is like `.example.com`, with its port.
    Subdomain {
        scheme: &'static str,
        suffix: String,
    },
}

impl Origins {
    /// Parses the configured origins. An empty list allows only pages of this server.
    ///
    /// # Errors
    /// Fails if one of them is not an origin.
    pub(crate) fn new(origins: &[String]) -> Result<Self, AuthSetupError> {
        let patterns = origins.iter().map(|origin| {
            Pattern::parse(origin).ok_or_else(|| AuthSetupError::Origin {
                origin: origin.clone(),
            })
        });
        patterns.collect::<Result<_, _>>().map(Self)
    }

    /// Checks the origin of a request that was received over `scheme`.
    ///
    /// # Errors
    /// Fails if the page may not connect.
    pub(crate) fn check(&self, headers: &HeaderMap, scheme: Scheme) -> Result<(), OriginDenied> {
        let mut values = headers.get_all(header::ORIGIN).iter();
        let Some(value) = values.next() else {
            return Ok(());
        };
        let origin = match (value.to_str(), values.next()) {
            (Ok(value), None) => value,
            _ => return Err(OriginDenied),
        };
        if self.0.iter().any(|pattern| matches!(pattern, Pattern::Any)) {
            return Ok(());
        }
        let origin: Origin = origin.parse().map_err(|_| OriginDenied)?;
        let is_allowed = match self.0.as_slice() {
            [] => own(headers, scheme).is_some_and(|own| own == origin),
            patterns => {
                let origin = origin.to_string();
                patterns.iter().any(|pattern| pattern.matches(&origin))
            }
        };
        is_allowed.then_some(()).ok_or(OriginDenied)
    }
}

/// Returns the origin of the server to which a request was sent.
fn own(headers: &HeaderMap, scheme: Scheme) -> Option<Origin> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let scheme = match scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    format!("{scheme}://{host}").parse().ok()
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        for scheme in ["http://", "https://"] {
            let domain = text.strip_prefix(scheme);
            if let Some(domain) = domain.and_then(|rest| rest.strip_prefix("*.")) {
                // Normalized as browsers do it: in lower case and without the default port.
                let origin: Origin = format!("{scheme}{domain}").parse().ok()?;
                let origin = origin.to_string();
                let suffix = format!(".{}", origin.strip_prefix(scheme)?);
                return Some(Self::Subdomain { scheme, suffix });
            }
        }
        let origin: Origin = text.parse().ok()?;
        Some(Self::Exact(origin.to_string()))
    }

    /// Returns whether an origin matches, in the notation of [`Origin`].
    fn matches(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => origin == exact,
            Self::Subdomain { scheme, suffix } => {
                let host = origin.strip_prefix(scheme);
                let labels = host.and_then(|host| host.strip_suffix(suffix.as_str()));
                labels.is_some_and(|labels| !labels.is_empty())
            }
        }
    }
}
