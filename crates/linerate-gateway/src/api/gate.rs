//! Access control for the server API and the admin page.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};

use crate::{
    auth::KeyRefusal,
    server::{Peer, names_this_machine},
    session::{SessionEnvironment, Settings},
};

/// Headers that proxies add to the requests that they forward.
const FORWARDING: [&str; 6] = [
    "cf-connecting-ip",
    "forwarded",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-real-ip",
];
const FORWARDING_PREFIX: &str = "x-forwarded-";

/// An API that a key protects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum KeyedApi {
    /// That of the admin page.
    Admin,
    /// That for applications.
    Server,
}

/// Why access is denied.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Denied {
    /// No key is configured, and the server is not open.
    #[error("{} is not configured", .0.key())]
    Closed(KeyedApi),
    /// No key is configured, so that only programs and pages of this machine have access.
    #[error("{} is not configured; access is limited to this machine", .0.key())]
    Foreign(KeyedApi),
    /// The key is missing or wrong.
    #[error("key in {} is missing or wrong", .0.header())]
    Key(KeyedApi),
    /// Too many keys from the same address were wrong.
    #[error("too many wrong keys from your address; try again in {} s", .0.as_secs() + 1)]
    Limited(Duration),
}

impl KeyedApi {
    /// Checks that a request has access: with the configured key, or from this machine if the
    /// server is open and no key is configured.
    pub(crate) fn check(
        self,
        shared: &SessionEnvironment,
        headers: &HeaderMap,
        peer: Option<Peer>,
    ) -> Result<(), Denied> {
        let settings = shared.settings_full();
        if self.has_key(&settings) {
            return self.check_key(shared, &settings, headers, peer);
        }
        if !settings.config.is_open() {
            return Err(Denied::Closed(self));
        }
        let scheme = peer.map(|peer| peer.scheme);
        let is_ours = scheme.is_some_and(|scheme| settings.origins.check(headers, scheme).is_ok());
        match is_local(headers, peer) && is_ours {
            true => Ok(()),
            false => Err(Denied::Foreign(self)),
        }
    }

    /// Checks the keys in a request, unless too many keys from its address were wrong.
    fn check_key(
        self,
        shared: &SessionEnvironment,
        settings: &Settings,
        headers: &HeaderMap,
        peer: Option<Peer>,
    ) -> Result<(), Denied> {
        let shown: Vec<&[u8]> = self.presented(headers).into_iter().flatten().collect();
        if shown.is_empty() {
            return Err(Denied::Key(self));
        }
        let address = peer.map(|peer| peer.address);
        let is_right = || shown.into_iter().any(|key| self.is_key(settings, key));
        shared
            .judge_key(self.kind(), address, is_right)
            .map_err(|refusal| match refusal {
                KeyRefusal::Limited(wait) => Denied::Limited(wait),
                KeyRefusal::Wrong => Denied::Key(self),
            })
    }

    fn has_key(self, settings: &Settings) -> bool {
        match self {
            Self::Admin => settings.authenticator.has_admin_key(),
            Self::Server => settings.authenticator.has_api_key(),
        }
    }

    fn is_key(self, settings: &Settings, key: &[u8]) -> bool {
        match self {
            Self::Admin => settings.authenticator.is_admin_key(key),
            Self::Server => settings.authenticator.is_api_key(key),
        }
    }

    /// Returns the keys in a request: in our own header and in `Authorization`.
    fn presented(self, headers: &HeaderMap) -> [Option<&[u8]>; 2] {
        let scheme: &[u8] = match self {
            Self::Admin => b"bearer ",
            Self::Server => b"apikey ",
        };
        let own = headers.get(self.header()).map(|value| value.as_bytes());
        let authorization = headers.get(header::AUTHORIZATION);
        let authorization = authorization.and_then(|value| {
            let (given, key) = value.as_bytes().split_at_checked(scheme.len())?;
            given.eq_ignore_ascii_case(scheme).then_some(key)
        });
        [own, authorization]
    }

    /// Returns a value for metric labels.
    const fn kind(self) -> &'static str {
        match self {
            Self::Admin => "admin_key",
            Self::Server => "api_key",
        }
    }

    const fn header(self) -> &'static str {
        match self {
            Self::Admin => "x-admin-key",
            Self::Server => "x-api-key",
        }
    }

    const fn key(self) -> &'static str {
        match self {
            Self::Admin => "auth.admin_key",
            Self::Server => "auth.api_key",
        }
    }
}

impl Denied {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Closed(_) | Self::Foreign(_) => StatusCode::FORBIDDEN,
            Self::Key(_) => StatusCode::UNAUTHORIZED,
            Self::Limited(_) => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// Returns whether a request comes from a program on this machine: not through a proxy on it that
/// adds a forwarding header, and not from a page whose host name was pointed at this machine (DNS
/// rebinding).
///
/// A proxy that adds no header cannot be distinguished from other local programs, unless it is
/// listed in `server.trusted_proxies`.
pub(crate) fn is_local(headers: &HeaderMap, peer: Option<Peer>) -> bool {
    let is_near =
        peer.is_some_and(|peer| peer.is_near && peer.address.to_canonical().is_loopback());
    let is_forwarding =
        |name: &str| name.starts_with(FORWARDING_PREFIX) || FORWARDING.contains(&name);
    is_near
        && names_this_machine(headers)
        && !headers.keys().any(|name| is_forwarding(name.as_str()))
}
