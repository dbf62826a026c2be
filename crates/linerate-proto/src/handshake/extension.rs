//! The grammar of `Sec-WebSocket-Extensions` (RFC 6455 §9.1).

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::str;

use super::token::{is_token, is_token_byte};
use super::{HandshakeError, HandshakeLimits};

/// One extension that a client offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionOffer<'a> {
    name: &'a str,
    parameters: Vec<(&'a str, Option<Cow<'a, str>>)>,
}

impl ExtensionOffer<'_> {
    /// Returns the extension's name, a token.
    pub fn name(&self) -> &str {
        self.name
    }

    /// Returns the parameters in order, including duplicates. Values are tokens with their quotes
    /// removed.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.parameters
            .iter()
            .map(|(name, value)| (*name, value.as_deref()))
    }
}

/// Parses the offers of one client, from all header lines of that name.
///
/// §9.1: "If a value is received by either the client or the server during negotiation that does
/// not conform to the ABNF below, the recipient of such malformed data MUST immediately _Fail the
/// WebSocket Connection_." Well-formed but unknown extensions are left for the caller to decline.
/// Empty list elements are skipped (RFC 9110 §5.6.1.2).
pub(super) fn parse_offers<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    limits: &HandshakeLimits,
) -> Result<Vec<ExtensionOffer<'a>>, HandshakeError> {
    let mut offers = Vec::new();
    let mut parameters = 0;
    for line in lines {
        let mut cursor = Cursor {
            bytes: line,
            offset: 0,
        };
        let offers_before = offers.len();
        while cursor.skip_separators() {
            let offer = cursor.offer(&mut parameters, limits)?;
            offers.push(offer);
            if offers.len() > limits.extensions_max {
                return Err(HandshakeError::ExtensionsTooMany {
                    extensions: offers.len(),
                    extensions_max: limits.extensions_max,
                });
            }
        }
        // The list must have at least one element: `extension-list = 1#extension`.
        if offers.len() == offers_before {
            return Err(cursor.malformed());
        }
    }
    Ok(offers)
}

/// A position in one header value that only moves forward.
struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    /// Parses `extension = extension-token *( ";" extension-param )`, which must be followed by a
    /// comma or the end.
    fn offer(
        &mut self,
        parameters_total: &mut usize,
        limits: &HandshakeLimits,
    ) -> Result<ExtensionOffer<'a>, HandshakeError> {
        let name = self.token()?;
        let mut parameters = Vec::new();
        self.skip_ows();
        while self.take(b';') {
            self.skip_ows();
            parameters.push(self.parameter()?);
            self.skip_ows();
            *parameters_total += 1;
            if *parameters_total > limits.extension_parameters_max {
                return Err(HandshakeError::ExtensionParametersTooMany {
                    parameters: *parameters_total,
                    parameters_max: limits.extension_parameters_max,
                });
            }
        }
        match self.peek() {
            None | Some(b',') => Ok(ExtensionOffer { name, parameters }),
            Some(_) => Err(self.malformed()),
        }
    }

    /// Parses `extension-param = token [ "=" (token | quoted-string) ]`.
    fn parameter(&mut self) -> Result<(&'a str, Option<Cow<'a, str>>), HandshakeError> {
        let name = self.token()?;
        self.skip_ows();
        if !self.take(b'=') {
            return Ok((name, None));
        }
        self.skip_ows();
        let value = match self.peek() {
            Some(b'"') => self.quoted()?,
            _ => Cow::Borrowed(self.token()?),
        };
        Ok((name, Some(value)))
    }

    fn token(&mut self) -> Result<&'a str, HandshakeError> {
        let start = self.offset;
        while self.peek().is_some_and(is_token_byte) {
            self.offset += 1;
        }
        self.text(start, self.offset)
    }

    /// Parses a quoted string and unescapes it.
    ///
    /// §9.1: "When using the quoted-string syntax variant, the value after quoted-string
    /// unescaping MUST conform to the 'token' ABNF."
    fn quoted(&mut self) -> Result<Cow<'a, str>, HandshakeError> {
        self.offset += 1;
        let start = self.offset;
        let mut unescaped = Vec::new();
        loop {
            match self.peek() {
                Some(b'"') if unescaped.is_empty() => {
                    let value = self.text(start, self.offset)?;
                    self.offset += 1;
                    return Ok(Cow::Borrowed(value));
                }
                Some(b'"') if is_token(&unescaped) => {
                    self.offset += 1;
                    let value = str::from_utf8(&unescaped).map_err(|_| self.malformed())?;
                    return Ok(Cow::Owned(value.into()));
                }
                Some(b'\\') => {
                    if unescaped.is_empty() {
                        unescaped.extend_from_slice(&self.bytes[start..self.offset]);
                    }
                    self.offset += 1;
                    unescaped.push(self.peek().ok_or(self.malformed())?);
                }
                Some(byte) if is_token_byte(byte) => {
                    if !unescaped.is_empty() {
                        unescaped.push(byte);
                    }
                }
                _ => return Err(self.malformed()),
            }
            self.offset += 1;
        }
    }

    /// Skips the commas and white space before an offer; returns whether an offer follows.
    fn skip_separators(&mut self) -> bool {
        while matches!(self.peek(), Some(b',' | b' ' | b'\t')) {
            self.offset += 1;
        }
        self.peek().is_some()
    }

    fn skip_ows(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.offset += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.offset += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    /// Returns a range that consists of token characters; fails if it is empty.
    fn text(&self, start: usize, end: usize) -> Result<&'a str, HandshakeError> {
        match str::from_utf8(&self.bytes[start..end]) {
            Ok(text) if !text.is_empty() => Ok(text),
            _ => Err(self.malformed()),
        }
    }

    fn malformed(&self) -> HandshakeError {
        HandshakeError::ExtensionsMalformed {
            offset: self.offset,
        }
    }
}
