//! The signature of a request: HMAC-SHA256 over the method, the path and the sorted parameters,
//! among which is the MD5 digest of the body.

use std::borrow::Cow;

use http::Method;
use md5::{Digest, Md5};
use percent_encoding::percent_decode_str;

use super::PusherError;
use crate::auth::{PusherApp, hex};

/// How much the time of a request may differ from that of the server, in seconds.
const SECONDS_MAX: u64 = 600;

/// The version of the signature.
const VERSION: &str = "1.0";

/// The signature of a request, and the parameters that it covers.
#[derive(Clone, Debug)]
pub(crate) struct Signature<'a> {
    signature: Cow<'a, str>,
    /// The other parameters, sorted by name.
    parameters: Vec<(String, Cow<'a, str>)>,
}

impl<'a> Signature<'a> {
    /// Reads a signature, and checks the key, the version and the time. `now` is in seconds since
    /// 1970.
    ///
    /// # Errors
    /// A parameter is missing or wrong, or the request is too old.
    pub(crate) fn read(query: &'a str, app: &PusherApp, now: u64) -> Result<Self, PusherError> {
        let mut signature = None;
        let mut parameters = Vec::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "auth_signature" => signature = Some(value),
                name => parameters.push((name.to_ascii_lowercase(), value)),
            }
        }
        parameters.sort();
        let missing = PusherError::Authentication("auth_signature");
        let read = Self {
            signature: signature.ok_or(missing)?,
            parameters,
        };
        read.check("auth_key", |key| key == app.key)?;
        read.check("auth_version", |version| version == VERSION)?;
        read.check("auth_timestamp", |at| at.parse::<u64>().is_ok())?;
        let at = read.find("auth_timestamp").and_then(|at| at.parse().ok());
        if at.is_none_or(|at| now.abs_diff(at) > SECONDS_MAX) {
            let seconds_max = SECONDS_MAX;
            return Err(PusherError::Expired { seconds_max });
        }
        Ok(read)
    }

    /// Checks that the signature covers this body.
    ///
    /// # Errors
    /// The digest is missing or wrong.
    pub(crate) fn check_body(&self, body: &[u8]) -> Result<(), PusherError> {
        if body.is_empty() && self.find("body_md5").is_none() {
            return Ok(());
        }
        let digest = hex(&Md5::digest(body));
        self.check("body_md5", |given| given == digest)
    }

    /// Returns whether the signature is that of the app for a request with this path. Some
    /// libraries sign the path as it is on the wire, and some as it was before it was escaped.
    pub(crate) fn is_of(&self, app: &PusherApp, method: &Method, path: &str) -> bool {
        let parameters = self.parameters.iter();
        let parameters = parameters.map(|(name, value)| format!("{name}={value}"));
        let parameters = parameters.collect::<Vec<_>>().join("&");
        let text = |path: &str| format!("{method}\n{path}\n{parameters}");
        let unescaped = percent_decode_str(path).decode_utf8_lossy();
        app.is_signature(&self.signature, text(path).as_bytes())
            || app.is_signature(&self.signature, text(&unescaped).as_bytes())
    }

    fn check(
        &self,
        name: &'static str,
        is_right: impl FnOnce(&str) -> bool,
    ) -> Result<(), PusherError> {
        match self.find(name).is_some_and(is_right) {
            true => Ok(()),
            false => Err(PusherError::Authentication(name)),
        }
    }

    fn find(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let (_, value) = parameters.find(|(known, _)| known == name)?;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{PusherError, SECONDS_MAX, Signature};
    use crate::{auth::PusherApp, config::Loader};

    /// The example in Pusher's documentation of the API.
    const QUERY: &str = "auth_key=278d425bdf160c739803&auth_timestamp=1353088179&auth_version=1.0\
        &body_md5=ec365a775a4cd0599faeb73354201b6f\
        &auth_signature=da454824c97ba181a32ccc17a72625ba02771f50b50e1e7430e47a1f3f457e6c";
    const BODY: &[u8] = br#"{"name":"foo","channels":["project-3"],"data":"{\"some\":\"data\"}"}"#;
    const AT: u64 = 1_353_088_179;

    fn app() -> PusherApp {
        let toml = "[pusher]\napp_id = \"3\"\nkey = \"278d425bdf160c739803\"\n\
                    secret = \"7ad3773142a6692b25b8\"";
        let config = Loader::new().with_text("test.toml", toml).load().unwrap();
        PusherApp::read(&config.pusher).unwrap().unwrap()
    }

    fn is_right(query: &str, path: &str) -> Result<bool, PusherError> {
        let app = app();
        let signature = Signature::read(query, &app, AT)?;
        signature.check_body(BODY)?;
        Ok(signature.is_of(&app, &Method::POST, path))
    }

    #[test]
    fn the_documented_example_is_accepted() {
        assert!(is_right(QUERY, "/apps/3/events").unwrap());
        let reversed: Vec<_> = QUERY.split('&').rev().collect();
        assert!(is_right(&reversed.join("&"), "/apps/3/events").unwrap());
        assert!(is_right(&QUERY.replace("auth_key", "AUTH_KEY"), "/apps/3/%65vents").unwrap());
    }

    #[test]
    fn other_requests_have_other_signatures() {
        assert!(!is_right(QUERY, "/apps/3/batch_events").unwrap());
        assert!(!is_right(&format!("{QUERY}&a=b"), "/apps/3/events").unwrap());
        assert!(!is_right(&QUERY.replace("=da45", "=da46"), "/apps/3/events").unwrap());
    }

    #[test]
    fn every_parameter_is_checked() {
        let error = |query: &str| is_right(query, "/apps/3/events").unwrap_err().to_string();
        for (name, wrong) in [
            ("auth_key", "other"),
            ("auth_timestamp", "-1"),
            ("auth_version", "1.1"),
            ("body_md5", "EC365A775A4CD0599FAEB73354201B6F"),
        ] {
            let parameter = QUERY.split('&').find(|one| one.starts_with(name)).unwrap();
            assert!(error(&QUERY.replace(parameter, "")).contains(name));
            let wrong = format!("{name}={wrong}");
            assert!(error(&QUERY.replace(parameter, &wrong)).contains(name));
        }
        assert!(error("").contains("auth_signature"));
    }

    #[test]
    fn a_request_is_valid_for_some_minutes() {
        let read = |now| Signature::read(QUERY, &app(), now).map(drop);
        for now in [AT - SECONDS_MAX, AT, AT + SECONDS_MAX] {
            assert!(read(now).is_ok());
        }
        for now in [AT - SECONDS_MAX - 1, AT + SECONDS_MAX + 1] {
            assert!(matches!(read(now), Err(PusherError::Expired { .. })));
        }
    }
}
