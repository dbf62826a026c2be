//! Values of settings (RFC 9113 §6.5).

use h2::Reason;

use super::windows::{WINDOW_BYTES_MAX, Windows};

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
    /// Handles part of the payload, and resizes the windows accordingly.
    ///
    /// # Errors
    /// Returns `FLOW_CONTROL_ERROR` if a window exceeds the maximum. h2 rejects all other invalid
    /// values.
    pub(super) fn handle_input(
        &mut self,
        input: &[u8],
        windows: &mut Windows,
    ) -> Result<(), Reason> {
        for byte in input {
            self.setting[self.bytes] = *byte;
            self.bytes += 1;
            if self.bytes == SETTING_BYTES {
                self.bytes = 0;
                self.apply(windows)?;
            }
        }
        Ok(())
    }

    /// Applies a complete setting.
    ///
    /// §6.5.2: "Values above the maximum flow-control window size of 2^31-1 MUST be treated as a
    /// connection error of type FLOW_CONTROL_ERROR."
    fn apply(&self, windows: &mut Windows) -> Result<(), Reason> {
        let [a, b, value @ ..] = self.setting;
        if u16::from_be_bytes([a, b]) == INITIAL_WINDOW_SIZE {
            let bytes = u32::from_be_bytes(value);
            if bytes > WINDOW_BYTES_MAX {
                return Err(Reason::FLOW_CONTROL_ERROR);
            }
            windows.resize(bytes);
        }
        Ok(())
    }
}
