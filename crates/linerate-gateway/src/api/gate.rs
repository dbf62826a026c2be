//! Who may use the server API and the admin page.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};

use super::attempts::KeyRefusal;
use crate::{
    server::names_this_machine,
    session::{Settings, Shared},
    transport::Peer,
};

/// What proxies add to requests that they pass on.
const FORWARDING: [&str; 6] = [
    "cf-connecting-ip",
    "forwarded",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-real-ip",
];
const FORWARDING_PREFIX: &str = "x-forwarded-";

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
    /// Too many wrong keys came from the same address.
    #[error("too many wrong keys from your address; the next is looked at in {} s", .0.as_secs() + 1)]
    Limited(Duration),
}

impl Door {
    /// Lets a request in, or not: with the configured key, or, where the server stands open and no key is
    /// configured, from this machine.
    pub(crate) fn check(
        self,
        shared: &Shared,
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

    /// Judges the keys that a request shows, unless too many from its address were wrong.
    fn check_key(
        self,
        shared: &Shared,
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

    /// Returns a word for labels of metrics.
    const fn kind(self) -> &'static str {
        match self {
            Self::Admin => "admin_key",
            Self::Api => "api_key",
        }
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
            Self::Limited(_) => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// Returns whether a request comes from a program of this machine, and not by way of a proxy on it that says so, nor
/// from a page whose name was made to lead here (DNS rebinding).
///
/// A proxy that adds nothing to requests can't be told from the programs beside it, unless it is among the trusted ones.
pub(crate) fn is_local(headers: &HeaderMap, peer: Option<Peer>) -> bool {
    let is_near =
        peer.is_some_and(|peer| peer.is_near && peer.address.to_canonical().is_loopback());
    let is_forwarding =
        |name: &str| name.starts_with(FORWARDING_PREFIX) || FORWARDING.contains(&name);
    is_near
        && names_this_machine(headers)
        && !headers.keys().any(|name| is_forwarding(name.as_str()))
}
