//! Replaces the background start on systems without takeovers.

/// Fails.
pub(super) fn start() -> anyhow::Result<()> {
    anyhow::bail!("--detach belongs to --takeover, which needs Linux")
}
