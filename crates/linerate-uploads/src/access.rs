//! Access control for uploading and viewing logs.
//!
//! Browsers cannot send custom headers with a WebSocket request, and URLs end up in the logs of
//! proxies. So the key is sent in the first message: `{"type":"key","key":"…"}`. The server stores
//! nothing from a client before that.

use std::{fmt::Debug, net::IpAddr, time::Duration};

use serde::Deserialize;
use serde_json::json;

use crate::farewell::Farewell;

/// Maximum size of the message with the key.
pub(crate) const KEY_TEXT_BYTES_MAX: usize = 4 << 10;
/// How long a client may take to send the key.
pub(crate) const KEY_WITHIN: Duration = Duration::from_secs(10);
/// Delay before a wrong key is rejected.
pub(crate) const WRONG_KEY_DELAY: Duration = Duration::from_secs(1);

pub(crate) const CLOSED: &str = r#"{"type":"error","code":"closed","message":"This server does not accept logs: it is not open, and no key for logs is configured (auth.logs_key or auth.admin_key)."}"#;
const WRONG_KEY: &str = r#"{"type":"error","code":"wrong_key","message":"This is not the key for logs (auth.logs_key or auth.admin_key)."}"#;

/// Decides who may upload logs, and view the logs that the server follows.
pub trait Access: Debug + Send + Sync {
    /// Returns which clients are admitted at the moment.
    fn admission(&self) -> Admission;

    /// Checks a key that a client at `address` presents.
    ///
    /// # Errors
    /// The key is wrong, or this address has presented too many wrong keys.
    fn check_key(&self, key: &[u8], address: IpAddr) -> Result<(), KeyRefusal>;
}

/// Which clients are admitted. This enum is complete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Admission {
    /// No client.
    Closed,
    /// Clients that present a key.
    Key,
    /// Every client.
    Open,
}

/// Why a key is refused. This enum is complete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyRefusal {
    /// Too many keys from the same address were wrong. The next one is checked after this time.
    Limited(Duration),
    /// The key is wrong.
    Wrong,
}

/// A client that is not admitted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visitor<'a> {
    pub(crate) address: IpAddr,
    access: &'a dyn Access,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum KeyMessage {
    Key { key: String },
}

impl<'a> Visitor<'a> {
    pub(crate) const fn new(address: IpAddr, access: &'a dyn Access) -> Self {
        Self { address, access }
    }

    pub(crate) fn admission(&self) -> Admission {
        self.access.admission()
    }

    /// Checks the key in a message. A message without a key is refused like a wrong key, but does
    /// not count as one.
    pub(crate) fn check_message(&self, text: &str) -> Result<(), KeyRefusal> {
        let Ok(KeyMessage::Key { key }) = serde_json::from_str(text) else {
            return Err(KeyRefusal::Wrong);
        };
        self.access.check_key(key.as_bytes(), self.address)
    }
}

/// Returns the error message and the farewell for a client whose key is refused.
pub(crate) fn refusal_of_key(why: KeyRefusal) -> (String, Farewell) {
    match why {
        KeyRefusal::Limited(wait) => {
            let seconds = wait.as_secs() + 1;
            let message =
                format!("Too many wrong keys from your address. Try again in {seconds} seconds.");
            let error = json!({"type": "error", "code": "keys_limited", "message": message});
            (error.to_string(), Farewell::KEYS_LIMITED)
        }
        KeyRefusal::Wrong => (WRONG_KEY.to_owned(), Farewell::WRONG_KEY),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::IpAddr,
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    use super::{Access, Admission, CLOSED, KeyRefusal, Visitor, WRONG_KEY, refusal_of_key};

    /// Admits clients with the key `logs`, and counts how many keys were checked.
    #[derive(Debug, Default)]
    struct Counting(AtomicU32);

    impl Access for Counting {
        fn admission(&self) -> Admission {
            Admission::Key
        }

        fn check_key(&self, key: &[u8], _address: IpAddr) -> Result<(), KeyRefusal> {
            self.0.fetch_add(1, Ordering::Relaxed);
            match key {
                b"logs" => Ok(()),
                _ => Err(KeyRefusal::Wrong),
            }
        }
    }

    #[test]
    fn message_that_presents_no_key_is_refused_and_does_not_count_as_a_wrong_one() {
        let access = Counting::default();
        let visitor = Visitor::new([192, 0, 2, 1].into(), &access);
        for text in [
            "",
            "{}",
            r#"{"type":"key"}"#,
            r#"{"type":"start","files":[]}"#,
        ] {
            assert_eq!(
                visitor.check_message(text),
                Err(KeyRefusal::Wrong),
                "{text}"
            );
        }
        assert_eq!(access.0.load(Ordering::Relaxed), 0);
        let wrong = visitor.check_message(r#"{"type":"key","key":"guess"}"#);
        assert_eq!(wrong, Err(KeyRefusal::Wrong));
        assert_eq!(
            visitor.check_message(r#"{"type":"key","key":"logs"}"#),
            Ok(())
        );
        assert_eq!(access.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn address_that_has_to_wait_is_told_for_how_long() {
        let (error, farewell) = refusal_of_key(KeyRefusal::Limited(Duration::from_secs(41)));
        let error: serde_json::Value = serde_json::from_str(&error).unwrap();
        assert_eq!(error["code"], "keys_limited");
        assert!(error["message"].as_str().unwrap().contains("42 seconds"));
        assert_eq!(farewell.code.as_u16(), 1013);
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
