//! The settings that the two sides exchange first (RFC 9114 §7.2.4, RFC 9220 §3).

use crate::{
    fault::{Code, Fault},
    varint,
};

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;

/// Maximum size of a SETTINGS frame in bytes. The payload is kept only until it is complete.
pub(crate) const BYTES_MAX: usize = 4 << 10;

/// The settings that matter to us.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Settings {
    /// True if a CONNECT request may name a protocol (RFC 9220 §3).
    pub(crate) is_connect_protocol_enabled: bool,
    /// Maximum size of the header fields of a message in bytes.
    pub(crate) field_section_bytes_max: Option<u64>,
}

impl Settings {
    /// Appends the payload of the SETTINGS frame. The QPACK settings are left at their defaults,
    /// which means that there is no dynamic table.
    pub(crate) fn encode(self, output: &mut Vec<u8>) {
        if let Some(bytes_max) = self.field_section_bytes_max {
            varint::encode(output, MAX_FIELD_SECTION_SIZE);
            varint::encode(output, bytes_max.min(varint::MAX));
        }
        if self.is_connect_protocol_enabled {
            varint::encode(output, ENABLE_CONNECT_PROTOCOL);
            varint::encode(output, 1);
        }
    }

    /// Decodes the payload of a SETTINGS frame.
    ///
    /// # Errors
    /// Returns an error if the payload is malformed, contains a setting twice, or contains one that
    /// is reserved for HTTP/2.
    pub(crate) fn decode(mut payload: &[u8]) -> Result<Self, Fault> {
        let mut settings = Self::default();
        let mut seen = Vec::new();
        while !payload.is_empty() {
            let (id, value) = (take(&mut payload)?, take(&mut payload)?);
            // §7.2.4: "The same setting identifier MUST NOT occur more than once".
            if seen.contains(&id) {
                return Err(wrong("duplicate setting"));
            }
            seen.push(id);
            settings.apply(id, value)?;
        }
        Ok(settings)
    }

    fn apply(&mut self, id: u64, value: u64) -> Result<(), Fault> {
        match (id, value) {
            // §7.2.4.1: settings of HTTP/2 "MUST NOT be sent, and their receipt MUST be treated as
            // a connection error of type H3_SETTINGS_ERROR".
            (0x0 | 0x2..=0x5, _) => Err(wrong("setting reserved for HTTP/2")),
            (ENABLE_CONNECT_PROTOCOL, 0 | 1) => {
                self.is_connect_protocol_enabled = value == 1;
                Ok(())
            }
            (ENABLE_CONNECT_PROTOCOL, _) => Err(wrong("ENABLE_CONNECT_PROTOCOL must be 0 or 1")),
            (MAX_FIELD_SECTION_SIZE, _) => {
                self.field_section_bytes_max = Some(value);
                Ok(())
            }
            // We use no dynamic table, whatever capacity the peer allows.
            (QPACK_MAX_TABLE_CAPACITY | QPACK_BLOCKED_STREAMS, _) => Ok(()),
            _ => Ok(()),
        }
    }
}

fn take(payload: &mut &[u8]) -> Result<u64, Fault> {
    let truncated = Fault::connection(Code::FRAME_ERROR, "truncated settings");
    let (value, bytes) = varint::decode(payload).ok_or(truncated)?;
    *payload = &payload[bytes..];
    Ok(value)
}

const fn wrong(what: &'static str) -> Fault {
    Fault::connection(Code::SETTINGS_ERROR, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back() {
        for settings in [
            Settings::default(),
            Settings {
                is_connect_protocol_enabled: true,
                field_section_bytes_max: Some(32 << 10),
            },
        ] {
            let mut payload = Vec::new();
            settings.encode(&mut payload);
            assert_eq!(Settings::decode(&payload), Ok(settings));
        }
    }

    #[test]
    fn settings_of_others_are_read() {
        // A table of 4,096 bytes, 16 blocked streams, extended CONNECT, and an unknown setting to
        // ignore.
        let payload = b"\x01\x50\x00\x07\x10\x08\x01\x40\x21\x3f";
        let settings = Settings::decode(payload).unwrap();
        assert!(settings.is_connect_protocol_enabled);
    }

    #[test]
    fn wrong_settings_are_faults() {
        for (payload, code) in [
            (&b"\x08\x01\x08\x01"[..], Code::SETTINGS_ERROR),
            (b"\x08\x02", Code::SETTINGS_ERROR),
            (b"\x02\x00", Code::SETTINGS_ERROR),
            (b"\x08", Code::FRAME_ERROR),
            (b"\x08\x40", Code::FRAME_ERROR),
        ] {
            assert_eq!(Settings::decode(payload).unwrap_err().code, code);
        }
    }
}
