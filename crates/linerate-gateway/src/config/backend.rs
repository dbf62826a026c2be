//! `[[backend]]`: the parts of the application that are asked what clients may do.

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    time::Duration,
};

use serde::Deserialize;

use super::{
    Config, Secret, backend_name,
    check::Check,
    endpoint::{NOT_A_HEADER, check_headers, check_name, check_tls, check_url, is_header_name},
    unit,
};

/// Maximum number of backends: each is a label value in metrics.
const BACKENDS_MAX: usize = 64;

/// What stands for the kind of a question in a URL.
pub(crate) const EVENT: &str = "{event}";

/// A backend of the application, which answers HTTP requests.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BackendOptions {
    /// The name by which options of clients and channels refer to the backend.
    pub name: String,
    /// The URL that requests are sent to; `{event}` stands for what is asked.
    pub url: String,
    /// Maximum time until the answer is complete, including the time until a connection is free,
    /// and further attempts.
    #[serde(rename = "timeout_ms", with = "unit::milliseconds")]
    pub timeout: Duration,
    /// Maximum number of further attempts if the backend is unavailable.
    pub retries_max: u32,
    /// Maximum number of requests that this node sends to the backend at the same time.
    pub concurrent_requests_max: usize,
    /// Maximum number of requests that wait because `concurrent_requests_max` are being sent.
    pub waiting_requests_max: usize,
    /// Maximum size of an answer, in bytes.
    pub answer_bytes_max: usize,
    /// Number of consecutive requests without an answer after which the backend is not asked for a
    /// while; 0 never stops asking.
    pub failures_max: u32,
    /// How long the backend is not asked then.
    #[serde(rename = "failure_pause_ms", with = "unit::milliseconds")]
    pub failure_pause: Duration,
    /// Headers of a client's opening request that are forwarded.
    pub forwarded_headers: Vec<String>,
    /// Headers that each request has.
    pub headers: BTreeMap<String, Secret>,
    /// True if payloads may be other than JSON, and are therefore sent as base64.
    pub binary: bool,
    /// True if requests contain the `meta` of the client's token or of the answer to `connect`.
    pub meta: bool,
    /// A PEM file with the certificate authorities to trust, instead of those of the system.
    pub tls_authorities: Option<PathBuf>,
    /// A PEM file with the certificate chain that this server presents.
    pub tls_certificate: Option<PathBuf>,
    /// A PEM file with the private key of that certificate.
    pub tls_key: Option<PathBuf>,
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            url: String::new(),
            timeout: Duration::from_secs(1),
            retries_max: 1,
            concurrent_requests_max: 256,
            waiting_requests_max: 4_096,
            answer_bytes_max: 1 << 20,
            failures_max: 10,
            failure_pause: Duration::from_secs(1),
            forwarded_headers: Vec::new(),
            headers: BTreeMap::new(),
            binary: false,
            meta: false,
            tls_authorities: None,
            tls_certificate: None,
            tls_key: None,
        }
    }
}

impl BackendOptions {
    fn check(&self, check: &mut Check) {
        check_name(&self.name, check);
        let about_users = "must not contain a user; set an Authorization header in `headers`";
        check_url(
            &self.url.replace(EVENT, "connect"),
            &self.url,
            about_users,
            check,
        );
        let millis = |duration: Duration| duration.as_millis() as u64;
        check.range("timeout_ms", millis(self.timeout), 10..=60_000);
        check.range("retries_max", self.retries_max, 0..=10);
        let concurrent = self.concurrent_requests_max;
        check.range("concurrent_requests_max", concurrent, 1..=10_000);
        let waiting = self.waiting_requests_max;
        check.range("waiting_requests_max", waiting, 0..=1_000_000);
        check.range("answer_bytes_max", self.answer_bytes_max, 1_024..=64 << 20);
        check.range("failures_max", self.failures_max, 0..=1_000_000);
        let pause = millis(self.failure_pause);
        check.range("failure_pause_ms", pause, 10..=600_000);
        self.check_headers(check);
        check_tls(&self.tls_certificate, &self.tls_key, check);
    }

    fn check_headers(&self, check: &mut Check) {
        check.range("forwarded_headers", self.forwarded_headers.len(), 0..=64);
        let names = self.forwarded_headers.iter();
        for name in names.filter(|name| !is_header_name(name)) {
            check.refuse("forwarded_headers", name, NOT_A_HEADER);
        }
        check_headers(&self.headers, check);
    }
}

/// Checks the backends, and that others refer to existing ones.
pub(super) fn check(config: &Config, check: &mut Check) {
    check.range("backend", config.backends.len(), 0..=BACKENDS_MAX);
    let mut names = HashSet::new();
    for (index, backend) in config.backends.iter().enumerate() {
        check.section(&format!("backend[{index}]"), |check| {
            backend.check(check);
            if !names.insert(backend.name.as_str()) {
                check.refuse("name", &backend.name, "is used by two backends");
            }
        });
    }
    let known = |check: &mut Check, references: &[(&str, &Option<String>)]| {
        for (key, name) in references {
            if let Some(name) = backend_name(name)
                && !names.contains(name)
            {
                check.refuse(key, name, "is not the name of a [[backend]]");
            }
        }
    };
    check.section("client", |check| known(check, &config.client.backends()));
    check.section("channel", |check| known(check, &config.channel.backends()));
    let inherited = config.channel.backends();
    for (index, namespace) in config.namespaces.iter().enumerate() {
        check.section(&format!("namespace[{index}]"), |check| {
            let own = namespace.options.backends().into_iter();
            let own = own.filter(|reference| !inherited.contains(reference));
            known(check, &own.collect::<Vec<_>>());
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Loader;

    fn error(backend: &str) -> String {
        let text = format!("[[backend]]\nname = \"app\"\n{backend}\n");
        let loader = Loader::new().with_text("test.toml", &text);
        loader.load().unwrap_err().to_string()
    }

    #[test]
    fn backends_that_cannot_work_are_refused() {
        let url = "url = \"http://localhost/\"\n";
        for (backend, message) in [
            ("", "backend[0].url =  must be an https:// or http:// URL"),
            (
                "url = \"ftp://localhost/\"",
                "must be an https:// or http:// URL",
            ),
            (
                "url = \"http://me:secret@localhost/\"",
                "backend[0].url = (with a user) must not contain a user",
            ),
            (
                &format!("{url}forwarded_headers = [\"X-Forwarded-For\"]"),
                "backend[0].forwarded_headers = X-Forwarded-For must be the name of a header",
            ),
            (
                &format!("{url}headers = {{ Host = \"x\" }}"),
                "backend[0].headers = Host must be the name of a header",
            ),
            (
                &format!("{url}headers = {{ A = \"x\\ny\" }}"),
                "backend[0].headers = A has a value that no header can have",
            ),
            (
                &format!("{url}tls_key = \"/key.pem\""),
                "backend[0].tls_key = /key.pem requires both tls_certificate and tls_key",
            ),
            (
                &format!("{url}timeout_ms = 0"),
                "backend[0].timeout_ms = 0 must be between 10 and 60000",
            ),
            (
                &format!("{url}[[backend]]\nname = \"app\"\n{url}"),
                "backend[1].name = app is used by two backends",
            ),
            (
                &format!("{url}[[backend]]\nname = \"a b\"\n{url}"),
                "backend[1].name = a b must be 1 to 64 letters",
            ),
            (
                &format!("{url}[client]\nsend_backend = \"ap\""),
                "client.send_backend = ap is not the name of a [[backend]]",
            ),
        ] {
            let error = error(backend);
            assert!(error.contains(message), "{backend}: {error}");
        }
    }

    #[test]
    fn an_empty_name_unsets_what_a_namespace_inherits() {
        let text = "[channel]\nrpc_backend = \"app\"\n[[namespace]]\nname = \"a\"\n\
                    rpc_backend = \"\"\n[[backend]]\nname = \"app\"\nurl = \"http://localhost/\"\n";
        let loader = Loader::new().with_text("test.toml", text);
        assert!(loader.load().is_ok());
    }
}
