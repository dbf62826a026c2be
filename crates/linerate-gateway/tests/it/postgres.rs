//! Changes of a real Postgres server reach clients.

use linerate::Client;
use linerate_testkit::server::PostgresServer;
use serde_json::{Value, json};

use crate::support::{Gateway, Json, config, message};

const TABLES: &str = "CREATE TABLE outbox (id serial PRIMARY KEY, channel text, payload jsonb);
    CREATE PUBLICATION linerate FOR TABLE outbox;";

/// Channels with a history that outlives the node's own, as far as the embedded broker has one.
const DURABLE: &str =
    "[channel]\nhistory_size = 100\nhistory_ttl_s = 600\nrecover = true\npositioned = true\n";

fn source(server: &PostgresServer, rest: &str) -> String {
    format!(
        "[[postgres]]\nname = \"shop\"\nurl = \"{}\"\n{rest}",
        server.url()
    )
}

fn outbox(server: &PostgresServer) -> String {
    let table = "[[postgres.table]]\nname = \"public.outbox\"\nchannel = \"{channel}\"\npayload = \"payload\"";
    format!("{DURABLE}{}", source(server, table))
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_outbox_reach_subscribers_and_a_reload_adds_and_removes_the_source() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    server.sql(TABLES);
    let gateway = Gateway::open(&outbox(&server)).await;
    gateway.wait_for_source("reading", "1.0").await;
    let mut client = gateway.raw(&Client::new(), "channel=orders:7").await;
    let insert = |number: u32| {
        let sql = "INSERT INTO outbox (channel, payload) VALUES ('orders:7', '";
        server.sql(&format!("{sql}{{\"number\": {number}}}')"));
    };
    insert(1);
    let text = message(&mut client).await;
    assert_eq!(text.as_text(), Some("{\"number\":1}"));
    gateway.reload(config(DURABLE));
    insert(2);
    assert_eq!(gateway.source_metric("reading").await, None);
    gateway.reload(config(&outbox(&server)));
    insert(3);
    for expected in ["{\"number\":2}", "{\"number\":3}"] {
        assert_eq!(message(&mut client).await.as_text(), Some(expected));
    }
    assert_eq!(gateway.source_metric("refused_total").await.unwrap(), "0.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_are_told_when_the_slot_was_dropped() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    server.sql(TABLES);
    let gateway = Gateway::open(&outbox(&server)).await;
    gateway.wait_for_source("reading", "1.0").await;
    let mut client = Json::connect(&gateway).await;
    let first = client.subscribe("orders:7").await["subscribe"].clone();
    server.sql(
        "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots;
        SELECT pg_drop_replication_slot('linerate')",
    );
    let push = client.next().await;
    assert_eq!(push["push"]["unsubscribe"]["code"], 2500, "{push}");
    gateway.wait_for_source("gaps_total", "2.0").await;
    // SDKs do this automatically. The stream is complete, but what was lost is not in it.
    let recover = async |position: &Value| {
        let (epoch, offset) = (&position["epoch"], position["offset"].as_u64().unwrap_or(0));
        let command = json!({"id": 3, "subscribe": {
            "channel": "orders:7", "recover": true, "epoch": epoch, "offset": offset}});
        let mut client = Json::connect(&gateway).await;
        client.ask(&command.to_string()).await["subscribe"].clone()
    };
    let missed = recover(&first).await;
    assert_eq!(missed["recovered"], Value::Null, "{missed}");
    server.sql("INSERT INTO outbox (channel, payload) VALUES ('orders:7', '1')");
    gateway.wait_for_source("published_total", "1.0").await;
    let newest = recover(&missed).await;
    assert_eq!(newest["recovered"], Value::Null, "{newest}");
    let complete = recover(&newest).await;
    assert_eq!(complete["recovered"], true, "{complete}");
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_reach_subscribers_of_the_channel_with_their_name() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let gateway = Gateway::open(&source(&server, "notifications = [\"alerts\"]")).await;
    gateway.wait_for_source("reading", "1.0").await;
    let mut client = gateway.raw(&Client::new(), "channel=alerts").await;
    server.sql("NOTIFY alerts, 'disk full'");
    assert_eq!(message(&mut client).await.as_text(), Some("disk full"));
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_verified_and_passwords_are_not_sent_in_the_clear() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let Some(server) = PostgresServer::start_tls(&certificate, &key) else {
        return;
    };
    server.sql(TABLES);
    server.sql("CREATE ROLE reader LOGIN REPLICATION PASSWORD 'secret'");
    server.require_password();
    let directory = tempfile::tempdir().unwrap();
    let authorities = directory.path().join("authorities.pem");
    std::fs::write(&authorities, certificate).unwrap();
    let port = server.port();
    let toml = |password: &str, rest: &str| {
        let url =
            format!("postgres://reader:{password}@localhost:{port}/postgres?sslmode=verify-full");
        format!("[[postgres]]\nname = \"shop\"\nurl = \"{url}\"\nmessages = true\n{rest}")
    };
    let trusted = format!("tls_authorities = {authorities:?}");
    for (password, rest) in [("secret", ""), ("wrong", &*trusted)] {
        let gateway = Gateway::open(&toml(password, rest)).await;
        gateway.wait_for_source("failed", "1.0").await;
    }
    let gateway = Gateway::open(&toml("secret", &trusted)).await;
    gateway.wait_for_source("reading", "1.0").await;
    let mut client = gateway.raw(&Client::new(), "channel=a").await;
    server.sql("SELECT pg_logical_emit_message(false, 'linerate:a', '1')");
    assert_eq!(message(&mut client).await.as_text(), Some("1"));
}

#[tokio::test]
async fn a_database_that_is_down_is_reported_and_clients_are_served() {
    let down = linerate_testkit::server::free_port();
    let source = format!(
        "[[postgres]]\nname = \"shop\"\nurl = \"postgres://u@127.0.0.1:{down}/d\"\nmessages = true"
    );
    let gateway = Gateway::open(&source).await;
    gateway.wait_for_source("failed", "1.0").await;
    let mut client = gateway.raw(&Client::new(), "channel=a").await;
    gateway.publish("a", "1").await;
    assert_eq!(message(&mut client).await.as_text(), Some("1"));
}
