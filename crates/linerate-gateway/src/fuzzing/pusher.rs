//! Any bytes as the URL of a Pusher client, and as requests to Pusher's HTTP API.

use std::str;

use http::{HeaderMap, Method};
use tokio::runtime::Builder;

use super::api::node;
use crate::{
    api::pusher::{PusherError, Signed, perform, signature::Signature},
    auth::PusherApp,
    config::{Config, Secret},
    protocol::{dialect::Opening, pusher::EVENTS},
};

/// When the requests arrive, in seconds since 1970.
const NOW: u64 = 1_000;

/// Reads `data` as one of these; its first byte says which.
pub fn pusher(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    match choice % 3 {
        0 => url(text),
        1 => signature(text),
        _ => requests(text),
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config.pusher.app_id = Some("1".to_owned());
    config.pusher.key = Some("key".to_owned());
    config.pusher.secret = Some(Secret::new("0123456789abcdef"));
    config
}

/// A client connects only with the key and the version, and is closed with a code of Pusher
/// otherwise.
fn url(text: &str) {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let opening = Opening {
        path,
        query,
        headers: &HeaderMap::new(),
        subprotocol: None,
    };
    let connects = EVENTS.connects().expect("requests connect clients");
    match (connects.read)(&opening, &config()) {
        Ok(_) => assert!(path == "/app/key" && query.contains('7'), "{text}"),
        Err(refused) => assert!(matches!(refused.code, 4001 | 4006..=4008), "{refused}"),
    }
}

/// The first line is a query, and the rest is a body. Nobody else can sign.
fn signature(text: &str) {
    let (query, body) = text.split_once('\n').unwrap_or((text, ""));
    let app = PusherApp::read(&config().pusher).expect("a secret");
    let app = app.expect("an app");
    match Signature::read(query, &app, NOW) {
        Ok(signature) => {
            assert!(!signature.is_of(&app, &Method::POST, "/apps/1/events"));
            let checked = signature.check_body(body.as_bytes());
            assert!(checked.is_ok() || query.contains("md5") || !body.is_empty());
        }
        Err(PusherError::Authentication(_) | PusherError::Expired { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Each line is a signed request: a method, a path with a query, and a body.
fn requests(text: &str) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (node, config) = (node(), config());
        for line in text.lines() {
            let mut parts = line.splitn(3, ' ');
            let mut next = || parts.next().unwrap_or_default();
            let method = match next() {
                "POST" => Method::POST,
                _ => Method::GET,
            };
            let (path, query) = {
                let target = next();
                target.split_once('?').unwrap_or((target, ""))
            };
            let signed = Signed {
                method: &method,
                path,
                query,
                body: next().as_bytes(),
            };
            match perform(&node, &config.pusher, &signed).await {
                Ok((name, value)) => assert!(name.starts_with("pusher_") && value.is_object()),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    });
}
