//! The options of sources.

use std::{str::FromStr, sync::Arc};

use linerate_hub::ChannelName;
use linerate_source::Template;
use rustls::ClientConfig;
use tokio_postgres::{Config, config::Host};

/// The table name that stands for all tables without their own options.
pub const ANY_TABLE: &str = "*";

/// The address of a Postgres server, and the user and database to use. Its `Debug` output does not
/// contain the password.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerUrl(pub(crate) Config);

/// The reason why the URL of a server cannot be used. The message does not contain the URL, which
/// may contain a password.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The URL names no database.
    #[error("must name a database, as in postgres://user@host/database")]
    Database,
    /// The URL names no host.
    #[error("must name a host, as in postgres://user@host/database")]
    Host,
    /// The URL is malformed.
    #[error("is malformed; expected postgres://user:password@host:port/database")]
    Malformed,
    /// The URL names no user.
    #[error("must name a user, as in postgres://user@host/database")]
    User,
}

impl FromStr for ServerUrl {
    type Err = UrlError;

    /// Reads a connection URL or a list of settings, with the syntax of libpq. Certificates are
    /// always verified, so `sslmode=verify-full` and `verify-ca` mean the same as `require`.
    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = ["verify-full", "verify-ca"]
            .iter()
            .fold(text.to_owned(), |text, mode| {
                text.replace(&format!("sslmode={mode}"), "sslmode=require")
            });
        let config: Config = text.parse().map_err(|_| UrlError::Malformed)?;
        match () {
            () if config.get_hosts().is_empty() => Err(UrlError::Host),
            () if config.get_user().is_none_or(str::is_empty) => Err(UrlError::User),
            () if config.get_dbname().is_none_or(str::is_empty) => Err(UrlError::Database),
            () => Ok(Self(config)),
        }
    }
}

impl ServerUrl {
    /// Returns one configuration for each host.
    pub(crate) fn servers(&self) -> Vec<Config> {
        let (hosts, ports) = (self.0.get_hosts(), self.0.get_ports());
        let addresses = self.0.get_hostaddrs();
        let single = |(index, host): (usize, &Host)| {
            let mut config = Config::new();
            match host {
                Host::Tcp(name) => _ = config.host(name),
                #[cfg(unix)]
                Host::Unix(path) => _ = config.host_path(path),
            }
            let port = ports.get(index).or(ports.first()).copied();
            config.port(port.unwrap_or(5432));
            if let Some(address) = addresses.get(index) {
                config.hostaddr(*address);
            }
            self.copy_session(&mut config);
            config
        };
        hosts.iter().enumerate().map(single).collect()
    }

    fn copy_session(&self, config: &mut Config) {
        let from = &self.0;
        config
            .ssl_mode(from.get_ssl_mode())
            .channel_binding(from.get_channel_binding())
            .target_session_attrs(from.get_target_session_attrs())
            .application_name(from.get_application_name().unwrap_or("linerate"));
        if let Some(user) = from.get_user() {
            config.user(user);
        }
        if let Some(password) = from.get_password() {
            config.password(password);
        }
        if let Some(database) = from.get_dbname() {
            config.dbname(database);
        }
        if let Some(options) = from.get_options() {
            config.options(options);
        }
    }
}

/// The options of a source that reads changes by logical decoding.
#[derive(Clone, Debug)]
pub struct ChangeOptions {
    /// The name of the source, in tags, idempotency keys, logs and metrics. It must stay the same,
    /// because publications are recognised by it.
    pub name: String,
    /// The server.
    pub server: ServerUrl,
    /// How the certificate of the server is verified.
    pub tls: Arc<ClientConfig>,
    /// The replication slot.
    pub slot: String,
    /// Creates the slot if it does not exist, or if the server has removed its log, and reports a
    /// gap.
    pub create_slot: bool,
    /// The publication (in the sense of `CREATE PUBLICATION`) that selects tables and operations.
    pub publication: String,
    /// Publishes messages of `pg_logical_emit_message` whose prefix is `linerate:` and the name of
    /// a channel.
    pub messages: bool,
    /// The tables. Changes of others are ignored, unless one is named [`ANY_TABLE`].
    pub tables: Vec<TableOptions>,
    /// The maximum size of a change and of its payload, in bytes. Larger ones are refused.
    pub row_bytes_max: usize,
}

/// How the changes of a table are published.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The name with its schema, such as `public.orders`, or [`ANY_TABLE`].
    pub table: String,
    /// The channel.
    pub channel: Template,
    /// The column with the payload. The table is then an outbox: only inserted rows are published.
    /// `None` publishes each change as JSON.
    pub payload: Option<String>,
    /// The column of an outbox with tags, as a JSON object of texts.
    pub tags: Option<String>,
    /// The column of an outbox with the idempotency key, instead of one derived from the position.
    pub key: Option<String>,
}

/// The options of a source that reads notifications.
#[derive(Clone, Debug)]
pub struct NotificationOptions {
    /// The name of the source, in idempotency keys, logs and metrics. Nodes with the same name
    /// share the work.
    pub name: String,
    /// The server.
    pub server: ServerUrl,
    /// How the certificate of the server is verified.
    pub tls: Arc<ClientConfig>,
    /// The channels of Postgres to listen to. Each is published in the channel with its name.
    pub channels: Vec<ChannelName>,
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::{ServerUrl, UrlError};

    #[test]
    fn urls_name_a_host_a_user_and_a_database() {
        for (url, error) in [
            ("postgres://u@h", UrlError::Database),
            ("postgres://h/d", UrlError::User),
            ("user=u dbname=d", UrlError::Host),
            ("postgres://u:hunter2@h:x/d", UrlError::Malformed),
            ("", UrlError::Host),
        ] {
            let result = url.parse::<ServerUrl>();
            assert_eq!(result.err(), Some(error), "{url}");
            assert!(!error.to_string().contains("hunter2"));
        }
    }

    #[test]
    fn each_host_is_a_server_of_its_own() {
        let url = "postgres://u:p@a:1,b:2/d?sslmode=verify-full&target_session_attrs=read-write";
        let servers = url.parse::<ServerUrl>().unwrap().servers();
        let ports: Vec<_> = servers.iter().map(|server| server.get_ports()).collect();
        assert_eq!(ports, [[1], [2]]);
        for server in servers {
            assert_eq!(server.get_hosts().len(), 1);
            assert_eq!(server.get_ssl_mode(), SslMode::Require);
            assert_eq!(server.get_password(), Some(&b"p"[..]));
            assert_eq!(server.get_application_name(), Some("linerate"));
        }
    }

    #[test]
    fn debug_output_does_not_contain_the_password() {
        let url: ServerUrl = "postgres://u:hunter2@h/d".parse().unwrap();
        assert!(!format!("{url:?}").contains("hunter2"));
    }
}
