//! Flags for the connection to the server: proxies, redirects, TLS, timeouts.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use clap::{Args, ValueEnum};
use linerate::{
    Client,
    dial::{Proxy, Timeouts},
    tls::{
        bundled_roots, client_config, default_client_config, rustls::ClientConfig,
        system_client_config,
    },
};

use super::{seconds, tls};

#[derive(Args, Debug)]
#[command(next_help_heading = "Network")]
pub(super) struct Network {
    /// Connect through this proxy: http://, https://, socks5:// or socks5h://, with USER:PASSWORD@
    /// if needed. By default, the proxy is taken from the environment, as curl does: http_proxy,
    /// https_proxy, all_proxy, no_proxy.
    #[arg(long, value_name = "URL", value_parser = proxy)]
    proxy: Option<Proxy>,

    /// Connect without a proxy, even if the environment names one.
    #[arg(long, conflicts_with = "proxy")]
    no_proxy: bool,

    /// Use HTTP/1.1 only. This is the default.
    #[arg(long, group = "http")]
    http1: bool,

    /// Use HTTP/2: negotiated by ALPN over TLS, with prior knowledge without TLS. Falls back to
    /// HTTP/1.1 if the server does not support WebSockets over HTTP/2.
    #[arg(long, group = "http")]
    http2: bool,

    /// Use HTTP/3 only. Requires a wss:// URL and no proxy.
    #[arg(long, group = "http")]
    http3: bool,

    /// Follow at most this many redirects. Headers and cookies are sent only to the original
    /// origin.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    redirects: u32,

    /// Timeout for connecting in seconds, from name resolution to the server's response.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    timeout: Duration,

    /// Which root certificates to trust: the system's, or those built into this program.
    #[arg(long, value_name = "ROOTS", conflicts_with_all = ["tls_ca", "tls_insecure"])]
    tls_roots: Option<Roots>,

    /// Trust only the root certificates in this PEM file.
    #[arg(long, value_name = "FILE", conflicts_with = "tls_insecure")]
    tls_ca: Option<PathBuf>,

    /// Present this client certificate if the server asks for one: a PEM file with the whole chain.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        conflicts_with = "tls_insecure"
    )]
    tls_cert: Option<PathBuf>,

    /// The private key of --tls-cert: a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Request and verify the server's certificate for this name, instead of the host name in the
    /// URL.
    #[arg(long, value_name = "NAME")]
    tls_name: Option<String>,

    /// DANGER: accept any certificate. An attacker on the network can then read and change
    /// everything.
    #[arg(long)]
    tls_insecure: bool,
}

/// The root certificates that are trusted.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Roots {
    Bundled,
    System,
}

impl Network {
    /// Applies these settings to `client`, for a connection to `url`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or does not contain a certificate or key, or if
    /// `--tls-name` is not a valid server name.
    pub(super) fn apply(&self, mut client: Client, url: &str) -> anyhow::Result<Client> {
        if self.http3 {
            client = client.with_http3();
        } else if self.http2 && url.starts_with("wss:") {
            client = client.with_http2();
        } else if self.http2 {
            client = client.with_http2_prior_knowledge();
        }
        let mut timeouts = Timeouts::default();
        timeouts.total = self.timeout;
        client = client
            .with_timeouts(timeouts)
            .with_redirects_max(self.redirects);
        if let Some(proxy) = &self.proxy {
            client = client.with_proxy(proxy.clone());
        } else if self.no_proxy {
            client = client.without_proxy();
        }
        if let Some(name) = &self.tls_name {
            let named = client.with_server_name(name);
            client = named.with_context(|| format!("{name} is not a valid server name"))?;
        }
        self.secure(client)
    }

    fn secure(&self, client: Client) -> anyhow::Result<Client> {
        if self.tls_insecure {
            let config = linerate::tls::danger_client_config_trusting_anybody();
            return Ok(client.with_tls(Arc::new(config)));
        }
        let config = match (&self.tls_ca, self.tls_roots) {
            (Some(file), _) => Some(client_config(tls::roots_in(file)?)),
            (None, Some(Roots::Bundled)) => Some(client_config(bundled_roots())),
            (None, Some(Roots::System)) => {
                Some(system_client_config().context("cannot use the system's root certificates")?)
            }
            (None, None) => None,
        };
        let identity = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        let config = match identity {
            None => config,
            Some((certificate, key)) => {
                let config =
                    config.unwrap_or_else(|| ClientConfig::clone(&default_client_config()));
                Some(tls::identified(config, certificate, key)?)
            }
        };
        Ok(match config {
            Some(config) => client.with_tls(Arc::new(config)),
            None => client,
        })
    }
}

fn proxy(text: &str) -> Result<Proxy, String> {
    text.parse::<Proxy>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::proxy;

    #[test]
    fn a_proxy_is_a_url_of_one() {
        assert!(proxy("socks5h://user:pass@127.0.0.1:1080").is_ok());
        let error = proxy("gopher://x").unwrap_err();
        assert!(
            error.contains("http://, https://, socks5:// or socks5h://"),
            "{error}"
        );
    }
}
