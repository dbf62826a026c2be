//! What differs between Unix and Windows: signals, terminals, the limit of open files, pages of
//! memory, options of sockets.
//!
//! The folder `elsewhere` has what replaces modules that need Linux on other platforms.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{
    HangUps, StopSignals, TerminalMode, avoid_huge_pages, end_standard_input,
    raise_descriptor_limit, reuse_address, share_port,
};
#[cfg(windows)]
pub(crate) use windows::{
    HangUps, StopSignals, TerminalMode, avoid_huge_pages, end_standard_input,
    raise_descriptor_limit, reuse_address, share_port,
};
