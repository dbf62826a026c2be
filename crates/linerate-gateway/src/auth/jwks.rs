//! Public keys fetched from a URL (JSON Web Key Set, RFC 7517).

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

/// Time after which the keys are fetched again.
const TTL: Duration = Duration::from_secs(600);
/// Minimum time between two attempts to fetch, regardless of how many tokens need a key.
const PAUSE: Duration = Duration::from_secs(10);
/// Maximum number of keys in a set.
const KEYS_MAX: usize = 100;

/// The keys behind a URL. If fetching them again fails, the previous ones stay in use.
#[derive(Debug)]
pub(super) struct Jwks {
    fetcher: Fetcher,
    keys: ArcSwap<FetchedKeys>,
    /// Locked while fetching, so that all others wait for the same result.
    attempt: Mutex<Option<Attempt>>,
}

/// The fetched keys and when they were fetched; `None` before the first success.
#[derive(Debug, Default)]
struct FetchedKeys {
    keys: Vec<NamedKey>,
    at: Option<Instant>,
}

#[derive(Debug)]
struct NamedKey {
    id: Option<String>,
    key: Key,
}

/// The document behind the URL. Keys are parsed one by one, so that an unknown kind of key does not
/// invalidate the others.
#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// The latest attempt to fetch.
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

    /// Returns the key for a token with this header, and fetches the keys if it is unknown.
    pub(super) async fn find(self: &Arc<Self>, header: &Header) -> Result<Key, TokenError> {
        let fetched = self.keys.load_full();
        if let Some(key) = fetched.find(header) {
            if fetched.is_stale() {
                // The current request need not wait for the new keys.
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

    /// Fetches the keys, unless the last attempt was very recent. Returns the error of the latest
    /// attempt, if it failed.
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
                self.keys.store(Arc::new(FetchedKeys { keys, at }));
                None
            }
            Err(reason) => {
                tracing::warn!(reason, "cannot fetch the keys for tokens");
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

impl FetchedKeys {
    /// Returns the key that the header names, or the first one for its algorithm if it names none.
    fn find(&self, header: &Header) -> Option<Key> {
        let fits = |named: &&NamedKey| {
            let is_named = header.kid.is_none() || header.kid == named.id;
            is_named && named.key.algorithms.contains(&header.alg)
        };
        self.keys.iter().find(fits).map(|named| named.key.clone())
    }

    fn is_stale(&self) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= TTL)
    }
}

/// Parses the keys that can verify signatures. Others are skipped, as RFC 7517 §5 requires.
fn parse(body: &[u8]) -> Result<Vec<NamedKey>, String> {
    let set: Set = serde_json::from_slice(body).map_err(|error| format!("not a JWKS: {error}"))?;
    if set.keys.len() > KEYS_MAX {
        let count = set.keys.len();
        return Err(format!(
            "set has {count} keys; at most {KEYS_MAX} are allowed"
        ));
    }
    let keys: Vec<NamedKey> = set.keys.into_iter().filter_map(named).collect();
    match keys.is_empty() {
        true => Err("set has no key that can verify signatures".into()),
        false => Ok(keys),
    }
}

fn named(jwk: Value) -> Option<NamedKey> {
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
    (!algorithms.is_empty()).then_some(NamedKey {
        id,
        key: Key { key, algorithms },
    })
}

/// Returns the algorithms that a key may be used for. Shared secrets are skipped, because one that
/// can be fetched is not secret.
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
