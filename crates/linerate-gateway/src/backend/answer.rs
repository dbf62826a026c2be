//! The answers of backends, with the field names of Centrifugo's proxies.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use super::AskError;
use crate::{
    auth::{CommonClaims, ConnectionClaims, Seconds, SubscriptionClaims, TokenId, subscriptions},
    protocol::codes::{ClientError, Disconnect, Refusal},
};

/// The answer of a backend: yes, with a result, or no.
pub(crate) type Verdict<T> = Result<T, Refusal>;

/// The codes with which a backend may close a connection.
const DISCONNECT_CODES: std::ops::RangeInclusive<u16> = 3_000..=4_999;

/// A client that a backend knows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Admitted {
    pub(crate) claims: ConnectionClaims,
    /// Data for the client.
    pub(crate) data: Option<Bytes>,
}

/// A publication that a backend allows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Published {
    /// What is published instead of the client's payload.
    pub(crate) data: Option<Bytes>,
    pub(crate) skip_history: bool,
}

/// The decision on a connection or subscription that expires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Renewal {
    Ended,
    /// It continues, until a number of seconds since 1970 if it expires again.
    Until(Option<u64>),
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Document<T> {
    #[serde(default)]
    result: Option<T>,
    #[serde(default)]
    error: Option<WireError>,
    #[serde(default)]
    disconnect: Option<WireDisconnect>,
}

#[derive(Deserialize)]
struct WireError {
    code: u32,
    #[serde(default)]
    message: String,
    #[serde(default)]
    temporary: bool,
}

#[derive(Deserialize)]
struct WireDisconnect {
    code: u16,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ConnectResult {
    user: String,
    expire_at: Option<Seconds>,
    channels: Vec<String>,
    subs: BTreeMap<String, CommonClaims>,
    meta: Option<Value>,
    #[serde(flatten)]
    about: CommonClaims,
}

#[derive(Deserialize)]
struct SubscribeResult {
    #[serde(default)]
    expire_at: Option<Seconds>,
    #[serde(flatten)]
    about: CommonClaims,
}

#[derive(Deserialize)]
struct RefreshResult {
    #[serde(default)]
    expired: bool,
    #[serde(default)]
    expire_at: Option<Seconds>,
}

#[derive(Deserialize)]
struct DataResult {
    #[serde(default)]
    data: Option<Box<RawValue>>,
    #[serde(default)]
    b64data: String,
    #[serde(default)]
    skip_history: bool,
}

/// Decodes the answer to `connect`. Without a result, the backend does not know the client. `now`
/// is in seconds since 1970.
pub(crate) fn connect(body: &[u8], now: u64) -> Result<Verdict<Option<Admitted>>, AskError> {
    let document: Document<ConnectResult> = parse(body)?;
    if document.result.is_none() && document.error.is_none() && document.disconnect.is_none() {
        return Ok(Ok(None));
    }
    document.verdict(|result| {
        let about = result.about.into_subscription(None).ok()?;
        Some(Some(Admitted {
            claims: ConnectionClaims {
                user: result.user,
                info: about.info,
                meta: result.meta.map(|meta| meta.to_string().into()),
                expires_at: Seconds::expiry(result.expire_at),
                // Revoking the user's earlier tokens closes the connection.
                token: TokenId {
                    id: None,
                    issued_at: Some(now),
                },
                subscriptions: subscriptions(result.channels, result.subs).ok()?,
            },
            data: about.data,
        }))
    })
}

/// Decodes the answer to `subscribe`.
pub(crate) fn subscribe(body: &[u8]) -> Result<Verdict<SubscriptionClaims>, AskError> {
    parse::<SubscribeResult>(body)?.verdict(|result| {
        let expires_at = Seconds::expiry(result.expire_at);
        result.about.into_subscription(expires_at).ok()
    })
}

/// Decodes the answer to `refresh` or `sub_refresh`.
pub(crate) fn renewal(body: &[u8]) -> Result<Verdict<Renewal>, AskError> {
    parse::<RefreshResult>(body)?.verdict(|result| {
        Some(match result.expired {
            true => Renewal::Ended,
            false => Renewal::Until(Seconds::expiry(result.expire_at)),
        })
    })
}

/// Decodes the answer to `publish`.
pub(crate) fn publish(body: &[u8]) -> Result<Verdict<Published>, AskError> {
    parse::<DataResult>(body)?.verdict(|result| {
        let skip_history = result.skip_history;
        Some(Published {
            data: result.into_data()?,
            skip_history,
        })
    })
}

/// Decodes the answer to `rpc` or `send`: the value that is returned.
pub(crate) fn data(body: &[u8]) -> Result<Verdict<Bytes>, AskError> {
    parse::<DataResult>(body)?.verdict(|result| Some(result.into_data()?.unwrap_or_default()))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<Document<T>, AskError> {
    // The parser does not look into texts that it skips.
    let text = std::str::from_utf8(body).map_err(|error| AskError::Invalid(error.to_string()))?;
    serde_json::from_str(text).map_err(|error| AskError::Invalid(error.to_string()))
}

impl<T> Document<T> {
    /// Returns the result, as far as `convert` can use it, or the refusal.
    fn verdict<R>(self, convert: impl FnOnce(T) -> Option<R>) -> Result<Verdict<R>, AskError> {
        let invalid = |reason: &str| Err(AskError::Invalid(reason.to_owned()));
        if let Some(WireDisconnect { code, reason }) = self.disconnect {
            if !DISCONNECT_CODES.contains(&code) {
                return invalid("disconnect.code is not between 3000 and 4999");
            }
            let disconnect = Disconnect {
                code,
                reason: Cow::Borrowed(""),
            };
            return Ok(Err(Refusal::Disconnect(disconnect.with_reason(reason))));
        }
        if let Some(WireError {
            code,
            message,
            temporary,
        }) = self.error
        {
            if code == 0 {
                return invalid("error.code is 0");
            }
            let error = ClientError {
                code,
                message: Cow::Owned(message),
                is_temporary: temporary,
            };
            return Ok(Err(Refusal::Error(error)));
        }
        let Some(result) = self.result else {
            return invalid("it has no result, error or disconnect");
        };
        match convert(result) {
            Some(result) => Ok(Ok(result)),
            None => invalid("result has invalid base64, or too many or invalid channels"),
        }
    }
}

impl DataResult {
    /// Returns the payload, if there is one. Returns `None` if its base64 is invalid.
    fn into_data(self) -> Option<Option<Bytes>> {
        if !self.b64data.is_empty() {
            let data = STANDARD.decode(self.b64data).ok()?;
            return Some(Some(data.into()));
        }
        let data = self.data.filter(|data| data.get() != "null");
        Some(data.map(|data| String::from(Box::<str>::from(data)).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invalid<T: std::fmt::Debug>(answer: Result<T, AskError>) -> String {
        match answer {
            Err(AskError::Invalid(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn client_is_admitted_with_what_the_backend_says() {
        let body = br#"{"result":{"user":"56","expire_at":1700000000,"info":{"name":"Ann"},
            "data":{"a":1},"channels":["news"],"subs":{"chat":{"b64info":"eyJyIjoxfQ=="}},
            "meta":{"plan":"pro"}}}"#;
        let admitted = connect(body, 7).unwrap().unwrap().unwrap();
        assert_eq!(admitted.data.unwrap(), "{\"a\":1}");
        let claims = admitted.claims;
        assert_eq!(
            (&*claims.user, claims.expires_at),
            ("56", Some(1_700_000_000))
        );
        assert_eq!(claims.info.unwrap(), "{\"name\":\"Ann\"}");
        assert_eq!(claims.meta.unwrap(), "{\"plan\":\"pro\"}");
        assert_eq!(claims.token.issued_at, Some(7));
        let names = claims.subscriptions.iter().map(|(name, _)| name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["chat", "news"]);
        assert_eq!(
            claims.subscriptions[0].1.info.as_ref().unwrap(),
            "{\"r\":1}"
        );
    }

    #[test]
    fn client_without_a_result_is_unknown() {
        assert_eq!(connect(b"{}", 0), Ok(Ok(None)));
        assert_eq!(connect(b"{\"result\":null}", 0), Ok(Ok(None)));
    }

    #[test]
    fn backends_refuse_with_an_error_or_a_close_code() {
        let error = br#"{"error":{"code":1000,"message":"later","temporary":true}}"#;
        let refusal = subscribe(error).unwrap().unwrap_err();
        let Refusal::Error(error) = refusal else {
            panic!("{refusal:?}")
        };
        assert_eq!((error.code, &*error.message), (1_000, "later"));
        assert!(error.is_temporary);
        let close = br#"{"disconnect":{"code":4501,"reason":"no"}}"#;
        let refusal = publish(close).unwrap().unwrap_err();
        let Refusal::Disconnect(disconnect) = refusal else {
            panic!("{refusal:?}")
        };
        assert_eq!((disconnect.code, &*disconnect.reason), (4_501, "no"));
    }

    #[test]
    fn answers_that_say_nothing_allow_nothing() {
        let reason = "it has no result, error or disconnect";
        assert_eq!(invalid(subscribe(b"{}")), reason);
        assert_eq!(invalid(publish(b"{\"ok\":true}")), reason);
        assert_eq!(invalid(renewal(b"{\"result\":null}")), reason);
        assert_eq!(invalid(data(b"{}")), reason);
        for body in [
            &b""[..],
            b"{\"result\":{},\"a\":\"\xff\"}",
            b"<html>",
            b"[]",
            b"{\"result\":7}",
            b"{\"result\":{}",
        ] {
            assert!(subscribe(body).is_err(), "{body:?}");
        }
    }

    #[test]
    fn codes_that_no_client_understands_are_invalid() {
        for code in [0, 1_000, 2_999, 5_000] {
            let body = format!("{{\"disconnect\":{{\"code\":{code}}}}}");
            let reason = "disconnect.code is not between 3000 and 4999";
            assert_eq!(invalid(data(body.as_bytes())), reason);
        }
        assert_eq!(
            invalid(data(b"{\"error\":{\"code\":0}}")),
            "error.code is 0"
        );
    }

    #[test]
    fn payloads_are_json_byte_for_byte_or_base64() {
        let value = |body: &[u8]| data(body).unwrap().unwrap();
        assert_eq!(
            value(b"{\"result\":{\"data\":{\"a\": 1.0}}}"),
            "{\"a\": 1.0}"
        );
        assert_eq!(
            value(b"{\"result\":{\"b64data\":\"/wA=\"}}"),
            &b"\xff\0"[..]
        );
        assert_eq!(value(b"{\"result\":{}}"), "");
        assert!(data(b"{\"result\":{\"b64data\":\"!\"}}").is_err());
        let published = publish(b"{\"result\":{\"data\":null,\"skip_history\":true}}");
        let expected = Published {
            data: None,
            skip_history: true,
        };
        assert_eq!(published, Ok(Ok(expected)));
    }

    #[test]
    fn renewal_ends_or_has_a_new_end() {
        let renewed = |body: &[u8]| renewal(body).unwrap().unwrap();
        assert_eq!(renewed(b"{\"result\":{\"expired\":true}}"), Renewal::Ended);
        assert_eq!(renewed(b"{\"result\":{}}"), Renewal::Until(None));
        let body = b"{\"result\":{\"expire_at\":1700000000}}";
        assert_eq!(renewed(body), Renewal::Until(Some(1_700_000_000)));
        assert_eq!(
            renewed(b"{\"result\":{\"expire_at\":0}}"),
            Renewal::Until(None)
        );
    }
}
