//! Settings that change windows (RFC 9113 §6.5, §6.9.2).

use super::windows::Windows;

/// Size of a setting in bytes: an identifier of two bytes and a value of four.
const SETTING_BYTES: usize = 6;

const INITIAL_WINDOW_SIZE: u16 = 0x4;

/// The payload of a SETTINGS frame, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Settings {
    setting: [u8; SETTING_BYTES],
    bytes: usize,
}

impl Settings {
    /// Handles part of the payload, and resizes the windows accordingly. h2 checks the values.
    pub(super) fn handle_input(&mut self, input: &[u8], windows: &mut Windows) {
        for byte in input {
            self.setting[self.bytes] = *byte;
            self.bytes += 1;
            if self.bytes == SETTING_BYTES {
                self.bytes = 0;
                self.apply(windows);
            }
        }
    }

    /// Applies a complete setting.
    fn apply(&self, windows: &mut Windows) {
        let [a, b, value @ ..] = self.setting;
        if u16::from_be_bytes([a, b]) == INITIAL_WINDOW_SIZE {
            windows.resize(u32::from_be_bytes(value));
        }
    }
}
