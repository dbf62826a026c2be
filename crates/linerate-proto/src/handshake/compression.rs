//! Negotiates the compression parameters in the opening handshake (RFC 7692 §5, §7.1).

mod parameters;

use alloc::string::String;

use self::parameters::{Author, Parameters, WindowBits};
use super::{ExtensionOffer, HandshakeError};
use crate::deflate::{Agreement, Context, Deflate};

/// The name of the extension (RFC 7692 §7).
const NAME: &str = "permessage-deflate";

impl Deflate {
    /// Returns the window bits for sending, clamped to the valid range.
    fn sending_bits(&self) -> u8 {
        self.window_bits.clamp(8, 15)
    }

    fn receiving_bits(&self) -> u8 {
        self.peer_window_bits.clamp(8, 15)
    }

    /// Returns whether the peer's messages may refer back to others with a window of 2^`bits`
    /// bytes.
    fn allows_takeover(&self, bits: u8) -> bool {
        self.peer_takeover && self.budget.has_room(1 << bits)
    }
}

/// Accepts the first valid offer of a client (§5: "a server accepts one or declines all"), and
/// returns the agreement with the response header.
///
/// Offers with an unknown parameter or an invalid value are skipped (§7.1).
pub(super) fn choose(
    offers: &[ExtensionOffer<'_>],
    options: &Deflate,
) -> Option<(Agreement, String)> {
    let mut own = offers.iter().filter(|offer| offer.name() == NAME);
    let offer = own.find_map(|offer| Parameters::read(offer, Author::Client).ok())?;
    let sending = Context {
        window_bits: offer
            .server_max_window_bits
            .unwrap_or(15)
            .min(options.sending_bits()),
        takeover: options.takeover && !offer.server_no_context_takeover,
    };
    // §7.1.2.2: without `client_max_window_bits` in the offer we may not ask for less than 15 bits.
    let receiving_bits = match offer.client_max_window_bits {
        None => 15,
        Some(WindowBits::Any) => options.receiving_bits(),
        Some(WindowBits::AtMost(bits)) => bits.min(options.receiving_bits()),
    };
    let receiving = Context {
        window_bits: receiving_bits,
        takeover: !offer.client_no_context_takeover
            && receiving_bits <= options.receiving_bits()
            && options.allows_takeover(receiving_bits),
    };
    let answer = Parameters {
        client_max_window_bits: offer
            .client_max_window_bits
            .map(|_| WindowBits::AtMost(receiving_bits)),
        client_no_context_takeover: !receiving.takeover,
        server_max_window_bits: offer.server_max_window_bits.map(|_| sending.window_bits),
        server_no_context_takeover: !sending.takeover,
    };
    Some((Agreement { sending, receiving }, answer.to_header()))
}

/// Returns a client's offers: the preferred one first, then one that any server can accept.
pub(super) fn offers(options: &Deflate) -> String {
    let wanted = wanted(options);
    let header = wanted.to_header();
    if wanted.server_max_window_bits.is_none() {
        return header;
    }
    let modest = Parameters {
        server_max_window_bits: None,
        ..wanted
    };
    [header, modest.to_header()].join(", ")
}

/// Returns the preferred offer.
fn wanted(options: &Deflate) -> Parameters {
    let receiving_bits = options.receiving_bits();
    let sending = match options.sending_bits() {
        15 => WindowBits::Any,
        bits => WindowBits::AtMost(bits),
    };
    Parameters {
        client_max_window_bits: Some(sending),
        client_no_context_takeover: !options.takeover,
        server_max_window_bits: (receiving_bits < 15).then_some(receiving_bits),
        server_no_context_takeover: !options.allows_takeover(receiving_bits),
    }
}

/// Checks a server's answer to [`offers`]; returns `None` if the server declined.
///
/// §7.1: the client "MUST fail the WebSocket connection" if a parameter is not valid in a response
/// to the offer.
pub(super) fn judge(
    answers: &[ExtensionOffer<'_>],
    options: &Deflate,
) -> Result<Option<Agreement>, HandshakeError> {
    let answer = match answers {
        [] => return Ok(None),
        [answer] if answer.name() == NAME => answer,
        _ => return Err(HandshakeError::ExtensionUnoffered),
    };
    let answer = Parameters::read(answer, Author::Server)?;
    let wanted = wanted(options);
    // §7.1.1.1: a server that accepts an offer with this parameter must include it in its response.
    if wanted.server_no_context_takeover && !answer.server_no_context_takeover {
        let name = "server_no_context_takeover";
        return Err(HandshakeError::ExtensionParameterInvalid { name });
    }
    let sending_bits = match answer.client_max_window_bits {
        Some(WindowBits::AtMost(bits)) => bits.min(options.sending_bits()),
        Some(WindowBits::Any) | None => options.sending_bits(),
    };
    Ok(Some(Agreement {
        sending: Context {
            window_bits: sending_bits,
            takeover: options.takeover && !answer.client_no_context_takeover,
        },
        receiving: Context {
            // Whichever of our two offers the server accepted: without the parameter it may use all
            // 15 bits.
            window_bits: answer.server_max_window_bits.unwrap_or(15),
            takeover: !answer.server_no_context_takeover,
        },
    }))
}
