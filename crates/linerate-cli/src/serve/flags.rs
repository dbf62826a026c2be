//! The flags of `linerate serve`, and the sources of its configuration.

use std::{env, net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use linerate_broker::{BROKERS, BrokerKind};
use linerate_gateway::config::Loader;

use super::uploads::LogsSection;

/// The environment variable that names the configuration file, for use in containers.
const CONFIG_VARIABLE: &str = "LINERATE_CONFIG";

/// The most common settings have their own flag; all others are set with `--set`.
#[derive(Args, Clone, Debug)]
pub(super) struct Flags {
    /// Configuration file in TOML [default: the file named by LINERATE_CONFIG, or none].
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Address and port to listen on; port 0 picks a free one and prints it [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    #[arg(long, value_name = "URL", help = broker_help())]
    broker: Option<String>,

    /// Number of worker threads [default: one per CPU core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Separate address and port for /metrics, /live and /ready [default: the same as --listen].
    #[arg(long, value_name = "ADDR:PORT")]
    operations_listen: Option<SocketAddr>,

    /// Origin whose pages may connect, or `*` for any origin; may be repeated [default: this
    /// server's own pages].
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,

    /// Maximum number of open connections; further ones are refused with status 503 [default:
    /// 10000].
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    connections_max: Option<u32>,

    /// Maximum number of simultaneous log uploads; further ones are refused and can be retried
    /// later; 0 disables uploads [default: 64].
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(0..=100_000))]
    uploads_max: Option<u32>,

    /// Log file that the server follows as it grows, for /logs; may be repeated.
    #[arg(long = "tail", value_name = "FILE")]
    tails: Vec<String>,

    /// Database for looking up countries in /logs (.mmdb, as provided by GeoLite2 and DB-IP).
    #[arg(long, value_name = "FILE")]
    geoip: Option<String>,

    /// Let clients connect without a token. If no key is set under `auth`, every client may do
    /// everything.
    #[arg(long)]
    insecure_anonymous: bool,

    /// Format of the server's log [default: human].
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,

    /// Set any configuration key, for example `channel.history_size=100`; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    Human,
    Json,
}

impl Flags {
    /// Returns the loader that combines these flags, the environment and the file.
    pub(super) fn loader(&self) -> Loader {
        let mut loader = loader_of_environment(self.config.clone());
        let log_format = self.log_format.map(|format| match format {
            LogFormat::Human => "human".to_owned(),
            LogFormat::Json => "json".to_owned(),
        });
        let tails = (!self.tails.is_empty()).then(|| self.tails.join(","));
        let origins = (!self.origins.is_empty()).then(|| self.origins.join(","));
        for (flag, key, value) in [
            (
                "--listen",
                "server.listen",
                self.listen.map(|it| it.to_string()),
            ),
            ("--broker", "broker.url", self.broker.clone()),
            (
                "--workers",
                "server.workers",
                self.workers.map(|it| it.to_string()),
            ),
            (
                "--operations-listen",
                "server.operations_listen",
                self.operations_listen.map(|it| it.to_string()),
            ),
            ("--origin", "server.origins", origins),
            (
                "--connections-max",
                "server.connections_max",
                self.connections_max.map(|it| it.to_string()),
            ),
            (
                "--uploads-max",
                "logs.uploads_max",
                self.uploads_max.map(|it| it.to_string()),
            ),
            (
                "--insecure-anonymous",
                "auth.anonymous",
                self.insecure_anonymous.then(|| "true".to_owned()),
            ),
            ("--log-format", "log.format", log_format),
            ("--tail", "logs.tail", tails),
            ("--geoip", "logs.geoip", self.geoip.clone()),
        ] {
            if let Some(value) = value {
                loader = loader.with_flag(flag, key, value);
            }
        }
        for (key, value) in &self.set {
            loader = loader.with_flag(&format!("--set {key}"), key, value);
        }
        loader
    }
}

/// Returns the help of `--broker`, with the URLs of all brokers.
fn broker_help() -> String {
    let schemes = BrokerKind::schemes_of(BROKERS);
    format!("Where publications come from: a URL that begins with {schemes} [default: memory:]")
}

/// Returns the loader of a configuration file combined with the environment. Without a `file`, it
/// loads the one named by `LINERATE_CONFIG`, if any.
pub(crate) fn loader_of_environment(file: Option<PathBuf>) -> Loader {
    // Variables that are not valid Unicode cannot be configuration keys.
    let variables = env::vars_os().filter_map(|(name, value)| {
        let is_ours = |name: &String| name != CONFIG_VARIABLE;
        Some((
            name.into_string().ok().filter(is_ours)?,
            value.into_string().ok()?,
        ))
    });
    let loader = Loader::new()
        .with_section::<LogsSection>()
        .with_environment(variables);
    let named = env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty());
    match file.or(named.map(PathBuf::from)) {
        Some(path) => loader.with_file(path),
        None => loader,
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}
