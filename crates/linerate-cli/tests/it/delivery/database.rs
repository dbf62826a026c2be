//! A Postgres server whose outbox the nodes publish.

use std::time::Duration;

use linerate_testkit::server::PostgresServer;
use tokio::time::sleep;
use tokio_postgres::{Client, Config, NoTls};

/// A server with an outbox.
pub(crate) struct Database {
    server: PostgresServer,
    /// The server that replaces it.
    replica: Option<PostgresServer>,
}

impl Database {
    /// Starts a server, and with `is_replicated` a replica that has each commit before it is
    /// acknowledged. Returns `None` if Postgres is not installed.
    pub(crate) fn start(is_replicated: bool) -> Option<Self> {
        let server = PostgresServer::start()?;
        server.sql(
            "CREATE TABLE outbox (id bigserial PRIMARY KEY, channel text, payload text);
            CREATE PUBLICATION linerate FOR TABLE outbox",
        );
        let replica = match is_replicated {
            true => Some(server.replicate()?),
            false => None,
        };
        Some(Self { server, replica })
    }

    /// Ends the server as in a crash, and starts it again after a moment.
    pub(crate) async fn crash(&mut self) {
        self.server.quit();
        sleep(Duration::from_millis(500)).await;
        self.server.restart();
    }

    /// Ends the server for good.
    pub(crate) fn kill(&mut self) {
        self.server.quit();
    }

    /// Lets the replica take over.
    pub(crate) fn promote(&self) {
        self.replica.as_ref().expect("a replica").promote();
    }

    /// Drops the replication slot, with which changes that were not read are lost.
    pub(crate) fn drop_slot(&self) {
        // A node may read again before the slot is dropped.
        self.server.sql(
            "DO $$ BEGIN LOOP BEGIN
                PERFORM pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots
                    WHERE active;
                PERFORM pg_drop_replication_slot(slot_name) FROM pg_replication_slots;
                RETURN;
            EXCEPTION WHEN object_in_use THEN
            END; END LOOP; END $$",
        );
    }

    /// Returns the part of the configuration of a node that publishes the outbox.
    pub(crate) fn toml(&self) -> String {
        let url = self.url();
        format!(
            "[[postgres]]\nname = \"shop\"\nurl = \"{url}\"\n\
             [[postgres.table]]\nname = \"public.outbox\"\nchannel = \"{{channel}}\"\npayload = \"payload\"\n"
        )
    }

    /// Returns how to connect to the server that accepts changes.
    pub(crate) fn config(&self) -> Config {
        self.url().parse().unwrap()
    }

    fn url(&self) -> String {
        let hosts = [Some(&self.server), self.replica.as_ref()];
        let address = |server: &PostgresServer| format!("127.0.0.1:{}", server.port());
        let hosts: Vec<_> = hosts.into_iter().flatten().map(address).collect();
        let hosts = hosts.join(",");
        format!(
            "postgres://postgres@{hosts}/postgres?sslmode=disable&target_session_attrs=read-write"
        )
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
