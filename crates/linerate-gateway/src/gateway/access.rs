//! Who may use the routes that an application adds to a gateway.

use std::{net::IpAddr, sync::Arc};

use axum::response::Response;
use http::request::Parts;
use serde::Serialize;

use crate::{
    auth::KeyRefusal,
    config::Config,
    operations::refuse_diagnostics,
    session::{SessionEnvironment, Settings},
};

/// Checks clients against the current configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Access {
    shared: Arc<SessionEnvironment>,
}

/// Who may upload logs, and view the logs that the server follows.
///
/// This enum is complete: a client is admitted, asked for a key, or refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogsAccess {
    /// No client: the server is not open, and neither `auth.logs_key` nor `auth.admin_key` is
    /// configured.
    Closed,
    /// Clients that present a key.
    Key,
    /// Every client: the server is open.
    Open,
}

/// What clients may know about the server before they connect.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClientAccess {
    /// True if no key is configured: every client may do what the channels allow.
    pub is_open: bool,
    /// True if clients cannot connect without a token.
    pub needs_token: bool,
    /// The client protocols that are switched on, by the names of their keys in `[protocols]`.
    pub protocols: Vec<&'static str>,
    /// The key of the app of Pusher clients, if their protocol is switched on.
    pub pusher_key: Option<String>,
}

impl Access {
    pub(super) const fn new(shared: Arc<SessionEnvironment>) -> Self {
        Self { shared }
    }

    /// Returns how clients connect.
    pub fn clients(&self) -> ClientAccess {
        client_access(&self.shared.settings().config)
    }

    /// Returns who may upload and follow logs.
    pub fn logs(&self) -> LogsAccess {
        logs_access(&self.shared.settings())
    }

    /// Checks a key for logs presented by a client at `address`: `auth.logs_key` or
    /// `auth.admin_key`.
    ///
    /// # Errors
    /// The key is wrong, or this address has presented too many wrong keys.
    pub fn judge_logs_key(&self, key: &[u8], address: IpAddr) -> Result<(), KeyRefusal> {
        let settings = self.shared.settings_full();
        self.shared.judge_key("logs_key", Some(address), || {
            settings.authenticator.is_logs_key(key)
        })
    }

    /// Checks a request for diagnostics. These are public if the server is open or
    /// `server.diagnostics` is set; otherwise they require the admin key. Returns the response if
    /// the request is refused.
    pub fn refuse_diagnostics(&self, parts: &Parts) -> Option<Response> {
        refuse_diagnostics(&self.shared, parts)
    }
}

fn client_access(config: &Config) -> ClientAccess {
    let protocols = &config.protocols;
    let known = [
        ("native", protocols.native),
        ("centrifuge", protocols.centrifuge),
        ("socketio", protocols.socketio),
        ("pusher", protocols.pusher),
        ("phoenix", protocols.phoenix),
        ("raw", protocols.raw),
        ("sse", protocols.sse),
    ];
    let switched_on = known.into_iter().filter(|(_, is_on)| *is_on);
    let pusher_key = config.pusher.key.clone();
    ClientAccess {
        is_open: config.is_open(),
        needs_token: !config.allows_anonymous() && config.client.connect_backend.is_none(),
        protocols: switched_on.map(|(name, _)| name).collect(),
        pusher_key: pusher_key.filter(|_| protocols.pusher),
    }
}

fn logs_access(settings: &Settings) -> LogsAccess {
    let has_own_key = settings.authenticator.has_logs_key();
    if settings.config.is_open() && !has_own_key {
        return LogsAccess::Open;
    }
    match has_own_key || settings.authenticator.has_admin_key() {
        true => LogsAccess::Key,
        false => LogsAccess::Closed,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Access, LogsAccess, client_access};
    use crate::{
        auth::KeyRefusal,
        config::{Config, Secret},
        session::{SessionEnvironment, Settings},
    };

    const RIGHT: &[u8] = b"0123456789abcdef-logs";

    fn access(keys: &[&str]) -> Access {
        let mut config = Config::default();
        for name in keys {
            let key = Some(Secret::new(&format!("0123456789abcdef-{name}")));
            match *name {
                "api" => config.auth.api_key = key,
                "admin" => config.auth.admin_key = key,
                _ => config.auth.logs_key = key,
            }
        }
        of(config)
    }

    fn of(config: Config) -> Access {
        Access::new(Arc::new(SessionEnvironment::new(
            Settings::new(config, None).unwrap(),
        )))
    }

    fn opens(access: &Access, name: &str) -> bool {
        let key = format!("0123456789abcdef-{name}");
        let judged = access.judge_logs_key(key.as_bytes(), [192, 0, 2, 1].into());
        judged.is_ok()
    }

    #[test]
    fn logs_are_closed_unless_the_server_is_open_or_a_key_is_given() {
        assert_eq!(access(&[]).logs(), LogsAccess::Open);
        assert_eq!(access(&["api"]).logs(), LogsAccess::Closed);
        assert_eq!(access(&["api", "admin"]).logs(), LogsAccess::Key);
        assert_eq!(access(&["api", "logs"]).logs(), LogsAccess::Key);
        assert_eq!(access(&["logs"]).logs(), LogsAccess::Key);
        let mut anonymous = Config::default();
        anonymous.auth.anonymous = true;
        anonymous.auth.api_key = Some(Secret::new("0123456789abcdef-api-key"));
        assert_eq!(of(anonymous).logs(), LogsAccess::Closed);
    }

    #[test]
    fn logs_open_with_their_own_key_or_that_of_the_admin_page() {
        let both = access(&["api", "admin", "logs"]);
        assert!(opens(&both, "admin") && opens(&both, "logs"));
        assert!(!opens(&both, "api") && !opens(&both, "") && !opens(&both, "logs2"));
        assert!(!opens(&access(&["api"]), "api"));
    }

    #[test]
    fn address_that_presents_wrong_keys_waits_and_others_do_not() {
        let access = access(&["logs"]);
        for _ in 0..20 {
            assert!(!opens(&access, "guess"));
        }
        let judge = |address: [u8; 4]| access.judge_logs_key(RIGHT, address.into());
        assert!(matches!(judge([192, 0, 2, 1]), Err(KeyRefusal::Limited(_))));
        assert_eq!(judge([192, 0, 2, 2]), Ok(()));
    }
    #[test]
    fn clients_are_told_what_is_switched_on_and_nothing_secret() {
        let mut config = Config::default();
        let open = client_access(&config);
        assert!(open.is_open && !open.needs_token);
        assert_eq!(open.protocols, ["native", "centrifuge", "raw", "sse"]);

        config.auth.token.hmac_secret_key = Some(Secret::new("0123456789abcdef-hmac"));
        config.pusher.key = Some("app-key".into());
        config.pusher.secret = Some(Secret::new("0123456789abcdef-pusher"));
        assert_eq!(client_access(&config).pusher_key, None);
        config.protocols.pusher = true;
        config.protocols.raw = false;
        let keyed = client_access(&config);
        assert!(!keyed.is_open && keyed.needs_token);
        assert_eq!(keyed.protocols, ["native", "centrifuge", "pusher", "sse"]);
        let json = serde_json::to_string(&keyed).unwrap();
        assert!(json.contains("app-key") && !json.contains("0123456789abcdef"));

        config.auth.anonymous = true;
        assert!(!client_access(&config).needs_token);
    }
}
