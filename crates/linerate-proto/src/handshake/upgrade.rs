//! Checks that a request is a client's opening handshake (RFC 6455 §4.2.1, RFC 8441 §5).

use alloc::vec::Vec;
use core::str;

use super::accept::{Accept, Key};
use super::extension::parse_offers;
use super::token::{elements, is_token, list_contains};
use super::{
    Acceptance, ExtensionOffer, HandshakeError, HandshakeLimits, HttpVersion, Request, RequestBody,
};

/// A request that is a valid opening handshake.
#[derive(Clone, Debug)]
pub struct Upgrade<'r> {
    request: &'r Request,
    /// The accept value for the key; `None` in HTTP/2 and HTTP/3, which have no key.
    accept: Option<Accept>,
    subprotocols: Vec<&'r str>,
    extensions: Vec<ExtensionOffer<'r>>,
}

impl Request {
    /// Checks that the request opens a WebSocket (RFC 6455 §4.2.1).
    ///
    /// This does not check the origin; use [`OriginPolicy`](super::OriginPolicy) for that.
    ///
    /// # Errors
    ///
    /// Fails if the request does not open a WebSocket; [`Refusal::from`](super::Refusal) turns the
    /// error into a response.
    pub fn websocket(&self) -> Result<Upgrade<'_>, HandshakeError> {
        Upgrade::check(self, self.limits())
    }
}

impl<'r> Upgrade<'r> {
    /// Checks the rules, in an order that gives the client the most useful error.
    fn check(request: &'r Request, limits: &HandshakeLimits) -> Result<Self, HandshakeError> {
        let accept = if request.version().has_streams() {
            check_connect(request)?;
            None
        } else {
            Some(check_upgrade(request)?)
        };
        let headers = request.headers();
        headers.single("Origin")?;
        let subprotocols = parse_subprotocols(request, limits)?;
        let extensions = parse_offers(headers.all("Sec-WebSocket-Extensions"), limits)?;
        Ok(Self {
            request,
            accept,
            subprotocols,
            extensions,
        })
    }

    /// Creates the response that opens the WebSocket.
    pub fn accept(&self) -> Acceptance<'_> {
        Acceptance::new(self.accept.as_ref(), &self.subprotocols, &self.extensions)
    }

    /// Returns the request.
    pub fn request(&self) -> &'r Request {
        self.request
    }

    /// Returns the subprotocols that the client offers, the most preferred one first.
    pub fn subprotocols(&self) -> &[&'r str] {
        &self.subprotocols
    }

    /// Returns the first of the server's subprotocols that the client offers.
    ///
    /// `supported` must be in the server's order of preference. If this returns `None`, the
    /// handshake can still continue without a subprotocol.
    pub fn choose_subprotocol<'s>(&self, supported: &[&'s str]) -> Option<&'s str> {
        supported
            .iter()
            .copied()
            .find(|candidate| self.subprotocols.contains(candidate))
    }

    /// Returns the extensions that the client offers. Extensions that the response does not mention
    /// are declined (RFC 6455 §9.1).
    pub fn extensions(&self) -> &[ExtensionOffer<'r>] {
        &self.extensions
    }
}

/// Checks an upgrade request of HTTP/1.1; returns the accept value for its key.
fn check_upgrade(request: &Request) -> Result<Accept, HandshakeError> {
    let headers = request.headers();
    if request.method() != "GET" {
        return Err(HandshakeError::MethodNotGet);
    }
    // RFC 9110 §7.8: "A server MUST ignore an Upgrade header field that is received in an
    // HTTP/1.0 request." Nothing but an upgrade is on offer where this is called.
    if request.version() != HttpVersion::Http11 {
        return Err(HandshakeError::HttpVersionUnsupported);
    }
    check_no_body(request)?;
    if !list_contains(headers.all("Upgrade"), "websocket") {
        return Err(HandshakeError::UpgradeNotWebSocket);
    }
    if !list_contains(headers.all("Connection"), "upgrade") {
        return Err(HandshakeError::ConnectionNotUpgrade);
    }
    check_version(request)?;
    let key = headers
        .single("Sec-WebSocket-Key")?
        .ok_or(HandshakeError::HeaderMissing {
            name: "Sec-WebSocket-Key",
        })?;
    let key = Key::parse(key).ok_or(HandshakeError::KeyInvalid {
        value_bytes: key.len(),
    })?;
    Ok(key.accept())
}

/// Checks a request for a WebSocket on a stream (RFC 8441 §5, RFC 9220 §3), which has no key:
/// "[the] Sec-WebSocket-Key and Sec-WebSocket-Accept header fields" are not used.
fn check_connect(request: &Request) -> Result<(), HandshakeError> {
    match (request.method(), request.protocol()) {
        ("CONNECT", Some("websocket")) => {}
        ("CONNECT", Some(_)) => return Err(HandshakeError::ConnectProtocolUnsupported),
        _ => return Err(HandshakeError::MethodNotConnect),
    }
    check_no_body(request)?;
    check_version(request)
}

fn check_no_body(request: &Request) -> Result<(), HandshakeError> {
    match request.body() {
        RequestBody::None | RequestBody::Length(0) => Ok(()),
        _ => Err(HandshakeError::BodyUnexpected),
    }
}

fn check_version(request: &Request) -> Result<(), HandshakeError> {
    match request.headers().single("Sec-WebSocket-Version")? {
        Some(b"13") => Ok(()),
        _ => Err(HandshakeError::WebSocketVersionUnsupported),
    }
}

/// Parses the subprotocols that the client offers.
///
/// §4.1: the elements "MUST be non-empty strings with characters in the range U+0021 to U+007E
/// not including separator characters … and MUST all be unique strings".
fn parse_subprotocols<'r>(
    request: &'r Request,
    limits: &HandshakeLimits,
) -> Result<Vec<&'r str>, HandshakeError> {
    let lines = || request.headers().all("Sec-WebSocket-Protocol");
    let mut subprotocols = Vec::new();
    for (index, element) in elements(lines()).enumerate() {
        if index == limits.subprotocols_max {
            return Err(HandshakeError::SubprotocolsTooMany {
                subprotocols: index + 1,
                subprotocols_max: limits.subprotocols_max,
            });
        }
        let subprotocol = str::from_utf8(element)
            .ok()
            .filter(|text| is_token(text.as_bytes()))
            .ok_or(HandshakeError::SubprotocolsMalformed { index })?;
        if subprotocols.contains(&subprotocol) {
            return Err(HandshakeError::SubprotocolDuplicate { index });
        }
        subprotocols.push(subprotocol);
    }
    // If the header is present, it must have at least one element.
    if subprotocols.is_empty() && lines().next().is_some() {
        return Err(HandshakeError::SubprotocolsMalformed { index: 0 });
    }
    Ok(subprotocols)
}
