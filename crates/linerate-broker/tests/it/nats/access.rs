//! Tests of authentication and TLS.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use linerate_broker::{Broker, BrokerError, BrokerOptions, LinkState, Nats};

use tempfile::TempDir;

use super::NatsServer;
use crate::{
    contract::{DURABLE, PLAIN, name, publish},
    recorder::Recorder,
};

fn url(server: &NatsServer, user: &str) -> String {
    server.url().replace("//", &format!("//{user}"))
}

async fn works(url: &str, options: BrokerOptions) {
    let recorder = Recorder::new();
    let nats = Nats::new(url, options, Arc::clone(&recorder) as Arc<_>).unwrap();
    recorder.link(true).await;
    for options in [PLAIN, DURABLE] {
        let channel = name(if options.is_durable {
            "durable"
        } else {
            "plain"
        });
        nats.subscribe(&channel, options).await.unwrap();
        nats.publish(&channel, publish("x", options)).await.unwrap();
        recorder.payloads(channel.as_str(), 1).await;
    }
}

/// Returns the error of a node that cannot connect.
async fn refused(url: &str) -> String {
    let options = BrokerOptions {
        command_timeout: Duration::from_secs(3),
        ..BrokerOptions::default()
    };
    let nats = Nats::new(url, options, Recorder::new()).unwrap();
    let error = nats.subscribe(&name("plain"), PLAIN).await.unwrap_err();
    assert_eq!(nats.link(), LinkState::Deaf);
    error.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn users_connect_with_their_password() {
    let users = "authorization { users: [{user: ada, password: \"s3cr@t\"}] }";
    let Some(server) = NatsServer::with(users) else {
        return;
    };
    works(&url(&server, "ada:s3cr%40t@"), BrokerOptions::default()).await;
    for user in ["", "ada:wr0ng@", "wr0ng@"] {
        let error = refused(&url(&server, user)).await;
        assert!(error.contains("authorization violation"), "{error}");
        assert!(!error.contains("wr0ng"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_replace_users_in_the_url() {
    let token = "authorization { token: \"t0ken\" }";
    let Some(server) = NatsServer::with(token) else {
        return;
    };
    works(&url(&server, "t0ken@"), BrokerOptions::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nkeys_connect_without_a_password() {
    let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    let public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    let keys = format!("authorization {{ users: [{{nkey: {public}}}] }}");
    let Some(server) = NatsServer::with(&keys) else {
        return;
    };
    let file = server.directory().join("seed");
    fs::write(&file, format!("{seed}\n")).unwrap();
    let url = format!("{}?nkey={}", server.url(), file.display());
    works(&url, BrokerOptions::default()).await;
}

/// A certificate for one name, and the configuration of a server that uses it.
struct Certified {
    pem: String,
    tls: String,
    file: PathBuf,
    _directory: TempDir,
}

impl Certified {
    fn new(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let pem = made.cert.pem();
        let directory = tempfile::tempdir().unwrap();
        let (file, key) = (directory.path().join("cert"), directory.path().join("key"));
        fs::write(&file, &pem).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let (cert, key) = (file.display(), key.display());
        Self {
            tls: format!("tls {{ cert_file: \"{cert}\", key_file: \"{key}\" }}"),
            pem,
            file,
            _directory: directory,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_used_and_authorities_are_checked() {
    let certified = Certified::new("127.0.0.1");
    let Some(server) = NatsServer::with(&certified.tls) else {
        return;
    };
    let secure = server.url().replace("nats://", "tls://");
    let options = BrokerOptions {
        tls_authorities: Some(certified.pem.into_bytes()),
        ..BrokerOptions::default()
    };
    works(&secure, options.clone()).await;
    // The server requires TLS, regardless of the URL.
    works(&server.url(), options).await;
    let trusting = format!("{secure}?tls_ca={}", certified.file.display());
    works(&trusting, BrokerOptions::default()).await;
    let error = refused(&secure).await;
    assert!(error.contains("certificate"), "{error}");
}

/// We know a server by one name. It announces another name, and has a certificate for that one.
#[tokio::test(flavor = "multi_thread")]
async fn t09_a_certificate_is_checked_for_the_configured_name_not_the_announced_one() {
    let certified = Certified::new("evil.test");
    let says = "server_name: \"evil.test\"\nclient_advertise: \"evil.test:4222\"\n";
    let Some(server) = NatsServer::with(&format!("{says}{}", certified.tls)) else {
        return;
    };
    for url in [server.url(), server.url().replace("nats://", "tls://")] {
        let error = refused(&format!("{url}?tls_ca={}", certified.file.display())).await;
        assert!(error.contains("certificate"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_without_permission_are_refused() {
    let rules = "authorization { users: [{user: a, password: b, permissions: {
        publish: {deny: \"secret.>\"}, subscribe: {deny: \"secret.>\"} }}] }";
    let Some(server) = NatsServer::with(rules) else {
        return;
    };
    let recorder = Recorder::new();
    let ingest = Arc::clone(&recorder) as Arc<_>;
    let nats = Nats::new(&url(&server, "a:b@"), BrokerOptions::default(), ingest).unwrap();
    recorder.link(true).await;
    let channel = name("secret.plans");
    let refused = nats.publish(&channel, publish("x", PLAIN)).await;
    assert!(
        matches!(refused, Err(BrokerError::Refused { .. })),
        "{refused:?}"
    );
    for _ in 0..2 {
        let refused = nats.subscribe(&channel, PLAIN).await;
        assert!(
            matches!(refused, Err(BrokerError::Refused { .. })),
            "{refused:?}"
        );
    }
    nats.subscribe(&name("open"), PLAIN).await.unwrap();
    nats.publish(&name("open"), publish("x", PLAIN))
        .await
        .unwrap();
    recorder.payloads("open", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_jetstream_serves_only_plain_channels() {
    let accounts = "accounts { A { users: [{user: a, password: b}] } }";
    let Some(server) = NatsServer::with(accounts) else {
        return;
    };
    let recorder = Recorder::new();
    let ingest = Arc::clone(&recorder) as Arc<_>;
    let nats = Nats::new(&url(&server, "a:b@"), BrokerOptions::default(), ingest).unwrap();
    recorder.link(true).await;
    nats.subscribe(&name("plain"), PLAIN).await.unwrap();
    nats.publish(&name("plain"), publish("x", PLAIN))
        .await
        .unwrap();
    recorder.payloads("plain", 1).await;
    let refused = nats.subscribe(&name("durable"), DURABLE).await.unwrap_err();
    assert!(refused.to_string().contains("JetStream"), "{refused}");
}
