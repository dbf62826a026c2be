//! Any bytes as the answer of a backend, and as the payload of a client in a question.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use linerate_budget::Account;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::{
    backend::{Asker, PortableHeaders, Question, Verdict, answer},
    protocol::codes::{Disconnect, Refusal},
};

/// An answer, of whatever kind.
#[derive(Deserialize)]
struct Answer {
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
    disconnect: Option<IgnoredAny>,
}

/// A question, with the fields that it must have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked<'a> {
    client: &'a str,
    user: &'a str,
    #[serde(rename = "transport")]
    _transport: IgnoredAny,
    #[serde(rename = "protocol")]
    _protocol: IgnoredAny,
    #[serde(rename = "encoding")]
    _encoding: IgnoredAny,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    b64data: Option<&'a str>,
}

/// Reads `data` as one of these; its first byte says which.
pub fn backends(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    match choice % 4 {
        0 => answers(data),
        1 => question(data, false),
        2 => question(data, true),
        _ => headers(data),
    }
}

/// Only an answer with a result allows anything, and no refusal is more than a client can be told.
fn answers(body: &[u8]) {
    let allows = [
        check(answer::connect(body, 7).map(|verdict| verdict.map(|admitted| admitted.is_some()))),
        check(answer::subscribe(body).map(allowed)),
        check(answer::publish(body).map(allowed)),
        check(answer::renewal(body).map(allowed)),
        check(answer::data(body).map(allowed)),
    ];
    if allows.contains(&true) {
        let document: Answer = serde_json::from_slice(body).expect("an answer is JSON");
        assert!(document.result.is_some());
        assert!(document.error.is_none() && document.disconnect.is_none());
    }
}

fn allowed<T>(verdict: Verdict<T>) -> Verdict<bool> {
    verdict.map(|_| true)
}

fn check<E>(answer: Result<Verdict<bool>, E>) -> bool {
    match answer {
        Ok(Ok(is_allowed)) => is_allowed,
        Ok(Err(Refusal::Disconnect(Disconnect { code, reason }))) => {
            assert!((3_000..5_000).contains(&code));
            assert!(reason.len() <= Disconnect::REASON_BYTES_MAX);
            false
        }
        Ok(Err(Refusal::Error(error))) => {
            assert_ne!(error.code, 0);
            false
        }
        Err(_) => false,
    }
}

/// A payload arrives unchanged, and changes nothing else in the question.
fn question(data: &[u8], is_binary: bool) {
    let asker = Asker {
        client: "c",
        user: "u",
        dialect: &("raw", "websocket"),
        peer: None,
        meta: None,
        headers: None,
    };
    let data = Bytes::copy_from_slice(data);
    let question = Question::Send { data: &data };
    let Ok(encoded) = question.encode(&asker, is_binary, true) else {
        assert!(!is_binary, "any bytes can be sent as base64");
        return;
    };
    let document: Asked<'_> = serde_json::from_slice(&encoded).expect("a question is JSON");
    assert_eq!((document.client, document.user), ("c", "u"));
    if is_binary {
        let base64 = document.b64data.expect("a payload");
        assert_eq!(STANDARD.decode(base64).expect("base64"), data);
    } else {
        let payload: &RawValue = serde_json::from_slice(&data).expect("others are refused");
        // The reader of this check takes `null` for nothing.
        assert_eq!(document.data.map_or("null", RawValue::get), payload.get());
    }
}

/// Headers of another process are read or left out, and read the same again.
fn headers(data: &[u8]) {
    let Ok(portable) = serde_json::from_slice::<PortableHeaders>(data) else {
        return;
    };
    let account = Account::default();
    if let Some(headers) = portable.restore(&account) {
        let again = headers.export();
        let restored = again.restore(&account).expect("what was read is valid");
        assert_eq!(restored.export(), again);
    }
}
