//! Flags about the way to the server: proxies, redirects, TLS, time.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use clap::{Args, ValueEnum};
use linerate::{
    Client,
    dial::{Proxy, Timeouts},
};

use super::{seconds, tls};

#[derive(Args, Debug)]
#[command(next_help_heading = "Network")]
pub(super) struct Network {
    /// Connect through this proxy: http://, https://, socks5:// or socks5h://, with USER:PASSWORD@ if
    /// need be. By default the environment names it, as for curl: http_proxy, https_proxy, all_proxy,
    /// no_proxy.
    #[arg(long, value_name = "URL", value_parser = proxy)]
    proxy: Option<Proxy>,

    /// Connect without a proxy, whatever the environment says.
    #[arg(long, conflicts_with = "proxy")]
    no_proxy: bool,

    /// Speak HTTP/1.1 only, which is the default.
    #[arg(long, group = "http")]
    http1: bool,

    /// Speak HTTP/2: by agreement over TLS, without asking in the clear. If the server has no
    /// WebSockets there, HTTP/1.1.
    #[arg(long, group = "http")]
    http2: bool,

    /// Speak HTTP/3, and nothing else; for wss:// and without a proxy.
    #[arg(long, group = "http")]
    http3: bool,

    /// Follow so many redirects; headers and cookies go to the same origin only.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    redirects: u32,

    /// Seconds for connecting, from the first name to the answer of the server.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    timeout: Duration,

    /// Whose certificates to trust: the system's, or those that this program brings along.
    #[arg(long, value_name = "ROOTS", conflicts_with_all = ["tls_ca", "tls_insecure"])]
    tls_roots: Option<Roots>,

    /// Trust the certificates in this PEM file, and no others.
    #[arg(long, value_name = "FILE", conflicts_with = "tls_insecure")]
    tls_ca: Option<PathBuf>,

    /// Show this certificate to a server that asks for one: a PEM file, with its chain.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        conflicts_with = "tls_insecure"
    )]
    tls_cert: Option<PathBuf>,

    /// The key of --tls-cert: a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Ask for and check the certificate of this name, in place of that in the address.
    #[arg(long, value_name = "NAME")]
    tls_name: Option<String>,

    /// DANGER: accept any certificate. Whoever sits in between can read and change everything.
    #[arg(long)]
    tls_insecure: bool,
}

/// Whose certificates are trusted.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Roots {
    Bundled,
    System,
}

impl Network {
    /// Makes `client` go this way to `url`.
    ///
    /// # Errors
    /// A file can't be read or is none of its kind.
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
            client = named.with_context(|| format!("{name} is no name of a server"))?;
        }
        self.secure(client)
    }

    fn secure(&self, client: Client) -> anyhow::Result<Client> {
        if self.tls_insecure {
            let config = linerate::tls::danger_client_config_trusting_anybody();
            return Ok(client.with_tls(Arc::new(config)));
        }
        let roots = match (&self.tls_ca, self.tls_roots) {
            (Some(file), _) => Some(tls::roots_in(file)?),
            (None, Some(Roots::Bundled)) => Some(linerate::tls::bundled_roots()),
            (None, Some(Roots::System)) => Some(linerate::tls::system_roots()),
            (None, None) => None,
        };
        let identity = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        Ok(match (roots, identity) {
            (None, None) => client,
            (roots, None) => {
                let roots = roots.unwrap_or_else(linerate::tls::default_roots);
                client.with_tls(Arc::new(linerate::tls::client_config(roots)))
            }
            (roots, Some((certificate, key))) => {
                let roots = roots.unwrap_or_else(linerate::tls::default_roots);
                client.with_tls(Arc::new(tls::identified(roots, certificate, key)?))
            }
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
