//! How the HTTP version is chosen.

use std::{future::poll_fn, sync::Arc};

use linerate::{
    Client, Server,
    handshake::HttpVersion,
    tls::{self, rustls},
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{RootCertStore, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::{client, wire};
use crate::{
    raw::{ACCEPTED, REQUEST, Raw, in_time},
    support::Running,
};

/// Returns a server that reports the HTTP version of each WebSocket, and a client that trusts it.
async fn telling(server: impl FnOnce(Server) -> Server) -> (Running, Client) {
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let config = tls::server_config(vec![cert.der().clone()], key).unwrap();
    let server = server(Server::new().with_tls(Arc::new(config)));
    let client = Client::new().with_tls(Arc::new(tls::client_config(roots)));
    (tell(server).await, client)
}

async fn tell(server: Server) -> Running {
    Running::start(server, |mut ws, request| async move {
        ws.send(format!("{:?}", request.version())).await?;
        while ws.recv().await?.is_some() {}
        Ok(())
    })
    .await
}

/// Returns the HTTP version that a client used.
async fn told(client: &Client, url: &str) -> String {
    let mut ws = in_time(client.connect(url)).await.unwrap();
    let told = in_time(ws.recv()).await.unwrap().unwrap();
    told.as_text().unwrap().to_owned()
}

const HTTP1: &str = "Http11";
const HTTP2: &str = "Http2";

#[tokio::test]
async fn one_port_speaks_both_in_the_clear() {
    assert_eq!(format!("{:?}", HttpVersion::Http2), HTTP2);
    let server = tell(Server::new()).await;
    assert_eq!(told(&client(), &server.url()).await, HTTP2);
    assert_eq!(told(&Client::new(), &server.url()).await, HTTP1);
    // Without TLS, the version is not negotiated.
    assert_eq!(
        told(&Client::new().with_http2(), &server.url()).await,
        HTTP1
    );
    server.stop().await;
}

#[tokio::test]
async fn t05_alpn_decides_over_tls() {
    let (server, client) = telling(|server| server).await;
    let url = format!("wss://localhost:{}/", server.address.port());
    assert_eq!(told(&client, &url).await, HTTP1);
    assert_eq!(told(&client.clone().with_http2(), &url).await, HTTP2);
    let insisting = client.clone().with_http2_prior_knowledge();
    assert_eq!(told(&insisting, &url).await, HTTP2);
    server.stop().await;

    let (server, client) = telling(Server::without_http2).await;
    let url = format!("wss://localhost:{}/", server.address.port());
    assert_eq!(told(&client.with_http2(), &url).await, HTTP1);
    server.stop().await;
}

#[tokio::test]
async fn a_preface_may_come_in_pieces() {
    let server = tell(Server::new()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let settings = wire::frame(wire::SETTINGS, 0, 0, b"");
    for byte in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings].concat() {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut head = [0; 9];
    in_time(stream.read_exact(&mut head)).await.unwrap();
    assert_eq!(head[3], wire::SETTINGS);

    let mut raw = Raw::connect(server.address).await;
    for byte in REQUEST.bytes() {
        raw.send([byte]).await;
    }
    assert_eq!(raw.head().await, ACCEPTED);
    server.abort();
}

#[tokio::test]
async fn h20_a_server_without_http2_says_so() {
    let server = tell(Server::new().without_http2()).await;
    let mut raw = Raw::connect(server.address).await;
    raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    let answer = String::from_utf8(raw.rest().await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
        "{answer}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_client_falls_back_where_the_setting_is_absent() {
    let server = tell(Server::new()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let (requests, mut requested) = mpsc::unbounded_channel();
    let proxy = tokio::spawn(async move {
        // The first connection reaches a server that supports HTTP/2, but not WebSockets over it.
        let (stream, _) = listener.accept().await.unwrap();
        let mut other = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, _))) = poll_fn(|cx| other.poll_accept(cx)).await {
            requests.send(request.method().clone()).unwrap();
        }
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut real = TcpStream::connect(server.address).await.unwrap();
        _ = copy_bidirectional(&mut stream, &mut real).await;
        server.abort();
    });
    assert_eq!(told(&client(), &url).await, HTTP1);
    in_time(proxy).await.unwrap();
    assert!(requested.try_recv().is_err(), "the client opened a stream");
}
