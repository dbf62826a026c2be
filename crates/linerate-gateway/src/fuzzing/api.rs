//! Any bytes as requests to the server API, and as revocations that a broker stores.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use linerate_broker::{BrokerOptions, memory::Memory};
use serde_json::Value;
use tokio::runtime::{Builder, Handle};

use crate::{
    admin::TailEncoding,
    api::fuzzing::perform,
    auth::{Revocation, Revocations, Target, TokenId},
    config::{Config, Namespaces},
    node::{Dispatcher, Node, NodeOptions},
};

const REVOCATIONS_MAX: usize = 4;

/// Performs the requests in the lines of `data` after the first: a method, a space and a body. If
/// the first line is empty, the others are revocations as a broker stores them.
pub fn api(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    if lines.next().is_none_or(<[u8]>::is_empty) {
        return lines.for_each(kept);
    }
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let node = node();
        for line in lines {
            let mut parts = line.splitn(2, |byte| *byte == b' ');
            let method = parts.next().unwrap_or_default();
            if let Ok(method) = std::str::from_utf8(method) {
                request(&node, method, parts.next().unwrap_or_default()).await;
            }
        }
    });
}

/// Returns a node with a broker in memory.
pub(super) fn node() -> Arc<Node> {
    let parts = Dispatcher::new(1);
    let broker = Memory::new(&BrokerOptions::default(), parts.0.clone()).expect("a broker");
    let options = NodeOptions {
        name: "fuzz".to_owned(),
        encodings: Vec::new(),
        tail_encoding: Arc::new(TailEncoding),
        namespaces: Namespaces::new(&Config::default()),
        seed: 0,
        linger: std::time::Duration::ZERO,
        revocations_max: REVOCATIONS_MAX,
        filter: Config::default().filter,
    };
    Node::start(options, parts, Arc::new(broker), Handle::current())
}

/// A refused request changes nothing, and an accepted revocation is in force.
async fn request(node: &Arc<Node>, method: &str, body: &[u8]) {
    let list = || node.revocations.in_force().list(now());
    let before = list();
    let Some(answer) = perform(node, method, body).await else {
        return;
    };
    let after = list();
    assert!(after.len() <= REVOCATIONS_MAX);
    if method == "batch" {
        return;
    }
    if let Some(error) = answer.get("error") {
        let code = error["code"].as_u64().expect("a code");
        assert!((100..=113).contains(&code), "{error}");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        assert_eq!(after, before, "{method}");
        return;
    }
    assert!(answer.get("result").is_some(), "{answer}");
    // Ignored fields need not be UTF-8.
    let Ok(asked) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
    let target = match method {
        "revoke_token" => Target::Token(text("uid")),
        "invalidate_user_tokens" => Target::User(text("user")),
        "invalidate_tokens" => Target::All,
        _ => return assert_eq!(after, before, "{method}"),
    };
    let found = after.iter().find(|one| one.target == target);
    let found = found.unwrap_or_else(|| panic!("{method} is not in force"));
    assert!(found.issued_before >= asked["issued_before"].as_u64().unwrap_or_default());
    for one in before {
        let still = after.iter().any(|other| other.target == one.target);
        assert!(still || one.expires_at.is_some(), "another one ended");
    }
    in_force(node.revocations.in_force(), found);
}

/// A revocation survives the round trip through a broker, and applies to its tokens.
fn in_force(all: &Revocations, revocation: &Revocation) {
    let kept = serde_json::to_vec(revocation).expect("JSON");
    let again: Revocation = serde_json::from_slice(&kept).expect("a serialized revocation parses");
    assert_eq!(again, *revocation);
    let before = revocation.issued_before.checked_sub(1);
    let (user, token) = match &revocation.target {
        Target::User(name) => (name.as_str(), shown("", before)),
        Target::Token(id) => ("", shown(id, Some(u64::MAX))),
        _ => ("anybody", shown("", before)),
    };
    let is_over = revocation.expires_at.is_some_and(|at| at <= now());
    assert!(
        is_over || all.is_revoked(user, &token, now()),
        "{revocation:?}"
    );
}

fn shown(id: &str, issued_at: Option<u64>) -> TokenId {
    let mut shown = TokenId::default();
    shown.id = Some(id.to_owned());
    shown.issued_at = issued_at;
    shown
}

/// Any revocation from a broker is in force or refused.
fn kept(value: &[u8]) {
    let Ok(revocation) = serde_json::from_slice::<Revocation>(value) else {
        return;
    };
    let all = Revocations::new(1);
    match all.insert(revocation.clone(), now()) {
        Ok(Some(taken)) => {
            assert_eq!(taken, revocation);
            assert_eq!(all.list(now()).len(), 1);
            in_force(&all, &revocation);
        }
        Ok(None) => assert!(revocation.expires_at.is_some_and(|at| at <= now())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
