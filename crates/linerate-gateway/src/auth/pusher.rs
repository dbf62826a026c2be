//! Signatures of the backend of a Pusher app.

use std::fmt;

use ring::hmac;
use subtle::ConstantTimeEq;

use super::{AccessKey, AuthSetupError};
use crate::config::PusherOptions;

/// A Pusher app, whose backend signs with its secret.
#[derive(Clone)]
pub(crate) struct PusherApp {
    pub(crate) id: String,
    /// The key that clients connect with, which is not secret.
    pub(crate) key: String,
    secret: hmac::Key,
}

impl PusherApp {
    /// Reads the app; `None` if it is not configured.
    ///
    /// # Errors
    /// Fails if the file with the secret cannot be read, or if the secret has fewer than 16 bytes.
    pub(crate) fn read(options: &PusherOptions) -> Result<Option<Self>, AuthSetupError> {
        let secret = AccessKey::read("pusher.secret", options.secret.as_ref())?;
        let (Some(id), Some(key), Some(secret)) = (&options.app_id, &options.key, secret) else {
            return Ok(None);
        };
        Ok(Some(Self {
            id: id.clone(),
            key: key.clone(),
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()),
        }))
    }

    /// Returns whether `auth` is the key of the app, a colon, and the signature of the parts, which
    /// are joined by `separator`.
    pub(crate) fn authorizes(&self, auth: &str, separator: &str, parts: &[&str]) -> bool {
        let Some((key, signature)) = auth.split_once(':') else {
            return false;
        };
        key == self.key && self.is_signature(signature, parts.join(separator).as_bytes())
    }

    /// Returns the HMAC-SHA256 of `text` in lower-case hexadecimal.
    pub(crate) fn sign(&self, text: &[u8]) -> String {
        hex(hmac::sign(&self.secret, text).as_ref())
    }

    /// Returns whether `signature` is the HMAC-SHA256 of `text`, in lower-case hexadecimal. The
    /// time taken does not depend on how much of it is right.
    pub(crate) fn is_signature(&self, signature: &str, text: &[u8]) -> bool {
        let right = self.sign(text);
        right.as_bytes().ct_eq(signature.as_bytes()).into()
    }
}

impl fmt::Debug for PusherApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PusherApp")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Returns bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(digit.into(), 16));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::PusherApp;
    use crate::config::Loader;

    /// The app in Pusher's documentation of signatures.
    fn app(secret: &str) -> PusherApp {
        let toml = format!(
            "[pusher]\napp_id = \"3\"\nkey = \"278d425bdf160c739803\"\nsecret = \"{secret}\""
        );
        let config = Loader::new().with_text("test.toml", &toml).load().unwrap();
        PusherApp::read(&config.pusher).unwrap().unwrap()
    }

    #[test]
    fn the_documented_examples_are_authorized() {
        let app = app("7ad3773142a6692b25b8");
        let private = "278d425bdf160c739803:\
                       58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4";
        assert!(app.authorizes(private, ":", &["1234.1234", "private-foobar"]));
        let presence = "278d425bdf160c739803:\
                        31935e7d86dba64c2a90aed31fdc61869f9b22ba9d8863bba239c03ca481bc80";
        let data = r#"{"user_id":10,"user_info":{"name":"Mr. Channels"}}"#;
        assert!(app.authorizes(presence, ":", &["1234.1234", "presence-foobar", data]));
    }

    #[test]
    fn other_signatures_are_refused() {
        let app = app("7ad3773142a6692b25b8");
        let signature = "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4";
        let parts = ["1234.1234", "private-foobar"];
        for auth in [
            String::new(),
            signature.to_owned(),
            format!("other:{signature}"),
            format!("278d425bdf160c739803:{}", &signature[1..]),
            format!("278d425bdf160c739803:{}0", &signature[..63]),
            format!("278d425bdf160c739803:{signature} "),
        ] {
            assert!(!app.authorizes(&auth, ":", &parts), "{auth}");
        }
        let auth = format!("278d425bdf160c739803:{signature}");
        assert!(!app.authorizes(&auth, ":", &["1234.1235", "private-foobar"]));
    }

    #[test]
    fn a_short_secret_is_refused() {
        let toml = "[pusher]\napp_id = \"1\"\nkey = \"key\"\nsecret = \"short\"";
        let config = Loader::new().with_text("test.toml", toml).load().unwrap();
        let error = PusherApp::read(&config.pusher).unwrap_err();
        assert!(error.to_string().starts_with("pusher.secret: "), "{error}");
    }
}
