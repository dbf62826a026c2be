//! Public keys that are fetched (JSON Web Key Set, RFC 7517).

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use jsonwebtoken::{
    Algorithm, DecodingKey, Header,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

use super::{AuthSetupError, TokenError, fetch::Fetcher, keys::Key};

/// After how long the keys are fetched again.
const TTL: Duration = Duration::from_secs(600);
/// The shortest time between two attempts to fetch, whoever asks for whatever key.
const PAUSE: Duration = Duration::from_secs(10);
/// The most keys that are kept.
const KEYS_MAX: usize = 100;

/// The keys behind an address. Those that were fetched stay in use while fetching anew fails.
#[derive(Debug)]
pub(super) struct Jwks {
    fetcher: Fetcher,
    keys: ArcSwap<Fetched>,
    /// Held by whoever fetches, so that all others wait for the same answer.
    attempt: Mutex<Option<Attempt>>,
}

/// What was fetched, and when; `None` if nothing was ever.
#[derive(Debug, Default)]
struct Fetched {
    keys: Vec<Named>,
    at: Option<Instant>,
}

#[derive(Debug)]
struct Named {
    id: Option<String>,
    key: Key,
}

/// What is behind the address. A key of a kind that is not known must not spoil the others.
#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// The newest attempt to fetch.
#[derive(Debug)]
struct Attempt {
    at: Instant,
    failure: Option<String>,
}

impl Jwks {
    pub(super) fn new(url: &str) -> Result<Self, AuthSetupError> {
        let name = "auth.token.jwks_url";
        let fetcher = Fetcher::new(url);
        Ok(Self {
            fetcher: fetcher.map_err(|reason| AuthSetupError::Key { name, reason })?,
            keys: ArcSwap::default(),
            attempt: Mutex::new(None),
        })
    }

    /// Returns the key for a token with this header, fetching if it is not known.
    pub(super) async fn find(self: &Arc<Self>, header: &Header) -> Result<Key, TokenError> {
        let fetched = self.keys.load_full();
        if let Some(key) = fetched.find(header) {
            if fetched.is_stale() {
                // Whoever asks now need not wait for that.
                let jwks = self.clone();
                tokio::spawn(async move { jwks.refresh().await });
            }
            return Ok(key);
        }
        let failure = self.refresh().await;
        match (self.keys.load().find(header), failure) {
            (Some(key), _) => Ok(key),
            (None, Some(reason)) => Err(TokenError::KeysUnavailable { reason }),
            (None, None) => Err(TokenError::NoKey),
        }
    }

    /// Fetches the keys, unless that was tried a moment ago; returns what the newest attempt failed of.
    pub(super) async fn refresh(&self) -> Option<String> {
        let mut attempt = self.attempt.lock().await;
        if let Some(attempt) = &*attempt
            && attempt.at.elapsed() < PAUSE
        {
            return attempt.failure.clone();
        }
        let fetched = self.fetcher.fetch().await;
        let failure = match fetched.and_then(|body| parse(&body)) {
            Ok(keys) => {
                let at = Some(Instant::now());
                self.keys.store(Arc::new(Fetched { keys, at }));
                None
            }
            Err(reason) => {
                tracing::warn!(reason, "can't fetch the keys of tokens");
                Some(reason)
            }
        };
        *attempt = Some(Attempt {
            at: Instant::now(),
            failure: failure.clone(),
        });
        failure
    }
}

impl Fetched {
    /// Returns the key that the header names; if it names none, the first for its algorithm.
    fn find(&self, header: &Header) -> Option<Key> {
        let fits = |named: &&Named| {
            let is_named = header.kid.is_none() || header.kid == named.id;
            is_named && named.key.algorithms.contains(&header.alg)
        };
        self.keys.iter().find(fits).map(|named| named.key.clone())
    }

    fn is_stale(&self) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= TTL)
    }
}

/// Takes the keys that can check signatures; others are skipped, as RFC 7517 §5 asks for.
fn parse(body: &[u8]) -> Result<Vec<Named>, String> {
    let set: Set = serde_json::from_slice(body).map_err(|error| format!("no JWKS: {error}"))?;
    if set.keys.len() > KEYS_MAX {
        let count = set.keys.len();
        return Err(format!(
            "set has {count} keys; at most {KEYS_MAX} are allowed"
        ));
    }
    let keys: Vec<Named> = set.keys.into_iter().filter_map(named).collect();
    match keys.is_empty() {
        true => Err("set has no key that can check signatures".into()),
        false => Ok(keys),
    }
}

fn named(jwk: Value) -> Option<Named> {
    let jwk = Jwk::deserialize(jwk).ok()?;
    let is_for_signatures = match &jwk.common.public_key_use {
        None => true,
        Some(use_) => *use_ == PublicKeyUse::Signature,
    };
    if !is_for_signatures {
        return None;
    }
    let mut algorithms = algorithms(&jwk.algorithm)?;
    if let Some(only) = jwk.common.key_algorithm {
        let only = Algorithm::try_from(only).ok()?;
        algorithms.retain(|algorithm| *algorithm == only);
    }
    let mut key = DecodingKey::from_jwk(&jwk).ok()?;
    if matches!(jwk.algorithm, AlgorithmParameters::RSA(_)) {
        key = super::rsa::usable(&key).ok()?;
    }
    let id = jwk.common.key_id;
    (!algorithms.is_empty()).then_some(Named {
        id,
        key: Key { key, algorithms },
    })
}

/// Returns what a key may be used for. A shared secret that anybody can fetch is none, so none is taken.
fn algorithms(parameters: &AlgorithmParameters) -> Option<Vec<Algorithm>> {
    match parameters {
        AlgorithmParameters::RSA(_) => Some(super::keys::RSA.to_vec()),
        AlgorithmParameters::EllipticCurve(parameters) => match parameters.curve {
            EllipticCurve::P256 => Some(vec![Algorithm::ES256]),
            EllipticCurve::P384 => Some(vec![Algorithm::ES384]),
            _ => None,
        },
        AlgorithmParameters::OctetKeyPair(parameters) => {
            (parameters.curve == EllipticCurve::Ed25519).then(|| vec![Algorithm::EdDSA])
        }
        _ => None,
    }
}
