//! Replaces `linerate bench` on platforms where it does not work.

use std::ffi::OsString;

use clap::Args;

/// Compares WebSocket servers. Needs Linux.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Arguments that are ignored, so that the answer to all of them is the same.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<OsString>,
}

/// Fails.
pub(crate) fn run(_arguments: Arguments) -> anyhow::Result<()> {
    anyhow::bail!("`linerate bench` needs Linux: it is built on epoll and reads /proc")
}
