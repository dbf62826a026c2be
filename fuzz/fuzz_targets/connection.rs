//! The properties of an engine with any input.

use core::time::Duration;
use std::sync::Arc;

use linerate_proto::{Config, Engine, ProtocolError, Role, engine::State};
use linerate_testkit::{Cuts, Record, Seen, TestEndpoint, feed};

/// Feeds `data` whole, byte by byte and in random pieces. The result must always be the same, and
/// only errors that a peer can cause may occur: any other is a finding.
///
/// `of_this_role` is the error that can occur in only one role.
pub fn check(role: Role, data: &[u8], of_this_role: fn(&ProtocolError) -> bool) {
    let Some((seed, wire)) = data.split_first_chunk() else {
        return;
    };
    // Low limits that short inputs can reach.
    let mut config = Config::default();
    config.limits.message_bytes_max = 300;
    config.limits.frame_bytes_max = 200;
    config.limits.fragments_max = 4;
    let config = Arc::new(config);
    let read = |cuts| -> (Record, State) {
        let mut engine = Engine::new(TestEndpoint(role), Arc::clone(&config), Duration::ZERO);
        let record = feed(&mut engine, wire, cuts);
        (record, engine.state())
    };
    let whole = read(Cuts::Whole);
    for cuts in [Cuts::Every(1), Cuts::Random(u64::from_le_bytes(*seed))] {
        assert_eq!(read(cuts), whole, "{cuts:?}");
    }
    for seen in &whole.0.seen {
        if let Seen::Error(error) = seen {
            assert!(is_expected(error) || of_this_role(error), "{error}");
        }
    }
}

fn is_expected(error: &ProtocolError) -> bool {
    matches!(
        error,
        ProtocolError::CloseCode { .. }
            | ProtocolError::CloseTooShort
            | ProtocolError::ControlFragmented { .. }
            | ProtocolError::ControlTooLong { .. }
            | ProtocolError::ExpectedContinuation { .. }
            | ProtocolError::FrameTooBig { .. }
            | ProtocolError::InvalidUtf8 { .. }
            | ProtocolError::LengthOverflow { .. }
            | ProtocolError::MessageTooBig { .. }
            | ProtocolError::NonMinimalLength { .. }
            | ProtocolError::ReservedBits { .. }
            | ProtocolError::ReservedOpcode { .. }
            | ProtocolError::TooManyFragments { .. }
            | ProtocolError::UnexpectedContinuation
    )
}
