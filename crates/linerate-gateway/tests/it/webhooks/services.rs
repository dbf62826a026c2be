//! Events are appended to a Redis Stream, or published on a NATS subject.

use std::{collections::HashMap, time::Duration};

use async_nats::jetstream::{self, stream::Config as StreamConfig};
use futures_util::StreamExt;
use linerate_testkit::server::{RedisServer, ServerProcess, free_port};
use serde_json::Value;
use tokio::time::sleep;

use super::metric;
use crate::support::{Gateway, Json, config, in_time};

/// Starts a NATS server with JetStream, or without; `None` if NATS is not installed.
pub(super) fn nats(with_jetstream: bool) -> Option<ServerProcess> {
    start_nats(with_jetstream, &[])
}

fn start_nats(with_jetstream: bool, more: &[&str]) -> Option<ServerProcess> {
    let port = free_port();
    let program = std::env::var("NATS_SERVER_BIN").unwrap_or_else(|_| "nats-server".to_owned());
    ServerProcess::start(&program, port, |directory| {
        let (port, store) = (port.to_string(), directory.join("js").display().to_string());
        let mut arguments = vec!["-a", "127.0.0.1", "-p", &port];
        if with_jetstream {
            arguments.extend(["-js", "-sd", &store]);
        }
        arguments.extend(more);
        arguments.into_iter().map(str::to_owned).collect()
    })
}

fn webhook(url: &str, more: &str) -> String {
    format!(
        "[[webhook]]\nname = \"app\"\nurl = \"{url}\"\nbatch_delay_ms = 10\ntimeout_ms = 2000\n\
         retry_pause_max_ms = 200\n{more}\n"
    )
}

/// Connects a client, subscribes it and lets it leave.
async fn visit(gateway: &Gateway) {
    let mut client = Json::connect(gateway).await;
    client.subscribe("news").await;
}

const VISIT: [&str; 4] = ["connected", "subscribed", "unsubscribed", "disconnected"];

/// Returns the entries of a stream once there are this many.
async fn entries(redis: &RedisServer, count: usize) -> Vec<(String, String, Value)> {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    in_time(async {
        loop {
            let range = redis::cmd("XRANGE").arg(&["events", "-", "+"]).to_owned();
            let found: Vec<(String, HashMap<String, String>)> =
                range.query_async(&mut connection).await.unwrap();
            if found.len() >= count {
                let read = |(_, fields): &(String, HashMap<String, String>)| {
                    let data = serde_json::from_str(&fields["data"]).unwrap();
                    (fields["id"].clone(), fields["event"].clone(), data)
                };
                return found.iter().map(read).collect();
            }
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_appended_to_a_redis_stream() {
    let Some(mut redis) = RedisServer::start() else {
        return;
    };
    let toml = webhook(&redis.url(), "stream = \"events\"");
    let gateway = Gateway::start(config(&toml)).await;
    visit(&gateway).await;
    let found = entries(&redis, 4).await;
    let kinds: Vec<_> = found.iter().map(|(_, kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, VISIT);
    assert_eq!(found[1].2["channel"], "news");
    assert_eq!(found[1].2["event"], "subscribed");
    assert!(found[3].0.ends_with("_4"), "{}", found[3].0);

    // The server is away, and what happens in the meantime is appended later.
    redis.kill();
    visit(&gateway).await;
    sleep(Duration::from_millis(500)).await;
    redis.restart();
    let found = entries(&redis, 4).await;
    let numbers: Vec<_> = found
        .iter()
        .map(|(_, _, data)| data["seq"].as_u64())
        .collect();
    assert_eq!(numbers, [5, 6, 7, 8].map(Some));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_stream_keeps_about_as_many_entries_as_configured() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let toml = webhook(&redis.url(), "stream = \"events\"\nstream_length_max = 100");
    let gateway = Gateway::start(config(&toml)).await;
    for _ in 0..150 {
        visit(&gateway).await;
    }
    in_time(async {
        loop {
            let found = entries(&redis, 1).await;
            if found.last().is_some_and(|(_, _, data)| data["seq"] == 600) {
                // Redis removes whole nodes of 100 entries.
                assert!(found.len() < 300, "{}", found.len());
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_published_on_a_nats_subject() {
    for with_jetstream in [true, false] {
        let Some(nats) = nats(with_jetstream) else {
            return;
        };
        let url = format!("nats://{}", nats.address());
        let client = async_nats::connect(&url).await.unwrap();
        let mut messages = client.subscribe("app.events").await.unwrap();
        client.flush().await.unwrap();
        let gateway = Gateway::start(config(&webhook(&url, "subject = \"app.events\""))).await;
        visit(&gateway).await;
        for kind in VISIT {
            let message = in_time(messages.next()).await.unwrap();
            let headers = message.headers.unwrap();
            assert_eq!(headers.get("Linerate-Event").unwrap().as_str(), kind);
            let data: Value = serde_json::from_slice(&message.payload).unwrap();
            assert_eq!(data["event"], kind);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_jetstream_stores_each_event_once() {
    let Some(mut nats) = nats(true) else {
        return;
    };
    let url = format!("nats://{}", nats.address());
    let context = async || jetstream::new(async_nats::connect(&url).await.unwrap());
    let stream = StreamConfig {
        name: "app".to_owned(),
        subjects: vec!["app.>".to_owned()],
        ..StreamConfig::default()
    };
    context().await.create_stream(stream).await.unwrap();
    let gateway = Gateway::start(config(&webhook(&url, "subject = \"app.events\""))).await;
    let stored = async |count: u64| {
        in_time(async {
            loop {
                let stream = context().await.get_stream("app").await.unwrap();
                if stream.cached_info().state.messages >= count {
                    return stream;
                }
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await
    };
    visit(&gateway).await;
    stored(4).await;
    // The server is away, and what happens in the meantime is stored later.
    nats.kill();
    visit(&gateway).await;
    sleep(Duration::from_millis(500)).await;
    nats.restart();
    let stream = stored(8).await;
    for number in 1..=8 {
        let message = stream.get_raw_message(number).await.unwrap();
        let data: Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(data["seq"], number);
        let id = message.headers.get("Nats-Msg-Id").unwrap().as_str();
        assert!(id.ends_with(&format!("_{number}")), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_server_is_trusted_only_with_the_certificate_of_the_webhook() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (certificate, key, other) = (path("a.pem"), path("a-key.pem"), path("b.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&other, stranger.cert.pem()).unwrap();
    let Some(redis) = RedisServer::start_tls(&certificate, &key) else {
        return;
    };
    // The URL is in a file, as one with a password would be.
    let url = path("url");
    std::fs::write(&url, format!("rediss://localhost:{}\n", redis.port())).unwrap();
    let with = |authorities: &std::path::Path| {
        let more = format!(
            "stream = \"events\"\ntls_authorities = \"{}\"",
            authorities.display()
        );
        config(&webhook(&format!("file:{}", url.display()), &more))
    };
    let gateway = Gateway::start(with(&other)).await;
    visit(&gateway).await;
    in_time(async {
        while metric(&gateway, "retries_total").await < 2.0 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(metric(&gateway, "delivered_total").await, 0.0);
    gateway.reload(with(&certificate));
    visit(&gateway).await;
    in_time(async {
        while metric(&gateway, "delivered_total").await < 4.0 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nats_server_is_given_the_login_in_the_url() {
    let Some(nats) = start_nats(true, &["--user", "linerate", "--pass", "hunter2"]) else {
        return;
    };
    let at = |login: &str| format!("nats://{login}{}", nats.address());
    let (name, password) = ("linerate".to_owned(), "hunter2".to_owned());
    let options = async_nats::ConnectOptions::with_user_and_password(name, password);
    let client = options.connect(at("")).await.unwrap();
    let mut messages = client.subscribe("app.events").await.unwrap();
    client.flush().await.unwrap();
    let with = |login: &str| config(&webhook(&at(login), "subject = \"app.events\""));
    let gateway = Gateway::start(with("linerate:wrong@")).await;
    visit(&gateway).await;
    in_time(async {
        while metric(&gateway, "retries_total").await < 2.0 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    gateway.reload(with("linerate:hunter2@"));
    visit(&gateway).await;
    for kind in VISIT {
        let message = in_time(messages.next()).await.unwrap();
        let data: Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(data["event"], kind);
    }
}
