//! Headers of a client's opening request that are forwarded to backends.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use linerate_budget::{Account, Share};
use serde::{Deserialize, Serialize};

use crate::config::BackendOptions;

/// Maximum size of the headers kept of a client, in bytes.
pub(crate) const HEADERS_BYTES_MAX: usize = 8 << 10;

/// The names of the headers that any backend receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forwarding(Vec<HeaderName>);

/// The headers of a client, kept as long as its connection, in copies of their own, so that they do
/// not keep the whole request. They often contain secrets, which are never logged.
pub(crate) struct ForwardedHeaders {
    headers: Vec<(HeaderName, HeaderValue)>,
    _share: Share,
}

/// The headers of a client, for another process. Each character stands for a byte.
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct PortableHeaders(Vec<(String, String)>);

/// The headers that were to be kept are too large.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "headers that are forwarded to backends have {bytes} bytes; at most {HEADERS_BYTES_MAX} are allowed"
)]
pub(crate) struct HeadersTooLarge {
    bytes: usize,
}

impl Forwarding {
    pub(super) fn new(backends: &[BackendOptions]) -> Self {
        let mut names: Vec<_> = backends.iter().flat_map(names_of).collect();
        names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        names.dedup();
        Self(names)
    }

    /// Returns the headers to keep of a client, charged to `account`; `None` if there are none.
    ///
    /// # Errors
    /// They are too large.
    pub(crate) fn keep(
        &self,
        headers: &HeaderMap,
        account: &Account,
    ) -> Result<Option<ForwardedHeaders>, HeadersTooLarge> {
        let kept = self.0.iter().flat_map(|name| {
            let values = headers.get_all(name).iter();
            values.map(move |value| (name, value))
        });
        let kept: Vec<_> = kept.collect();
        let bytes = kept.iter().map(|(name, value)| size(name, value)).sum();
        if bytes > HEADERS_BYTES_MAX {
            return Err(HeadersTooLarge { bytes });
        }
        let copy = |(name, value): (&HeaderName, &HeaderValue)| {
            let copied = HeaderValue::from_bytes(value.as_bytes());
            (name.clone(), copied.expect("the bytes are of a header"))
        };
        Ok(ForwardedHeaders::new(
            kept.into_iter().map(copy).collect(),
            account,
        ))
    }
}

impl ForwardedHeaders {
    fn new(headers: Vec<(HeaderName, HeaderValue)>, account: &Account) -> Option<Self> {
        let bytes: usize = headers.iter().map(|(name, value)| size(name, value)).sum();
        (!headers.is_empty()).then(|| Self {
            headers,
            _share: account.share(bytes as u64),
        })
    }

    /// Adds those headers to a request that its backend receives.
    pub(super) fn append(&self, names: &[HeaderName], request: &mut HeaderMap) {
        for (name, value) in &self.headers {
            if names.contains(name) {
                request.append(name, value.clone());
            }
        }
    }

    /// Returns the headers for another process.
    pub(crate) fn export(&self) -> PortableHeaders {
        let headers = self.headers.iter().map(|(name, value)| {
            let text = value.as_bytes().iter().map(|byte| char::from(*byte));
            (name.to_string(), text.collect())
        });
        PortableHeaders(headers.collect())
    }
}

impl PortableHeaders {
    /// Returns the headers of a client of another process. What no header can be is left out.
    pub(crate) fn restore(&self, account: &Account) -> Option<ForwardedHeaders> {
        let headers = self.0.iter().filter_map(|(name, value)| {
            let bytes: Option<Vec<u8>> =
                value.chars().map(|char| u8::try_from(char).ok()).collect();
            let value = HeaderValue::from_bytes(&bytes?).ok()?;
            Some((HeaderName::try_from(name.as_str()).ok()?, value))
        });
        ForwardedHeaders::new(headers.collect(), account)
    }
}

/// Returns the names of the headers that a backend receives.
pub(super) fn names_of(options: &BackendOptions) -> Vec<HeaderName> {
    let names = options.forwarded_headers.iter();
    let names = names.filter_map(|name| HeaderName::try_from(name.as_str()).ok());
    names.collect()
}

fn size(name: &HeaderName, value: &HeaderValue) -> usize {
    name.as_str().len() + value.len()
}

impl fmt::Debug for ForwardedHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.headers.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

impl fmt::Debug for PortableHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarding(names: &[&str]) -> Forwarding {
        Forwarding::new(&[BackendOptions {
            forwarded_headers: names.iter().map(|name| (*name).to_owned()).collect(),
            ..BackendOptions::default()
        }])
    }

    fn request(headers: &[(&'static str, &[u8])]) -> HeaderMap {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| {
            let value = HeaderValue::from_bytes(value).unwrap();
            (HeaderName::from_static(name), value)
        });
        headers.collect()
    }

    #[test]
    fn only_listed_headers_are_kept_and_each_backend_gets_its_own() {
        let forwarding = forwarding(&["Cookie", "X-Tenant"]);
        let request = request(&[
            ("cookie", b"a=1"),
            ("authorization", b"secret"),
            ("x-tenant", b"7"),
        ]);
        let account = Account::default();
        let kept = forwarding.keep(&request, &account).unwrap().unwrap();
        let mut sent = HeaderMap::new();
        kept.append(&[HeaderName::from_static("cookie")], &mut sent);
        assert_eq!(sent.len(), 1);
        assert_eq!(sent["cookie"], "a=1");
        assert_eq!(format!("{kept:?}"), r#"["cookie", "x-tenant"]"#);
    }

    #[test]
    fn a_client_without_listed_headers_costs_nothing() {
        let account = Account::default();
        let request = request(&[("authorization", b"secret")]);
        assert!(
            forwarding(&["cookie"])
                .keep(&request, &account)
                .unwrap()
                .is_none()
        );
        assert!(forwarding(&[]).keep(&request, &account).unwrap().is_none());
    }

    #[test]
    fn headers_are_limited() {
        let account = Account::default();
        let forwarding = forwarding(&["cookie"]);
        let at_most = vec![b'x'; HEADERS_BYTES_MAX - "cookie".len()];
        let kept = forwarding.keep(&request(&[("cookie", &at_most)]), &account);
        assert!(kept.unwrap().is_some());
        let more = [&at_most[..], b"x"].concat();
        let error = forwarding.keep(&request(&[("cookie", &more)]), &account);
        assert_eq!(
            error.unwrap_err().to_string(),
            "headers that are forwarded to backends have 8193 bytes; at most 8192 are allowed"
        );
    }

    #[test]
    fn headers_reach_another_process_byte_for_byte() {
        let account = Account::default();
        let request = request(&[("cookie", b"n=\xff\xfe"), ("cookie", b"b=2")]);
        let kept = forwarding(&["cookie"])
            .keep(&request, &account)
            .unwrap()
            .unwrap();
        let text = serde_json::to_string(&kept.export()).unwrap();
        let portable: PortableHeaders = serde_json::from_str(&text).unwrap();
        assert_eq!(portable.restore(&account).unwrap().headers, kept.headers);
    }
}
