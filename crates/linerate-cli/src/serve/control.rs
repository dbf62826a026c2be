//! Signal handling: shutdown in phases, and reloading the configuration.

use std::{net::SocketAddr, time::Duration};

use linerate_gateway::{
    config::{Config, Loader},
    server::Phase,
    session::Settings,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::spawn_blocking,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use super::{
    logging::Logging,
    notify,
    service::{Service, Started, serve_operations},
};

/// How often to check whether the certificate has changed.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(5);

/// Runs the server and handles its signals.
#[derive(Debug)]
pub(super) struct Control {
    loader: Loader,
    logging: Logging,
    address: SocketAddr,
    stop_signals: StopSignals,
    hang_ups: Signal,
}

/// The signals that end the server.
#[derive(Debug)]
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl Control {
    /// Starts listening for signals. Must be called within the runtime.
    pub(super) fn new(
        loader: Loader,
        logging: Logging,
        address: SocketAddr,
    ) -> std::io::Result<Self> {
        Ok(Self {
            loader,
            logging,
            address,
            stop_signals: StopSignals::new()?,
            hang_ups: signal(SignalKind::hangup())?,
        })
    }

    /// Starts the service and runs it until a stop signal arrives or a worker ends, then drains it.
    pub(super) async fn run(mut self, service: Service) -> anyhow::Result<()> {
        let (running, mut started) = service.start()?;
        if let Some((listener, operations)) = started.operations.take() {
            tokio::spawn(serve_operations(listener, operations));
        }
        notify::ready();
        tracing::info!(address = %self.address, node = started.node.id(), "serving");
        let mut certificates = interval(CERTIFICATE_INTERVAL);
        certificates.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop_signals.recv() => break,
                () = running.one_ended() => break,
                _ = self.hang_ups.recv() => self.reload(&started),
                _ = certificates.tick() => renew_certificate(&started),
            }
        }
        notify::stopping();
        let mut threads = spawn_blocking(move || running.join());
        tokio::select! {
            () = drain(&started) => {}
            () = self.stop_signals.recv() => tracing::warn!("second stop signal: closing all connections immediately"),
            ended = &mut threads => {
                started.node.shut_down().await;
                return Ok(ended??);
            }
        }
        started.stop.enter(Phase::Over);
        started.node.shut_down().await;
        threads.await??;
        Ok(())
    }

    /// Reloads the configuration and applies every change that does not need a restart.
    fn reload(&self, started: &Started) {
        match self.loader.load() {
            Ok(config) => self.apply(config, started),
            Err(error) => {
                tracing::error!(%error, "cannot reload the configuration; keeping the current one")
            }
        }
    }

    fn apply(&self, config: Config, started: &Started) {
        let previous = started.shared.settings_full();
        let fixed = needs_restart(&previous.config, &config);
        if !fixed.is_empty() {
            tracing::warn!(
                keys = fixed.join(", "),
                "changes to these keys require a restart"
            );
        }
        let settings = match Settings::new(config, Some(&previous)) {
            Ok(settings) => settings,
            Err(error) => {
                return tracing::error!(%error, "cannot apply the configuration; keeping the current one");
            }
        };
        if let Err(error) = self.logging.set_level(&settings.config.log) {
            tracing::error!(
                error = format!("{error:#}"),
                "cannot change the log level; keeping the current one"
            );
        }
        if let Some(certificate) = &started.front.certificate
            && let Err(error) = certificate.reload()
        {
            tracing::error!(%error, "cannot reload the certificate; keeping the current one");
        }
        started.front.admission.set_limits(&settings.config.server);
        started.front.hosts.set(&settings.config);
        started.node.set_namespaces(settings.namespaces.clone());
        started.shared.replace(settings);
        tracing::info!("configuration reloaded");
    }
}

impl StopSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of the signals.
    async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Disconnects all clients gradually. Returns once they have had all the time that the
/// configuration allows.
async fn drain(started: &Started) {
    let settings = started.shared.settings_full();
    let options = &settings.config.server.drain;
    started.stop.enter(Phase::Announced);
    sleep(options.delay).await;
    let connections = started.front.admission.open();
    let window = options.window_of(connections);
    tracing::info!(connections, window_s = window.as_secs_f64(), "draining");
    let since = Instant::now();
    started.stop.enter(Phase::Leaving { since, window });
    sleep(window + options.timeout).await;
    let connections = started.front.admission.open();
    tracing::warn!(
        connections,
        "drain timeout: closing the remaining connections"
    );
}

fn renew_certificate(started: &Started) {
    let Some(certificate) = &started.front.certificate else {
        return;
    };
    match certificate.reload_if_changed() {
        Ok(true) => tracing::info!("certificate reloaded"),
        Ok(false) => {}
        Err(error) => {
            tracing::error!(%error, "cannot reload the certificate; keeping the current one")
        }
    }
}

/// Returns the changed keys that take effect only after a restart.
fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let (from, to) = (&old.server, &new.server);
    let changes = [
        ("server.listen", from.listen != to.listen),
        (
            "server.operations_listen",
            from.operations_listen != to.operations_listen,
        ),
        (
            "server.memory_bytes_max",
            from.memory_bytes_max != to.memory_bytes_max,
        ),
        ("server.workers", from.workers != to.workers),
        (
            "server.proxy_protocol",
            from.proxy_protocol != to.proxy_protocol,
        ),
        ("server.tls", from.tls != to.tls),
        (
            "auth.revocations_max",
            old.auth.revocations_max != new.auth.revocations_max,
        ),
        ("broker", old.broker != new.broker),
        (
            "compression.total_bytes_max",
            old.compression.total_bytes_max != new.compression.total_bytes_max,
        ),
        ("filter", old.filter != new.filter),
        ("log.format", old.log.format != new.log.format),
        ("logs", old.logs != new.logs),
    ];
    let changed = changes.into_iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use linerate_gateway::config::Loader;

    use super::needs_restart;

    #[test]
    fn what_can_not_be_taken_over_is_named() {
        let load = |text: &str| Loader::new().with_text("test.toml", text).load().unwrap();
        let old = load("");
        assert!(needs_restart(&old, &load("[channel]\nhistory_size = 7")).is_empty());
        assert!(needs_restart(&old, &load("[server]\nconnections_max = 7")).is_empty());
        let new = load("[server]\nworkers = 7\n[broker]\nprefix = \"a\"\n[log]\nformat = \"json\"");
        assert_eq!(
            needs_restart(&old, &new),
            ["server.workers", "broker", "log.format"]
        );
    }
}
