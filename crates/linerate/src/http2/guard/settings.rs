//! Values of settings (RFC 9113 §6.5).

use h2::Reason;

use super::windows::{WINDOW_BYTES_MAX, Windows};

/// What a setting has: two bytes of an identifier and four of a value.
const SETTING_BYTES: usize = 6;

const INITIAL_WINDOW_SIZE: u16 = 0x4;

/// A payload of settings, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Settings {
    setting: [u8; SETTING_BYTES],
    bytes: usize,
}

impl Settings {
    /// Takes some bytes of the payload, and resizes the windows by it.
    ///
    /// # Errors
    /// A window is larger than any may be. h2 knows the other values that may not be.
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

    /// §6.5.2: "Values above the maximum flow-control window size of 2^31-1 MUST be treated as a connection
    /// error of type FLOW_CONTROL_ERROR."
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
