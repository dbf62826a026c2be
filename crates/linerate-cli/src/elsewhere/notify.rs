//! Replaces the notifications of systemd where it does not exist.

/// Does nothing.
pub(super) fn ready() {}

/// Does nothing.
pub(super) fn stopping() {}

/// Does nothing.
pub(super) fn main_process(_pid: u32) {}
