//! Close codes. The npm package reconnects after every code; before version 1.8, it does not after
//! 1000.

use crate::protocol::codes::Disconnect;

/// "Normal Closure" (RFC 6455 §7.4.1).
const NORMAL: u16 = 1000;
/// "Protocol error" (RFC 6455 §7.4.1).
const PROTOCOL_ERROR: u16 = 1002;
/// Data that is not consistent with the type of the message (RFC 6455 §7.4.1).
const INVALID_DATA: u16 = 1007;
/// "Service Restart" (registered with IANA), with which Phoenix drains its sockets.
const SERVICE_RESTART: u16 = 1012;
/// "Try Again Later" (registered with IANA).
const TRY_AGAIN_LATER: u16 = 1013;

/// Returns the code of Phoenix or of RFC 6455 for the reason of a disconnect. Other codes stay as
/// they are.
pub(super) fn farewell(disconnect: &Disconnect) -> Disconnect {
    let is = |known: &Disconnect| known.code == disconnect.code;
    let code = match disconnect.code {
        _ if disconnect.reason == Disconnect::OVERLOADED.reason => TRY_AGAIN_LATER,
        _ if is(&Disconnect::TOO_MANY_REQUESTS) => TRY_AGAIN_LATER,
        _ if is(&Disconnect::SHUTDOWN) => SERVICE_RESTART,
        _ if is(&Disconnect::NO_PONG) => PROTOCOL_ERROR,
        _ if is(&Disconnect::BAD_REQUEST) => INVALID_DATA,
        _ if is(&Disconnect::FORCE_NO_RECONNECT) => NORMAL,
        code => code,
    };
    disconnect.with_code(code)
}

#[cfg(test)]
mod tests {
    use super::farewell;
    use crate::protocol::codes::Disconnect;

    #[test]
    fn reasons_have_the_codes_that_phoenix_clients_know() {
        for (disconnect, code) in [
            (Disconnect::OVERLOADED, 1013),
            (Disconnect::TOO_MANY_REQUESTS, 1013),
            (Disconnect::SHUTDOWN, 1012),
            (Disconnect::NO_PONG, 1002),
            (Disconnect::BAD_REQUEST, 1007),
            (Disconnect::FORCE_NO_RECONNECT, 1000),
            (Disconnect::SLOW, 3008),
        ] {
            assert_eq!(farewell(&disconnect).code, code, "{disconnect}");
        }
    }
}
