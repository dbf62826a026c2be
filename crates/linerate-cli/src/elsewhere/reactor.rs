//! Replaces the echo server on the reactor on platforms where it does not work.

use clap::builder::{StringValueParser, TypedValueParser};

use crate::{compression::Compression, workers};

/// The name of a driver; none is available.
pub(super) type DriverKind = String;

/// Parses the name of a driver.
pub(super) fn driver() -> impl TypedValueParser<Value = DriverKind> {
    StringValueParser::new()
}

/// Fails.
pub(super) fn run(
    _arguments: &workers::Arguments,
    _driver: DriverKind,
    _compression: Compression,
    _tls_self_signed: bool,
) -> anyhow::Result<()> {
    anyhow::bail!("`--engine reactor` needs Linux; use `--engine tokio`")
}
