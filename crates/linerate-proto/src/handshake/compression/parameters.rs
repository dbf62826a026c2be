//! The four parameters of the extension (RFC 7692 §7.1).

use core::fmt::Write as _;

use alloc::string::String;

use super::NAME;
use crate::handshake::{ExtensionOffer, HandshakeError};

/// Which side wrote the parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Author {
    Client,
    Server,
}

/// The parameters of an offer or a response.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Parameters {
    pub(super) client_max_window_bits: Option<WindowBits>,
    pub(super) client_no_context_takeover: bool,
    pub(super) server_max_window_bits: Option<u8>,
    pub(super) server_no_context_takeover: bool,
}

/// The value of `client_max_window_bits`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WindowBits {
    /// No value: the client accepts any number that the server chooses.
    Any,
    /// 8 to 15.
    AtMost(u8),
}

impl Parameters {
    /// Reads the parameters; fails with the name of the first one that is unknown, duplicated, or
    /// has an invalid value.
    pub(super) fn read(offer: &ExtensionOffer<'_>, author: Author) -> Result<Self, HandshakeError> {
        let mut parameters = Self::default();
        for (name, value) in offer.parameters() {
            parameters.set(name, value, author)?;
        }
        Ok(parameters)
    }

    fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        author: Author,
    ) -> Result<(), HandshakeError> {
        let invalid = |name| HandshakeError::ExtensionParameterInvalid { name };
        let flag = |set: &mut bool, name| match value {
            None if !*set => {
                *set = true;
                Ok(())
            }
            _ => Err(invalid(name)),
        };
        match name {
            CLIENT_NO_CONTEXT_TAKEOVER => flag(
                &mut self.client_no_context_takeover,
                CLIENT_NO_CONTEXT_TAKEOVER,
            ),
            SERVER_NO_CONTEXT_TAKEOVER => flag(
                &mut self.server_no_context_takeover,
                SERVER_NO_CONTEXT_TAKEOVER,
            ),
            CLIENT_MAX_WINDOW_BITS => {
                // §7.1.2.2: in an offer it "may have no value"; in a response it must have one.
                let bits = match (value, author) {
                    (None, Author::Client) => Some(WindowBits::Any),
                    (value, _) => value.and_then(window_bits).map(WindowBits::AtMost),
                };
                let is_first = self.client_max_window_bits.is_none();
                let bits = bits
                    .filter(|_| is_first)
                    .ok_or(invalid(CLIENT_MAX_WINDOW_BITS))?;
                self.client_max_window_bits = Some(bits);
                Ok(())
            }
            SERVER_MAX_WINDOW_BITS => {
                let is_first = self.server_max_window_bits.is_none();
                let bits = value.and_then(window_bits).filter(|_| is_first);
                self.server_max_window_bits = Some(bits.ok_or(invalid(SERVER_MAX_WINDOW_BITS))?);
                Ok(())
            }
            _ => Err(invalid("unknown")),
        }
    }

    /// Returns the extension with these parameters, formatted for a header.
    pub(super) fn to_header(self) -> String {
        let mut header = String::from(NAME);
        let mut add = |name: &str, bits: Option<u8>| {
            header.push_str("; ");
            header.push_str(name);
            if let Some(bits) = bits {
                // Writing to a string cannot fail.
                _ = write!(header, "={bits}");
            }
        };
        if self.server_no_context_takeover {
            add(SERVER_NO_CONTEXT_TAKEOVER, None);
        }
        if self.client_no_context_takeover {
            add(CLIENT_NO_CONTEXT_TAKEOVER, None);
        }
        if let Some(bits) = self.server_max_window_bits {
            add(SERVER_MAX_WINDOW_BITS, Some(bits));
        }
        match self.client_max_window_bits {
            Some(WindowBits::Any) => add(CLIENT_MAX_WINDOW_BITS, None),
            Some(WindowBits::AtMost(bits)) => add(CLIENT_MAX_WINDOW_BITS, Some(bits)),
            None => {}
        }
        header
    }
}

const CLIENT_MAX_WINDOW_BITS: &str = "client_max_window_bits";
const CLIENT_NO_CONTEXT_TAKEOVER: &str = "client_no_context_takeover";
const SERVER_MAX_WINDOW_BITS: &str = "server_max_window_bits";
const SERVER_NO_CONTEXT_TAKEOVER: &str = "server_no_context_takeover";

/// Parses a number of window bits.
///
/// §7.1.2.1: "a decimal integer value without leading zeroes between 8 to 15, inclusive".
fn window_bits(value: &str) -> Option<u8> {
    if value.starts_with(['0', '+']) {
        return None;
    }
    value.parse().ok().filter(|bits| (8..=15).contains(bits))
}
