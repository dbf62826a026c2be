//! Who may use the server API and the admin page.

use std::net::IpAddr;

use http::{HeaderMap, StatusCode, header};

use crate::{session::Settings, transport::Peer};

/// Which door somebody stands at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Door {
    /// The admin page.
    Admin,
    /// The server API.
    Api,
}

/// Why somebody does not get in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Denied {
    /// No key is configured, and the server does not stand open.
    #[error("{} is not configured", .0.key())]
    Closed(Door),
    /// Without a key, only programs and pages of this machine get in.
    #[error("without {}, only this machine gets in", .0.key())]
    Foreign(Door),
    /// No key, or a wrong one.
    #[error("{} shows no key, or a wrong one", .0.header())]
    Key(Door),
}

impl Door {
    /// Lets a request in, or not: with the configured key, or, where the server stands open and no key is
    /// configured, from this machine.
    pub(crate) fn check(
        self,
        settings: &Settings,
        headers: &HeaderMap,
        peer: Option<Peer>,
    ) -> Result<(), Denied> {
        if self.has_key(settings) {
            let keys = self.presented(headers);
            let is_right = |key: &&[u8]| self.is_key(settings, key);
            return match keys.into_iter().flatten().any(|key| is_right(&key)) {
                true => Ok(()),
                false => Err(Denied::Key(self)),
            };
        }
        if !settings.config.is_open() {
            return Err(Denied::Closed(self));
        }
        let is_near = peer.is_some_and(|peer| peer.address.to_canonical().is_loopback());
        let scheme = peer.map(|peer| peer.scheme);
        let is_ours = scheme.is_some_and(|scheme| settings.origins.check(headers, scheme).is_ok());
        let is_forwarded = ["forwarded", "x-forwarded-for"];
        let is_forwarded = is_forwarded.iter().any(|name| headers.contains_key(*name));
        match is_near && is_ours && !is_forwarded && names_this_machine(headers) {
            true => Ok(()),
            false => Err(Denied::Foreign(self)),
        }
    }

    fn has_key(self, settings: &Settings) -> bool {
        match self {
            Self::Admin => settings.authenticator.has_admin_key(),
            Self::Api => settings.authenticator.has_api_key(),
        }
    }

    fn is_key(self, settings: &Settings, key: &[u8]) -> bool {
        match self {
            Self::Admin => settings.authenticator.is_admin_key(key),
            Self::Api => settings.authenticator.is_api_key(key),
        }
    }

    /// Returns the keys that a request shows, in a header of its own and as authorization.
    fn presented(self, headers: &HeaderMap) -> [Option<&[u8]>; 2] {
        let scheme: &[u8] = match self {
            Self::Admin => b"bearer ",
            Self::Api => b"apikey ",
        };
        let own = headers.get(self.header()).map(|value| value.as_bytes());
        let authorization = headers.get(header::AUTHORIZATION);
        let authorization = authorization.and_then(|value| {
            let (given, key) = value.as_bytes().split_at_checked(scheme.len())?;
            given.eq_ignore_ascii_case(scheme).then_some(key)
        });
        [own, authorization]
    }

    const fn header(self) -> &'static str {
        match self {
            Self::Admin => "x-admin-key",
            Self::Api => "x-api-key",
        }
    }

    const fn key(self) -> &'static str {
        match self {
            Self::Admin => "auth.admin_key",
            Self::Api => "auth.api_key",
        }
    }
}

impl Denied {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Closed(_) | Self::Foreign(_) => StatusCode::FORBIDDEN,
            Self::Key(_) => StatusCode::UNAUTHORIZED,
        }
    }
}

/// Says whether a request names the server by an address or as localhost. A page whose name was made to lead
/// here (DNS rebinding) has its own origin, but not this name.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let Some(authority) = host.and_then(|host| host.parse::<http::uri::Authority>().ok()) else {
        return false;
    };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}
