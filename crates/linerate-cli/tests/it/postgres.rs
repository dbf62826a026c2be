//! Changes of a Postgres server reach clients once, although the nodes that read it are killed.

use std::{fs, time::Duration};

use linerate_testkit::server::{PostgresServer, RedisServer};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::{
    brokers::start_nats,
    support::{PATIENCE, Server},
};

/// How many rows are inserted before each kill.
const ROWS: usize = 500;

async fn nothing_is_lost_or_repeated_on(broker: &str) {
    let Some(mut database) = PostgresServer::start() else {
        return;
    };
    database.sql(
        "CREATE TABLE outbox (id serial PRIMARY KEY, payload text);
        CREATE PUBLICATION linerate FOR TABLE outbox",
    );
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("linerate.toml").display().to_string();
    let channel = "[channel]\ndurable = true\nhistory_size = 10_000\nhistory_ttl_s = 600";
    let url = database.url();
    let toml = format!(
        "{channel}\n[[postgres]]\nname = \"shop\"\nurl = \"{url}\"\n\
         [[postgres.table]]\nname = \"public.outbox\"\nchannel = \"rows\"\npayload = \"payload\""
    );
    fs::write(&file, toml).unwrap();
    let plain = directory.path().join("plain.toml").display().to_string();
    fs::write(&plain, channel).unwrap();
    // A node that does not read, so that its clients stay.
    let server = Server::start_with(&["--broker", broker, "--config", &plain]);
    let mut client = server.connect("/raw?channel=rows").await;
    let start = || Server::start_with(&["--broker", broker, "--config", &file]);
    let mut nodes = vec![start(), start()];
    for round in 0..4 {
        let reader = reader_of(&nodes).await;
        let (first, last) = (round * ROWS, (round + 1) * ROWS - 1);
        database.sql(&format!(
            "INSERT INTO outbox (payload) SELECT i::text FROM generate_series({first}, {last}) i"
        ));
        if round == 2 {
            database.crash();
        }
        let mut killed = nodes.swap_remove(reader);
        killed.child.kill().unwrap();
        killed.child.wait().unwrap();
        nodes.push(start());
        for number in first..=last {
            let message = timeout(PATIENCE, client.recv()).await.unwrap().unwrap();
            let text = message.unwrap();
            assert_eq!(text.as_text(), Some(&*number.to_string()));
        }
    }
}

/// Waits until a node reads, and returns its index.
async fn reader_of(nodes: &[Server]) -> usize {
    let reading = async {
        loop {
            for (index, node) in nodes.iter().enumerate() {
                let metrics = node.get("/metrics").await;
                if metrics
                    .text()
                    .contains("linerate_source_reading{source=\"shop\"} 1.0")
                {
                    return index;
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, reading).await.unwrap()
}

#[tokio::test]
async fn rows_are_published_once_on_redis() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    nothing_is_lost_or_repeated_on(&redis.url()).await;
}

#[tokio::test]
async fn rows_are_published_once_on_nats() {
    let Some(nats) = start_nats() else {
        return;
    };
    nothing_is_lost_or_repeated_on(&format!("nats://{}", nats.address())).await;
}
