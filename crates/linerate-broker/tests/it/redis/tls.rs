//! Tests of Redis over TLS, with certificates of our own CA.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use linerate_broker::{Broker, BrokerOptions, LinkState, Redis};
use linerate_testkit::server::RedisServer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use crate::{
    contract::{PLAIN, Service, live, name, service as nodes},
    recorder::Recorder,
};

/// A server with a certificate, and the CA that signed it.
struct Encrypted {
    server: RedisServer,
    authority: String,
    _directory: TempDir,
}

impl Encrypted {
    fn start(host: &str) -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(authority, key).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([host.to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &authority).unwrap();
        let file = |name: &str, text: String| -> PathBuf {
            let file = directory.path().join(name);
            fs::write(&file, text).unwrap();
            file
        };
        let certificate = file("certificate.pem", certificate.pem());
        let key = file("key.pem", key.serialize_pem());
        Some(Self {
            server: RedisServer::start_tls(&certificate, &key)?,
            authority: authority.pem(),
            _directory: directory,
        })
    }

    fn options(&self, options: BrokerOptions) -> BrokerOptions {
        BrokerOptions {
            tls_authorities: Some(self.authority.clone().into_bytes()),
            ..options
        }
    }

    fn url(&self) -> String {
        format!("rediss://{}", self.server.address())
    }
}

impl Service for Encrypted {
    const IS_SHARED: bool = true;
    const PATTERN: (&'static str, &'static str, &'static str) = ("a*", "ab", "b");

    async fn node(&self, options: BrokerOptions, recorder: Arc<Recorder>) -> Arc<dyn Broker> {
        let options = self.options(options);
        Arc::new(Redis::new(&self.url(), options, recorder).unwrap())
    }
}

#[tokio::test]
async fn everything_goes_through_tls() {
    let Some(service) = Encrypted::start("127.0.0.1") else {
        return;
    };
    live::payloads_arrive_byte_for_byte(&service).await;
    live::patterns_deliver_what_matches_and_say_where_it_came_from(&service).await;
    nodes::control_messages_reach_all_nodes(&service).await;
}

#[tokio::test]
async fn a_certificate_of_an_untrusted_authority_is_refused() {
    let (Some(service), Some(other)) =
        (Encrypted::start("127.0.0.1"), Encrypted::start("127.0.0.1"))
    else {
        return;
    };
    refused(&service.url(), other.options(impatient())).await;
}

#[tokio::test]
async fn a_certificate_of_another_host_is_refused() {
    let Some(service) = Encrypted::start("redis.example") else {
        return;
    };
    refused(&service.url(), service.options(impatient())).await;
}

fn impatient() -> BrokerOptions {
    BrokerOptions {
        command_timeout: Duration::from_secs(1),
        ..BrokerOptions::default()
    }
}

async fn refused(url: &str, options: BrokerOptions) {
    let redis = Redis::new(url, options, Recorder::new()).unwrap();
    let subscribed = redis.subscribe(&name("a"), PLAIN).await;
    let error = subscribed.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    assert_eq!(redis.link(), LinkState::Deaf);
}
