//! Any bytes as commands from clients of the Centrifuge protocol.

use crate::protocol::{
    centrifuge::{Format, decode, decode_emulation},
    command::Request,
    decode::{DecodeError, Limits},
};

const LIMITS: Limits = Limits {
    commands_max: 16,
    depth_max: 8,
};

/// Decodes `data` in both formats and checks what comes out.
pub fn commands(data: &[u8]) {
    for format in [Format::Json, Format::Protobuf] {
        match decode(format, data, &LIMITS) {
            Ok(commands) => {
                assert!((1..=LIMITS.commands_max).contains(&commands.len()));
                for command in commands {
                    let has_reply =
                        !matches!(command.request, Request::Pong | Request::Send { .. });
                    assert!(command.id != 0 || !has_reply, "{command:?}");
                }
            }
            Err(error) => assert!(is_expected(format, error), "{error}"),
        }
        if let Err(error) = decode_emulation(format, data) {
            assert!(is_expected(format, error), "{error}");
        }
    }
}

/// Each format has its own errors; those of the other format are findings.
fn is_expected(format: Format, error: DecodeError) -> bool {
    match error {
        DecodeError::Empty
        | DecodeError::MissingId { .. }
        | DecodeError::TooManyCommands { .. } => true,
        DecodeError::Json { .. } | DecodeError::TooDeep { .. } => format == Format::Json,
        DecodeError::Protobuf { .. } => format == Format::Protobuf,
    }
}
