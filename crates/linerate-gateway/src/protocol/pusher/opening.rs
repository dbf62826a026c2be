//! What the URL of a Pusher client says: `/app/KEY?protocol=7&client=js&version=8.4.0`.

use super::codes::{MALFORMED_VERSION, NO_VERSION, UNKNOWN_APP, UNSUPPORTED_VERSION};
use crate::{
    config::Config,
    protocol::{codes::Disconnect, command::Connect, dialect::Opening},
};

/// The version of the protocol.
const VERSION: u32 = 7;

/// Returns the command that connects the client.
///
/// # Errors
/// The app does not exist, or the version of the protocol is not supported.
pub(super) fn read(opening: &Opening<'_>, config: &Config) -> Result<Connect, Disconnect> {
    let key = opening.path.strip_prefix("/app/");
    if key.is_none() || key != config.pusher.key.as_deref() {
        return Err(UNKNOWN_APP);
    }
    let mut connect = Connect::default();
    let mut version = None;
    for (name, value) in url::form_urlencoded::parse(opening.query.as_bytes()) {
        match &*name {
            "client" => connect.name = value.into_owned(),
            "protocol" => version = Some(value.into_owned()),
            "version" => connect.version = value.into_owned(),
            _ => {}
        }
    }
    match version.ok_or(NO_VERSION)?.parse() {
        Ok(VERSION) => Ok(connect),
        Ok(_) => Err(UNSUPPORTED_VERSION),
        Err(_) => Err(MALFORMED_VERSION),
    }
}

/// Returns a new socket ID: two numbers, as SDKs and backends require.
pub(super) fn client_id() -> String {
    format!("{}.{}", rand::random::<u32>(), rand::random::<u32>())
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::read;
    use crate::{config::Config, protocol::dialect::Opening};

    #[test]
    fn the_app_and_the_version_are_checked() {
        let mut config = Config::default();
        config.pusher.key = Some("key".into());
        let code = |path: &str, query: &str| {
            let opening = Opening {
                path,
                query,
                headers: &HeaderMap::new(),
                subprotocol: None,
            };
            read(&opening, &config).map_err(|refused| refused.code)
        };
        let connect = code("/app/key", "protocol=7&client=js&version=8.4.0&flash=false");
        let connect = connect.unwrap();
        assert_eq!((&*connect.name, &*connect.version), ("js", "8.4.0"));
        for (path, query, expected) in [
            ("/app/other", "protocol=7", 4001),
            ("/app/", "protocol=7", 4001),
            ("/app/key", "", 4008),
            ("/app/key", "client=js", 4008),
            ("/app/key", "protocol=6", 4007),
            ("/app/key", "protocol=8", 4007),
            ("/app/key", "protocol=99999999999", 4006),
            ("/app/key", "protocol=seven", 4006),
            ("/app/key", "protocol=", 4006),
        ] {
            assert_eq!(code(path, query).unwrap_err(), expected, "{path} {query}");
        }
    }

    #[test]
    fn without_a_key_there_is_no_app() {
        let opening = Opening {
            path: "/app/",
            query: "protocol=7",
            headers: &HeaderMap::new(),
            subprotocol: None,
        };
        assert_eq!(read(&opening, &Config::default()).unwrap_err().code, 4001);
    }
}
