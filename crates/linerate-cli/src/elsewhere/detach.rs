//! Replaces the background start where there are no takeovers.

/// Fails.
pub(super) fn start() -> anyhow::Result<()> {
    anyhow::bail!("--detach belongs to --takeover, which needs Linux")
}
