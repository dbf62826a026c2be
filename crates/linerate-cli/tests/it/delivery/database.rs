//! A Postgres server whose outbox the nodes publish.

use std::time::Duration;

use linerate_testkit::server::PostgresServer;
use tokio::time::sleep;
use tokio_postgres::{Client, Config, NoTls};

/// A server with an outbox.
pub(crate) struct Database(PostgresServer);

impl Database {
    /// Starts a server. Returns `None` if Postgres is not installed.
    pub(crate) fn start() -> Option<Self> {
        let server = PostgresServer::start()?;
        server.sql(
            "CREATE TABLE outbox (id bigserial PRIMARY KEY, channel text, payload text);
            CREATE PUBLICATION linerate FOR TABLE outbox",
        );
        Some(Self(server))
    }

    /// Ends the server as in a crash, and starts it again after a moment.
    pub(crate) async fn crash(&mut self) {
        self.0.quit();
        sleep(Duration::from_millis(500)).await;
        self.0.restart();
    }

    /// Returns the part of the configuration of a node that publishes the outbox.
    pub(crate) fn toml(&self) -> String {
        let url = self.0.url();
        format!(
            "[[postgres]]\nname = \"shop\"\nurl = \"{url}\"\n\
             [[postgres.table]]\nname = \"public.outbox\"\nchannel = \"{{channel}}\"\npayload = \"payload\"\n"
        )
    }

    /// Returns how to connect to the server.
    pub(crate) fn config(&self) -> Config {
        self.0.url().parse().unwrap()
    }
}

/// Inserts a row. Returns false if it is unknown whether it was committed.
pub(crate) async fn insert(
    client: &mut Option<Client>,
    config: &Config,
    channel: &str,
    payload: &str,
) -> bool {
    if client.is_none() {
        let Ok((connected, connection)) = config.connect(NoTls).await else {
            return false;
        };
        tokio::spawn(connection);
        *client = Some(connected);
    }
    let insert = "INSERT INTO outbox (channel, payload) VALUES ($1, $2)";
    let inserted = match client {
        Some(client) => client.execute(insert, &[&channel, &payload]).await,
        None => return false,
    };
    if inserted.is_err() {
        *client = None;
    }
    inserted.is_ok()
}
