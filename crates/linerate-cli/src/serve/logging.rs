//! The server's log: as text or as JSON, with a level that can be changed at run time.

use std::{env, io};

use anyhow::Context;
use linerate_gateway::config::{LogFormat, LogOptions};
use tracing_subscriber::{
    EnvFilter, Registry, fmt, layer::SubscriberExt, reload, util::SubscriberInitExt,
};

use crate::{log_filter, terminal::has_colors};

/// The environment variable that overrides the configured level, for temporary debugging.
const LEVEL_VARIABLE: &str = "LINERATE_LOG";

/// A handle that changes the log level.
#[derive(Debug)]
pub(super) struct Logging(reload::Handle<EnvFilter, Registry>);

/// Starts logging.
pub(super) fn start(options: &LogOptions) -> anyhow::Result<Logging> {
    let (filter, handle) = reload::Layer::new(filter(options)?);
    let registry = tracing_subscriber::registry().with(filter);
    let layer = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(has_colors(&std::io::stderr()));
    let started = match options.format {
        LogFormat::Json => registry
            .with(layer.json().flatten_event(true).with_current_span(false))
            .try_init(),
        _ => registry.with(layer).try_init(),
    };
    started.context("cannot start logging")?;
    Ok(Logging(handle))
}

impl Logging {
    /// Changes the log level.
    pub(super) fn set_level(&self, options: &LogOptions) -> anyhow::Result<()> {
        self.0.reload(filter(options)?)?;
        Ok(())
    }
}

fn filter(options: &LogOptions) -> anyhow::Result<EnvFilter> {
    let variable = env::var(LEVEL_VARIABLE).ok();
    let (name, text) = match variable.filter(|text| !text.is_empty()) {
        Some(text) => (LEVEL_VARIABLE, text),
        None => ("log.level", options.level.clone()),
    };
    log_filter::parse(&text).with_context(|| format!("{name} = {text:?}"))
}
