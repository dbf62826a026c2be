//! Applying a changed configuration, and renewing the certificate, while the gateway serves.

use std::{sync::Arc, time::Duration};

use thiserror::Error;
use tokio::time::{MissedTickBehavior, interval};

use super::Running;
use crate::{
    config::Config,
    node::Node,
    server::Frontend,
    session::{Settings, SettingsError},
};

/// How often to check whether the certificate has changed.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(5);

/// The reason why a changed configuration could not be applied. The current one stays in force.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct ReloadError(#[from] SettingsError);

impl Running {
    /// Applies every change of the configuration that does not need a restart, and reads the
    /// certificate again. Returns the changed keys that take effect only after a restart.
    ///
    /// # Errors
    /// Fails, without applying anything, if a key or an origin is invalid, or a backend cannot be
    /// used. A certificate that cannot be used is logged, and the current one stays.
    pub fn reload(&self, config: Config) -> Result<Vec<&'static str>, ReloadError> {
        let (frontend, shared) = (&self.parts.frontend, &self.parts.shared);
        let previous = shared.settings_full();
        let fixed = needs_restart(&previous.config, &config);
        let settings = Settings::new(config, Some(&previous))?;
        if let Some(certificate) = &frontend.certificate
            && let Err(error) = certificate.reload()
        {
            tracing::error!(%error, "cannot reload the certificate; keeping the current one");
        }
        frontend.admission.set_limits(&settings.config.server);
        frontend.hosts.set(&settings.config);
        self.parts
            .node
            .namespaces
            .replace(settings.namespaces.clone());
        apply(&self.parts.node, &settings);
        self.parts.sources.replace(&settings.sources);
        let redis = settings.socketio_redis.as_ref();
        self.parts.sources.replace_feeds(redis);
        shared.replace(settings);
        Ok(fixed)
    }
}

/// Starts and stops what a node has only if the configuration says so.
pub(super) fn apply(node: &Node, settings: &Settings) {
    node.replace_webhooks(&settings.webhooks);
    node.producers.replace(&settings.producers);
    let counts = settings.config.tells_subscription_counts();
    node.switch_subscription_counts(counts);
}

/// Reloads the certificate whenever its file has changed, until the server stops.
pub(super) async fn renew_certificate(frontend: Arc<Frontend>) {
    let Some(certificate) = &frontend.certificate else {
        return;
    };
    let mut ticks = interval(CERTIFICATE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = frontend.stopped.over() => return,
        }
        match certificate.reload_if_changed() {
            Ok(true) => tracing::info!("certificate reloaded"),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%error, "cannot reload the certificate; keeping the current one");
            }
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
        (
            "server.takeover_socket",
            from.takeover_socket != to.takeover_socket,
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
    ];
    let changed = changes.into_iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::needs_restart;
    use crate::config::Loader;

    #[test]
    fn keys_that_need_a_restart_are_named() {
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
