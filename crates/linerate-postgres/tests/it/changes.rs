use std::{sync::Arc, time::Duration};

use linerate_budget::Budget;
use linerate_postgres::{ChangeOptions, TableOptions, run_changes};
use linerate_source::{SourceState, Status, Template};
use linerate_testkit::server::PostgresServer;
use tokio::{task::JoinHandle, time::sleep};

use super::recorder::{Recorder, tls, until};

const TABLES: &str = "CREATE TABLE orders (id int PRIMARY KEY, customer text, note jsonb);
    CREATE TABLE outbox (id serial PRIMARY KEY, channel text, payload text, tags jsonb);
    CREATE PUBLICATION linerate FOR TABLE orders, outbox;";

fn options(server: &PostgresServer) -> ChangeOptions {
    let table = |table: &str, channel, payload: Option<&str>| TableOptions {
        table: table.to_owned(),
        channel: Template::new(channel).unwrap(),
        payload: payload.map(str::to_owned),
        tags: payload.map(|_| "tags".to_owned()),
        key: None,
    };
    ChangeOptions {
        name: "shop".to_owned(),
        server: server.url().parse().unwrap(),
        tls: tls(),
        slot: "linerate".to_owned(),
        create_slot: true,
        publication: "linerate".to_owned(),
        messages: true,
        tables: vec![
            table("public.orders", "orders:{customer}", None),
            table("public.outbox", "{channel}", Some("payload")),
        ],
        row_bytes_max: 1 << 16,
    }
}

fn start(server: &PostgresServer, sink: &Arc<Recorder>) -> (JoinHandle<()>, Arc<Status>) {
    let status = Arc::new(Status::default());
    let source = run_changes(
        options(server),
        sink.clone(),
        status.clone(),
        Budget::unbounded(),
    );
    (tokio::spawn(source), status)
}

/// Starts a server with tables, and a source that reads it. `None` if Postgres is not installed.
async fn begin() -> Option<(PostgresServer, Arc<Recorder>, JoinHandle<()>, Arc<Status>)> {
    let server = PostgresServer::start()?;
    server.sql(TABLES);
    let sink = Recorder::new();
    let (source, status) = start(&server, &sink);
    until("the source reads", || status.connections() == 1).await;
    Some((server, sink, source, status))
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_published_in_commit_order_and_rollbacks_are_not() {
    let Some((server, sink, source, _)) = begin().await else {
        return;
    };
    server.sql("INSERT INTO orders VALUES (1, 'änne', '{\"a\": 1}')");
    server.sql("BEGIN; INSERT INTO orders VALUES (2, 'änne'); ROLLBACK");
    server.sql("UPDATE orders SET note = 'null' WHERE id = 1");
    server.sql(
        "ALTER TABLE orders ADD paid bool DEFAULT true; ALTER TABLE orders REPLICA IDENTITY FULL",
    );
    server.sql("DELETE FROM orders");
    let orders = sink.wait("orders:änne", 3).await;
    assert!(
        orders[0].ends_with(r#""before":null,"after":{"id":1,"customer":"änne","note":{"a":1}}}"#),
        "{orders:?}"
    );
    assert!(orders[1].starts_with(r#"{"op":"u","ts_ms":"#), "{orders:?}");
    assert!(
        orders[2].ends_with(
            r#""before":{"id":1,"customer":"änne","note":null,"paid":true},"after":null}"#
        ),
        "{orders:?}"
    );
    server.sql("SELECT pg_logical_emit_message(true, 'linerate:news', 'hello')");
    assert_eq!(sink.wait("news", 1).await, ["hello"]);
    source.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_cannot_be_published_are_counted_and_the_next_ones_continue() {
    let Some((server, sink, source, status)) = begin().await else {
        return;
    };
    server.sql(
        "INSERT INTO outbox (channel, payload) VALUES
        ('a', repeat('x', 1000000)), ('with space', 'x'), (NULL, 'x'), ('a', 'last')",
    );
    assert_eq!(sink.wait("a", 1).await, ["last"]);
    assert_eq!(status.refused(), 3);
    source.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_repeated_when_readers_and_the_server_are_killed() {
    let Some((mut server, sink, mut one, _)) = begin().await else {
        return;
    };
    for round in 0..4 {
        let (two, status) = start(&server, &sink);
        server.sql(&format!(
            "INSERT INTO outbox (channel, payload) SELECT 'a', i::text
             FROM generate_series({}, {}) i",
            round * 1_000,
            round * 1_000 + 999
        ));
        if round == 2 {
            server.crash();
        }
        one.abort();
        until("the other node reads", || status.connections() > 0).await;
        one = two;
    }
    let expected: Vec<_> = (0..4_000).map(|number| number.to_string()).collect();
    assert!(sink.wait("a", 4_000).await == expected);
    assert_eq!(sink.gaps().len(), 1, "only the new slot");
    one.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_lost_its_connection_returns_before_another_node_reads() {
    let Some((server, sink, one, reading)) = begin().await else {
        return;
    };
    let (two, waiting) = start(&server, &sink);
    until("the other node waits", || {
        waiting.state() == SourceState::Standby
    })
    .await;
    // The other node looks once a second. It would be faster in some of these rounds.
    for round in 2..8 {
        // It has to see the reader between two rounds.
        sleep(Duration::from_millis(1_200)).await;
        server.sql(
            "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE active",
        );
        until("the reader reads again", || reading.connections() == round).await;
    }
    assert_eq!(waiting.connections(), 0);
    one.abort();
    until("the other node reads", || waiting.connections() == 1).await;
    two.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_slot_is_created_again_and_reported_as_a_gap() {
    let Some((server, sink, source, status)) = begin().await else {
        return;
    };
    server.sql(
        "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots;
        SELECT pg_drop_replication_slot('linerate')",
    );
    until("the gap is reported", || status.gaps() == 2).await;
    assert_eq!(sink.gaps(), [["*"], ["*"]]);
    until("the source reads again", || status.connections() == 2).await;
    source.abort();
}
