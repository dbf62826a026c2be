//! `[[postgres]]`: databases whose changes are published.

use std::{collections::HashSet, path::PathBuf};

use linerate_hub::ChannelName;
use linerate_postgres::options::ANY_TABLE;
use linerate_source::Template;
use serde::Deserialize;

use super::{
    Config, Secret,
    check::Check,
    endpoint::{check_name, check_tls},
};

/// Maximum number of sources: each is a label value in metrics, and has two connections.
const SOURCES_MAX: usize = 16;

/// Maximum number of tables, and of notification channels, of a source.
const TABLES_MAX: usize = 1_000;

/// Maximum length of a name in Postgres, in bytes (`NAMEDATALEN` - 1).
const NAME_BYTES_MAX: usize = 63;

/// A database whose changes, or notifications, are published.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// The name in logs, metrics and idempotency keys. Nodes with the same name share the work.
    pub name: String,
    /// The URL of the server, with the user and the database.
    pub url: Option<Secret>,
    /// The replication slot, which remembers what has been published.
    pub slot: String,
    /// True if the slot is created when it is missing or lost.
    pub create_slot: bool,
    /// The publication (`CREATE PUBLICATION`) that selects tables and operations.
    pub publication: String,
    /// True if messages of `pg_logical_emit_message` are published.
    pub messages: bool,
    /// Maximum size of a changed row and of its payload, in bytes.
    pub row_bytes_max: usize,
    /// The tables whose changes are published.
    #[serde(rename = "table")]
    pub tables: Vec<PostgresTable>,
    /// The channels of `NOTIFY` that are published, instead of changes.
    pub notifications: Vec<String>,
    /// A PEM file with the certificate authorities to trust, instead of those of the system.
    pub tls_authorities: Option<PathBuf>,
    /// A PEM file with the certificate chain that this server presents.
    pub tls_certificate: Option<PathBuf>,
    /// A PEM file with the private key of that certificate.
    pub tls_key: Option<PathBuf>,
}

/// How the changes of a table are published.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PostgresTable {
    /// The name with its schema, or `*` for all tables that are not named.
    pub name: String,
    /// The channel, in which `{column}` stands for the value of a column.
    pub channel: String,
    /// The column with the payload. Only inserted rows are published then.
    pub payload: Option<String>,
    /// The column with the tags, as a JSON object of texts.
    pub tags: Option<String>,
    /// The column with the idempotency key.
    pub key: Option<String>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            url: None,
            slot: "linerate".to_owned(),
            create_slot: true,
            publication: "linerate".to_owned(),
            messages: false,
            row_bytes_max: 1 << 20,
            tables: Vec::new(),
            notifications: Vec::new(),
            tls_authorities: None,
            tls_certificate: None,
            tls_key: None,
        }
    }
}

impl PostgresOptions {
    fn check(&self, check: &mut Check) {
        check_name(&self.name, check);
        if self.url.is_none() {
            check.refuse("url", "(none)", "is required");
        }
        let is_slot = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_short = |name: &str| (1..=NAME_BYTES_MAX).contains(&name.len());
        if !is_short(&self.slot) || !self.slot.bytes().all(is_slot) {
            let because = "must be 1 to 63 lower-case letters, digits or underscores";
            check.refuse("slot", &self.slot, because);
        }
        if !is_short(&self.publication) {
            check.refuse("publication", &self.publication, "must have 1 to 63 bytes");
        }
        check.range("row_bytes_max", self.row_bytes_max, 1_024..=64 << 20);
        let reads_changes = self.messages || !self.tables.is_empty();
        match (reads_changes, self.notifications.is_empty()) {
            (false, true) => {
                let because = "needs one of: a [[postgres.table]], messages = true, notifications";
                check.refuse("name", &self.name, because);
            }
            (true, false) => {
                let because =
                    "cannot be read together with tables and messages; add another [[postgres]]";
                check.refuse("notifications", self.notifications.join(", "), because);
            }
            _ => {}
        }
        check_tls(&self.tls_certificate, &self.tls_key, check);
        self.check_tables(check);
        check.range("notifications", self.notifications.len(), 0..=TABLES_MAX);
        for name in &self.notifications {
            if !is_short(name) || ChannelName::new(name).is_err() {
                let because = "must be names of channels with 1 to 63 bytes";
                check.refuse("notifications", name, because);
            }
        }
    }

    fn check_tables(&self, check: &mut Check) {
        check.range("table", self.tables.len(), 0..=TABLES_MAX);
        let mut names = HashSet::new();
        for (index, table) in self.tables.iter().enumerate() {
            check.section(&format!("table[{index}]"), |check| {
                if table.name != ANY_TABLE && !table.name.contains('.') {
                    let because = "must be a name with a schema, such as public.orders, or *";
                    check.refuse("name", &table.name, because);
                }
                if !names.insert(table.name.as_str()) {
                    check.refuse("name", &table.name, "is used by two tables");
                }
                if let Err(error) = Template::new(&table.channel) {
                    check.refuse("channel", &table.channel, &format!("is invalid: {error}"));
                }
            });
        }
    }
}

/// Checks the databases.
pub(super) fn check(config: &Config, check: &mut Check) {
    check.range("postgres", config.postgres.len(), 0..=SOURCES_MAX);
    let mut names = HashSet::new();
    for (index, source) in config.postgres.iter().enumerate() {
        check.section(&format!("postgres[{index}]"), |check| {
            source.check(check);
            if !names.insert(source.name.as_str()) {
                check.refuse("name", &source.name, "is used by two databases");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Loader;

    #[test]
    fn databases_that_cannot_work_are_refused() {
        let table = "[[postgres.table]]\nname = \"public.a\"\nchannel = \"a\"\n";
        for (source, message) in [
            ("", "postgres[0].url = (none) is required"),
            (
                "",
                "postgres[0].name = shop needs one of: a [[postgres.table]]",
            ),
            (
                "slot = \"Shop\"",
                "postgres[0].slot = Shop must be 1 to 63 lower-case letters",
            ),
            (
                &format!("notifications = [\"n\"]\n{table}"),
                "postgres[0].notifications = n cannot be read together",
            ),
            (
                "notifications = [\"with space\"]",
                "postgres[0].notifications = with space must be names of channels",
            ),
            (
                &format!("{table}{table}"),
                "postgres[0].table[1].name = public.a is used by two tables",
            ),
            (
                "[[postgres.table]]\nname = \"a\"\nchannel = \"{\"",
                "postgres[0].table[0].name = a must be a name with a schema",
            ),
            (
                "[[postgres.table]]\nname = \"a\"\nchannel = \"{\"",
                "postgres[0].table[0].channel = { is invalid: channel template must have a name",
            ),
            (
                "row_bytes_max = 1",
                "postgres[0].row_bytes_max = 1 must be between 1024 and 67108864",
            ),
        ] {
            let text = format!("[[postgres]]\nname = \"shop\"\n{source}\n");
            let error = Loader::new().with_text("test.toml", &text).load();
            let error = error.unwrap_err().to_string();
            assert!(error.contains(message), "{source}: {error}");
        }
    }
}
