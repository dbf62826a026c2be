//! The replacement for the io_uring driver's state of a socket on systems without that driver.

/// No input arrives with an event, and no output is queued.
#[derive(Debug, Default)]
pub(super) struct State;

impl State {
    pub(super) const fn input_is_over(&mut self) {}

    pub(super) const fn is_receiving(&self) -> bool {
        false
    }

    pub(super) const fn learn(&mut self, _bytes: usize, _continues: bool) {}

    pub(super) const fn may_be_sending(&self) -> bool {
        false
    }
}
