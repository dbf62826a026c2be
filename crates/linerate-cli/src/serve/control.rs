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

/// Why the server stops serving.
#[derive(Clone, Copy, Debug)]
enum End {
    /// A signal, or the failure of a worker.
    Stop,
    /// The process with this ID has taken over.
    TakenOver(u32),
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

    /// Starts the gateway and runs it until a stop signal arrives, a worker fails or another
    /// process takes over, then drains it. Calls `announce` as soon as it serves.
    pub(super) async fn run(
        mut self,
        gateway: Gateway,
        pages: Pages,
        announce: impl FnOnce(),
    ) -> anyhow::Result<()> {
        let address = gateway.address();
        let mut running = gateway.start_with(move |clients| pages.clone().routes(clients))?;
        tokio::select! {
            taken_over = running.take_over() => taken_over?,
            // The other process continues to serve.
            () = self.stop_signals.recv() => return Ok(running.shut_down().await?),
        }
        announce();
        notify::ready();
        tracing::info!(%address, node = running.info().id, "serving");
        let end = loop {
            tokio::select! {
                () = self.stop_signals.recv() => break End::Stop,
                () = running.failed() => break End::Stop,
                process = running.taken_over() => break End::TakenOver(process),
                () = self.hang_ups.recv() => self.reload(&running),
            }
        };
        match end {
            End::Stop => notify::stopping(),
            // From now on, systemd supervises the other process.
            End::TakenOver(process) => notify::main_process(process),
        }
        tokio::select! {
            () = running.drain() => {}
            () = self.second_signal(end) => {
                tracing::warn!("second stop signal: closing all connections immediately");
            }
        }
        running.shut_down().await?;
        Ok(())
    }

    /// Waits for the signal that cuts the draining short.
    async fn second_signal(&mut self, end: End) {
        if let End::TakenOver(_) = end {
            // The first one asks for what already happens: systemd sends it to all processes of a
            // unit that it stops.
            self.stop_signals.recv().await;
        }
        self.stop_signals.recv().await;
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
