//! The `Display` and `Debug` output of values, as it appears in errors and logs.

use core::time::Duration;

use linerate_proto::{CloseCode, Opcode, ProtocolError, engine::Timeout};

#[test]
fn a_close_code_is_its_number() {
    assert_eq!(CloseCode::NORMAL.to_string(), "1000");
    assert_eq!(format!("{:?}", CloseCode::NORMAL), "CloseCode(1000)");
}

#[test]
fn opcodes_have_the_names_of_the_standard() {
    let names = [
        (Opcode::Continuation, "continuation"),
        (Opcode::Text, "text"),
        (Opcode::Binary, "binary"),
        (Opcode::Close, "close"),
        (Opcode::Ping, "ping"),
        (Opcode::Pong, "pong"),
    ];
    for (opcode, name) in names {
        assert_eq!(opcode.to_string(), name);
    }
}

#[test]
fn a_timeout_reports_what_took_too_long() {
    let budget = Duration::from_secs(5);
    let close = Timeout::Close { budget };
    assert_eq!(close.to_string(), "closing handshake took longer than 5s");
    let error = ProtocolError::InvalidUtf8 { offset: 7 };
    let keepalive = Timeout::Keepalive(error);
    assert_eq!(keepalive.to_string(), error.to_string());
}

#[cfg(feature = "deflate")]
#[test]
fn an_agreement_shows_the_settings_of_each_direction() {
    use linerate_proto::deflate::{Agreement, Context};

    let context = |window_bits, takeover| Context {
        window_bits,
        takeover,
    };
    let agreement = Agreement {
        sending: context(12, true),
        receiving: context(15, false),
    };
    assert_eq!(
        agreement.to_string(),
        "sending with 12 bits and takeover, receiving with 15 bits and no takeover"
    );
}
