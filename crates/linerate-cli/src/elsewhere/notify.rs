//! Replaces the notifications of systemd where it does not exist.

/// Does nothing.
pub(super) fn ready() {}

/// Does nothing.
pub(super) fn stopping() {}
