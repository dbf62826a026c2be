//! Signal handling: shutdown in phases, and reloading the configuration.

use linerate_gateway::{
    Gateway, Running,
    config::{Loader, Section},
};

use super::{logging::Logging, notify, routes::Pages, uploads::LogsSection};
use crate::platform::{HangUps, StopSignals};

/// Runs the server and handles its signals.
#[derive(Debug)]
pub(super) struct Control {
    loader: Loader,
    /// As last loaded.
    logs: LogsSection,
    logging: Logging,
    stop_signals: StopSignals,
    hang_ups: HangUps,
}

impl Control {
    /// Starts listening for signals. Must be called within the runtime.
    pub(super) fn new(
        loader: Loader,
        logs: LogsSection,
        logging: Logging,
    ) -> std::io::Result<Self> {
        Ok(Self {
            loader,
            logs,
            logging,
            stop_signals: StopSignals::new()?,
            hang_ups: HangUps::new()?,
        })
    }

    /// Starts the gateway and runs it until a stop signal arrives or a worker fails, then drains
    /// it.
    pub(super) async fn run(mut self, gateway: Gateway, pages: Pages) -> anyhow::Result<()> {
        let address = gateway.address();
        let running = gateway.start_with(move |clients| pages.clone().routes(clients))?;
        notify::ready();
        tracing::info!(%address, node = running.info().id, "serving");
        loop {
            tokio::select! {
                () = self.stop_signals.recv() => break,
                () = running.failed() => break,
                () = self.hang_ups.recv() => self.reload(&running),
            }
        }
        notify::stopping();
        tokio::select! {
            () = running.drain() => {}
            () = self.stop_signals.recv() => {
                tracing::warn!("second stop signal: closing all connections immediately");
            }
        }
        running.shut_down().await?;
        Ok(())
    }

    /// Reloads the configuration and applies every change that does not need a restart.
    fn reload(&mut self, running: &Running) {
        if let Err(error) = self.try_reload(running) {
            let error = format!("{error:#}");
            tracing::error!(
                error,
                "cannot reload the configuration; keeping the current one"
            );
        }
    }

    fn try_reload(&mut self, running: &Running) -> anyhow::Result<()> {
        let config = self.loader.load()?;
        let logs = config.section()?;
        let mut fixed = running.reload(config.clone())?;
        if logs != self.logs {
            fixed.push(LogsSection::NAME);
            self.logs = logs;
        }
        if !fixed.is_empty() {
            tracing::warn!(
                keys = fixed.join(", "),
                "changes to these keys require a restart"
            );
        }
        if let Err(error) = self.logging.set_level(&config.log) {
            tracing::error!(
                error = format!("{error:#}"),
                "cannot change the log level; keeping the current one"
            );
        }
        tracing::info!("configuration reloaded");
        Ok(())
    }
}
