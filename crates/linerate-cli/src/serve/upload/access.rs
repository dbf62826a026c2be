//! Who may upload and follow logs: each client of an open server, elsewhere those that show a key.
//!
//! Browsers can't send a header with a WebSocket, and addresses end up in logs of proxies. So the key is the first
//! message: `{"type":"key","key":"…"}`. Nothing is kept of a client before that.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use linerate::CloseCode;
use linerate_gateway::session::{LogsAccess, Shared};
use serde::Deserialize;
use tokio::time::Instant;

use crate::serve::endpoint::Farewell;

/// How many bytes the message with the key may have.
pub(super) const KEY_TEXT_BYTES_MAX: usize = 4 << 10;
/// How long a client may take to show the key.
pub(super) const KEY_WITHIN: Duration = Duration::from_secs(10);
/// How long a client waits that has shown a wrong one.
pub(super) const WRONG_KEY_DELAY: Duration = Duration::from_secs(1);
/// How often a wrong key is logged at most.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

pub(super) const CLOSED: &str = r#"{"type":"error","code":"closed","message":"This server takes no logs: it is not open, and no key for logs is configured (auth.logs_key or auth.admin_key)."}"#;
pub(super) const WRONG_KEY: &str = r#"{"type":"error","code":"wrong_key","message":"That is not the key for logs (auth.logs_key or auth.admin_key)."}"#;
pub(super) const CLOSED_FAREWELL: Farewell = Farewell {
    code: CloseCode::POLICY_VIOLATION,
    reason: "closed",
};
pub(super) const WRONG_KEY_FAREWELL: Farewell = Farewell {
    code: CloseCode::POLICY_VIOLATION,
    reason: "wrong key",
};

/// Judges clients by the configuration as it is at the moment.
#[derive(Debug)]
pub(in crate::serve) struct Gate {
    shared: Arc<Shared>,
    wrong: Mutex<Wrong>,
}

/// Wrong keys since the last line of the log about them.
#[derive(Debug, Default)]
struct Wrong {
    count: u64,
    logged: Option<Instant>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Shown {
    Key { key: String },
}

impl Gate {
    pub(in crate::serve) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            wrong: Mutex::default(),
        }
    }

    pub(super) fn access(&self) -> LogsAccess {
        self.shared.settings().logs_access()
    }

    /// Returns whether a message shows a key that is right.
    pub(super) fn opens(&self, text: &str, address: IpAddr) -> bool {
        let shown = serde_json::from_str(text);
        let is_right = shown.is_ok_and(|Shown::Key { key }| {
            let settings = self.shared.settings();
            settings.authenticator.is_logs_key(key.as_bytes())
        });
        if !is_right {
            self.note_wrong(address);
        }
        is_right
    }

    fn note_wrong(&self, address: IpAddr) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.count += 1;
        if wrong.logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            wrong.logged = Some(Instant::now());
            let times = std::mem::take(&mut wrong.count);
            tracing::warn!(%address, times, "wrong key for logs");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linerate_gateway::{
        config::{Config, Secret},
        session::{LogsAccess, Settings, Shared},
    };

    use super::{CLOSED, Gate, WRONG_KEY};

    fn gate(keys: &[&str]) -> Gate {
        let mut config = Config::default();
        for name in keys {
            let key = Some(Secret::new(&format!("0123456789abcdef-{name}")));
            match *name {
                "api" => config.auth.api_key = key,
                "admin" => config.auth.admin_key = key,
                _ => config.auth.logs_key = key,
            }
        }
        Gate::new(Arc::new(Shared::new(Settings::new(config, None).unwrap())))
    }

    fn opens(gate: &Gate, name: &str) -> bool {
        let text = format!(r#"{{"type":"key","key":"0123456789abcdef-{name}"}}"#);
        gate.opens(&text, [192, 0, 2, 1].into())
    }

    #[test]
    fn uploads_are_off_unless_the_server_is_open_or_a_key_is_given() {
        assert_eq!(gate(&[]).access(), LogsAccess::Open);
        assert_eq!(gate(&["api"]).access(), LogsAccess::Closed);
        assert_eq!(gate(&["api", "admin"]).access(), LogsAccess::Key);
        assert_eq!(gate(&["api", "logs"]).access(), LogsAccess::Key);
        assert_eq!(gate(&["logs"]).access(), LogsAccess::Key);
        let mut anonymous = Config::default();
        anonymous.auth.anonymous = true;
        anonymous.auth.api_key = Some(Secret::new("0123456789abcdef-api-key"));
        let settings = Settings::new(anonymous, None).unwrap();
        assert_eq!(settings.logs_access(), LogsAccess::Closed);
    }

    #[test]
    fn the_key_is_that_for_logs_or_that_of_the_admin_page() {
        let both = gate(&["api", "admin", "logs"]);
        assert!(opens(&both, "admin") && opens(&both, "logs"));
        assert!(!opens(&both, "api") && !opens(&both, "") && !opens(&both, "logs2"));
        assert!(!opens(&gate(&["api"]), "api"));
        for text in [
            "",
            "{}",
            r#"{"type":"key"}"#,
            r#"{"type":"start","files":[]}"#,
        ] {
            assert!(!both.opens(text, [192, 0, 2, 1].into()), "{text}");
        }
    }

    #[test]
    fn refusals_are_errors_of_the_protocol() {
        for (text, code) in [(CLOSED, "closed"), (WRONG_KEY, "wrong_key")] {
            let error: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                (&error["type"], &error["code"]),
                (&"error".into(), &code.into())
            );
        }
    }
}
