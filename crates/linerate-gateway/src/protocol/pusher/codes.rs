//! The close codes of Pusher: after 4000–4099, clients do not reconnect; after 4100–4199, they
//! reconnect after a while; after 4200–4299, at once.

use std::borrow::Cow;

use crate::protocol::codes::Disconnect;

/// The app does not exist.
pub(super) const UNKNOWN_APP: Disconnect = of(4001, "application does not exist");
/// The app has too many connections.
pub(crate) const CONNECTIONS: Disconnect = of(4004, "application is over its connection quota");
/// The version of the protocol is not a number.
pub(super) const MALFORMED_VERSION: Disconnect = of(4006, "invalid version string format");
/// The version of the protocol is not supported.
pub(super) const UNSUPPORTED_VERSION: Disconnect = of(4007, "unsupported protocol version");
/// The client did not name a version of the protocol.
pub(super) const NO_VERSION: Disconnect = of(4008, "no protocol version supplied");
/// The backend has ended the connections of a user, or the signature of a user is wrong.
pub(crate) const TERMINATED: Disconnect = of(4009, "connection is unauthorized");
/// The error of a client event that is refused.
pub(crate) const CLIENT_EVENT_REJECTED: u16 = 4301;

/// The server has no room for the client now.
const OVER_CAPACITY: u16 = 4100;
const RECONNECT: u16 = 4200;
const NO_PONG: u16 = 4201;
const INACTIVE: u16 = 4202;

const fn of(code: u16, reason: &'static str) -> Disconnect {
    Disconnect {
        code,
        reason: Cow::Borrowed(reason),
    }
}

/// Returns the code after which Pusher's SDKs do what those of Centrifuge do after the code of
/// `disconnect`. Codes of applications from 4000 on stay as they are.
pub(super) fn farewell(disconnect: &Disconnect) -> Disconnect {
    let is = |known: &Disconnect| known.code == disconnect.code;
    let code = match disconnect.code {
        code @ 4000.. => code,
        _ if disconnect.reason == Disconnect::OVERLOADED.reason => OVER_CAPACITY,
        _ if is(&Disconnect::TOO_MANY_REQUESTS) => OVER_CAPACITY,
        _ if is(&Disconnect::NO_PONG) => NO_PONG,
        _ if is(&Disconnect::STALE) => INACTIVE,
        _ if is(&Disconnect::CONNECTION_LIMIT) => CONNECTIONS.code,
        _ if disconnect.is_reconnect() => RECONNECT,
        _ => TERMINATED.code,
    };
    disconnect.with_code(code)
}

#[cfg(test)]
mod tests {
    use super::{CONNECTIONS, farewell};
    use crate::protocol::codes::Disconnect;

    #[test]
    fn every_reason_has_a_code_of_pusher() {
        for (disconnect, code) in [
            (Disconnect::SHUTDOWN, 4200),
            (Disconnect::SLOW, 4200),
            (Disconnect::FORCE_RECONNECT, 4200),
            (Disconnect::OVERLOADED, 4100),
            (Disconnect::TOO_MANY_REQUESTS, 4100),
            (Disconnect::NO_PONG, 4201),
            (Disconnect::STALE, 4202),
            (Disconnect::CONNECTION_LIMIT, 4004),
            (Disconnect::BAD_REQUEST, 4009),
            (Disconnect::FORCE_NO_RECONNECT, 4009),
            (Disconnect::INAPPROPRIATE_PROTOCOL, 4009),
            (CONNECTIONS, 4004),
        ] {
            assert_eq!(farewell(&disconnect).code, code, "{disconnect}");
            assert_eq!(farewell(&disconnect).reason, disconnect.reason);
        }
        assert!(
            Disconnect::ALL
                .iter()
                .all(|one| (4001..4300).contains(&farewell(one).code))
        );
    }
}
