//! Access control for uploading and following logs. On an open server every client has access;
//! otherwise a client must send a key.
//!
//! Browsers cannot send custom headers with a WebSocket request, and URLs end up in the logs of
//! proxies. So the key is sent in the first message: `{"type":"key","key":"…"}`. The server stores
//! nothing from a client before that.

use std::{net::IpAddr, time::Duration};

use linerate::CloseCode;
use linerate_gateway::{Access, KeyRefusal, LogsAccess};
use serde::Deserialize;
use serde_json::json;

use crate::serve::endpoint::Farewell;

/// Maximum size of the message with the key.
pub(super) const KEY_TEXT_BYTES_MAX: usize = 4 << 10;
/// How long a client may take to send the key.
pub(super) const KEY_WITHIN: Duration = Duration::from_secs(10);
/// Delay before a wrong key is rejected.
pub(super) const WRONG_KEY_DELAY: Duration = Duration::from_secs(1);

pub(super) const CLOSED: &str = r#"{"type":"error","code":"closed","message":"This server does not accept logs: it is not open, and no key for logs is configured (auth.logs_key or auth.admin_key)."}"#;
const WRONG_KEY: &str = r#"{"type":"error","code":"wrong_key","message":"This is not the key for logs (auth.logs_key or auth.admin_key)."}"#;
pub(super) const CLOSED_FAREWELL: Farewell = Farewell {
    code: CloseCode::POLICY_VIOLATION,
    reason: "closed",
};
const WRONG_KEY_FAREWELL: Farewell = Farewell {
    code: CloseCode::POLICY_VIOLATION,
    reason: "wrong key",
};
const KEYS_LIMITED_FAREWELL: Farewell = Farewell {
    code: CloseCode::TRY_AGAIN_LATER,
    reason: "too many wrong keys",
};

/// Checks clients against the current configuration.
#[derive(Debug)]
pub(in crate::serve) struct Gate {
    access: Access,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Shown {
    Key { key: String },
}

impl Gate {
    pub(in crate::serve) const fn new(access: Access) -> Self {
        Self { access }
    }

    pub(super) fn access(&self) -> LogsAccess {
        self.access.logs()
    }

    /// Checks the key in a message. A message without a key is refused like a wrong key, but does
    /// not count as one.
    pub(super) fn judge(&self, text: &str, address: IpAddr) -> Result<(), KeyRefusal> {
        let Ok(Shown::Key { key }) = serde_json::from_str(text) else {
            return Err(KeyRefusal::Wrong);
        };
        self.access.judge_logs_key(key.as_bytes(), address)
    }
}

/// Returns the error message and the farewell for a client whose key is refused.
pub(super) fn refusal_of_key(why: KeyRefusal) -> (String, Farewell) {
    match why {
        KeyRefusal::Limited(wait) => {
            let seconds = wait.as_secs() + 1;
            let message =
                format!("Too many wrong keys from your address. Try again in {seconds} seconds.");
            let error = json!({"type": "error", "code": "keys_limited", "message": message});
            (error.to_string(), KEYS_LIMITED_FAREWELL)
        }
        _ => (WRONG_KEY.to_owned(), WRONG_KEY_FAREWELL),
    }
}

#[cfg(test)]
mod tests {
    use linerate_gateway::{
        Gateway, KeyRefusal,
        config::{Config, Secret},
    };

    use super::{CLOSED, Gate, WRONG_KEY, refusal_of_key};

    fn gate() -> Gate {
        let mut config = Config::default();
        config.server.listen = ([127, 0, 0, 1], 0).into();
        config.server.workers = 1;
        config.auth.logs_key = Some(Secret::new("0123456789abcdef-logs"));
        Gate::new(Gateway::bind(config).unwrap().access())
    }

    fn opens(gate: &Gate, name: &str) -> bool {
        let text = format!(r#"{{"type":"key","key":"0123456789abcdef-{name}"}}"#);
        gate.judge(&text, [192, 0, 2, 1].into()).is_ok()
    }

    #[tokio::test]
    async fn message_that_presents_no_key_is_refused_and_does_not_count_as_a_wrong_one() {
        let gate = gate();
        for text in [
            "",
            "{}",
            r#"{"type":"key"}"#,
            r#"{"type":"start","files":[]}"#,
        ] {
            for _ in 0..20 {
                let judged = gate.judge(text, [192, 0, 2, 1].into());
                assert_eq!(judged, Err(KeyRefusal::Wrong), "{text}");
            }
        }
        assert!(opens(&gate, "logs"));
    }

    #[tokio::test]
    async fn address_that_presents_wrong_keys_waits_and_others_do_not() {
        let gate = gate();
        for _ in 0..20 {
            assert!(!opens(&gate, "guess"));
        }
        let right = r#"{"type":"key","key":"0123456789abcdef-logs"}"#;
        let Err(limited) = gate.judge(right, [192, 0, 2, 1].into()) else {
            panic!("even the right key must be refused while the address is limited");
        };
        assert!(matches!(limited, KeyRefusal::Limited(_)), "{limited:?}");
        let (error, farewell) = refusal_of_key(limited);
        let error: serde_json::Value = serde_json::from_str(&error).unwrap();
        assert_eq!(error["code"], "keys_limited");
        assert_eq!(farewell.code.as_u16(), 1013);
        assert_eq!(gate.judge(right, [192, 0, 2, 2].into()), Ok(()));
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
