//! Tests of `--http1`, `--http2` and `--http3`.

use std::{process::Output, sync::Arc};

use linerate::{Request, Result, WebSocket, handshake::HttpVersion, tls};
use linerate_testkit::server::free_port;

use super::{connect, serve, text};
use crate::support::Server;

const VERSIONS: [(&str, HttpVersion); 3] = [
    ("--http1", HttpVersion::Http11),
    ("--http2", HttpVersion::Http2),
    ("--http3", HttpVersion::Http3),
];

/// Sends the HTTP version of the request as a message.
async fn tell(mut ws: WebSocket, request: Request) -> Result<()> {
    ws.send(format!("{:?}", request.version())).await
}

fn told(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn each_version_is_spoken_if_asked_for() {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key =
        tls::rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der());
    let chain = vec![certified.cert.der().clone()];
    let config = tls::server_config(chain, key.unwrap()).unwrap();
    let server = linerate::Server::new().with_tls(Arc::new(config));
    let (port, stop) = serve(server.clone(), tell).await;
    // UDP ports are independent of TCP ports, so this one is most likely free.
    let socket = std::net::UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let http3 = tokio::spawn(server.serve_http3(socket, tell, std::future::pending()));
    let url = format!("wss://localhost:{port}/");
    for (flag, version) in VERSIONS {
        let output = connect(&[&url, flag, "--tls-insecure", "--no-proxy"], b"").await;
        assert_eq!(told(&output), format!("{version:?}"));
    }
    let output = connect(&[&url, "--tls-insecure", "--no-proxy"], b"").await;
    assert_eq!(told(&output), "Http11", "by default");
    http3.abort();
    drop(stop);
}

#[tokio::test]
async fn in_the_clear_http2_needs_no_agreement_and_http3_is_not_there() {
    let (port, stop) = serve(linerate::Server::new(), tell).await;
    let url = format!("ws://127.0.0.1:{port}/");
    for (flag, version) in &VERSIONS[..2] {
        let output = connect(&[&url, flag], b"").await;
        assert_eq!(told(&output), format!("{version:?}"));
    }
    let refused = connect(&[&url, "--http3"], b"").await;
    assert_eq!(refused.status.code(), Some(1));
    let complaint = text(&refused.stderr);
    assert!(complaint.contains("HTTP/3 requires TLS"), "{complaint}");
    let both = connect(&[&url, "--http1", "--http2"], b"").await;
    assert_eq!(both.status.code(), Some(2));
    drop(stop);
}

#[tokio::test]
async fn echo_speaks_http3_beside_the_others() {
    let server = Server::start_verb("echo", &["--tls-self-signed", "--http3"]);
    let url = format!("wss://{}/any/path", server.address);
    for (flag, _) in VERSIONS {
        let arguments = [&url, flag, "--tls-insecure", "--no-proxy"];
        let output = connect(&arguments, "größer €\n".as_bytes()).await;
        assert_eq!(told(&output), "größer €", "{flag}");
    }
    let distrusted = connect(&[&url, "--http3", "--no-proxy"], b"").await;
    assert_eq!(distrusted.status.code(), Some(1));
    let complaint = text(&distrusted.stderr);
    assert!(complaint.contains("certificate"), "{complaint}");

    let nobody = format!("wss://127.0.0.1:{}/", free_port());
    let flags = [
        "--http3",
        "--no-proxy",
        "--timeout",
        "0.5",
        "--tls-insecure",
    ];
    let unreachable = connect(&[&[&*nobody][..], &flags[..]].concat(), b"").await;
    assert_eq!(unreachable.status.code(), Some(1));
    let complaint = text(&unreachable.stderr);
    assert!(complaint.contains("limit is 500ms"), "{complaint}");
}
