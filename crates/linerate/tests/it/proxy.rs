//! Connections through proxies: tinyproxy, microsocks, and our own proxies that misbehave.

use std::{net::SocketAddr, time::Duration};

use linerate::{
    Client, Error,
    dial::{DialError, Phase, Proxy, ProxyError, Timeouts},
    handshake::HandshakeError,
};
use linerate_testkit::server::{ServerProcess, free_port};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{raw::in_time, support::Running};

/// Starts an HTTP proxy that requires authentication.
fn tinyproxy() -> Option<ServerProcess> {
    let port = free_port();
    ServerProcess::start("tinyproxy", port, |directory| {
        let file = directory.join("tinyproxy.conf");
        let config = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 60\nBasicAuth user pass\nAllow 127.0.0.1\n"
        );
        std::fs::write(&file, config).unwrap();
        ["-d", "-c", file.to_str().unwrap()]
            .map(str::to_owned)
            .into()
    })
}

/// Starts a SOCKS5 proxy that requires authentication.
fn microsocks() -> Option<ServerProcess> {
    let port = free_port();
    ServerProcess::start("microsocks", port, |_| {
        let arguments = format!("-i 127.0.0.1 -p {port} -u user -P pass");
        arguments.split(' ').map(str::to_owned).collect()
    })
}

fn through(proxy: &str) -> Client {
    let proxy: Proxy = proxy.parse().unwrap();
    Client::new().with_proxy(proxy)
}

async fn assert_echoes(client: &Client, url: &str) {
    let mut ws = in_time(client.connect(url)).await.unwrap();
    let message = vec![7; 100_000];
    ws.send(message.clone()).await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some(message.into()));
    let closed = in_time(ws.close(linerate::CloseCode::NORMAL, "")).await;
    assert!(closed.unwrap().clean);
}

async fn refusal(client: &Client, url: &str) -> ProxyError {
    match in_time(client.connect(url)).await.unwrap_err() {
        Error::Dial(DialError::Proxy(error)) => error,
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn an_http_proxy_is_asked_for_a_tunnel() {
    let Some(proxy) = tinyproxy() else { return };
    let server = Running::echo().await;
    let port = server.address.port();
    let client = through(&format!("http://user:pass@{}", proxy.address()));
    // The proxy resolves the second name.
    for url in [server.url(), format!("ws://localhost:{port}/")] {
        assert_echoes(&client, &url).await;
    }
    for wrong in ["", "user:wrong@"] {
        let client = through(&format!("{wrong}{}", proxy.address()));
        let error = refusal(&client, &server.url()).await;
        assert!(
            matches!(
                error,
                ProxyError::CredentialsWanted
                    | ProxyError::Http(HandshakeError::StatusUnexpected { status: 401 })
            ),
            "{error}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn an_http_proxy_that_cannot_connect_says_so() {
    let Some(proxy) = tinyproxy() else { return };
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", nobody.local_addr().unwrap());
    drop(nobody);
    let client = through(&format!("http://user:pass@{}", proxy.address()));
    let error = refusal(&client, &url).await;
    assert!(
        matches!(
            error,
            ProxyError::Http(HandshakeError::StatusUnexpected { status: 500.. })
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_socks_proxy_is_asked_by_address_or_by_name() {
    let Some(proxy) = microsocks() else { return };
    let server = Running::echo().await;
    let port = server.address.port();
    for scheme in ["socks5", "socks5h"] {
        let client = through(&format!("{scheme}://user:pass@{}", proxy.address()));
        for url in [server.url(), format!("ws://localhost:{port}/")] {
            assert_echoes(&client, &url).await;
        }
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", nobody.local_addr().unwrap());
        drop(nobody);
        let error = refusal(&client, &url).await;
        assert!(matches!(error, ProxyError::SocksRefused { .. }), "{error}");
    }
    let client = through(&format!("socks5://{}", proxy.address()));
    let error = refusal(&client, &server.url()).await;
    assert!(matches!(error, ProxyError::CredentialsWanted), "{error}");
    let client = through(&format!("socks5://user:wrong@{}", proxy.address()));
    let error = refusal(&client, &server.url()).await;
    assert!(matches!(error, ProxyError::CredentialsRefused), "{error}");
    server.stop().await;
}

/// A proxy that sends `answer` to every request, and then waits for the client to close the
/// connection. Returns the request.
async fn answering(answer: &'static [u8]) -> (SocketAddr, tokio::task::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut asked).await.unwrap(), 0);
        }
        stream.write_all(answer).await.unwrap();
        _ = stream.read_to_end(&mut Vec::new()).await;
        asked
    });
    (address, task)
}

#[tokio::test]
async fn what_comes_before_the_server_was_asked_is_not_taken_for_the_server() {
    let (address, task) = answering(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 101 ").await;
    let client = through(&address.to_string());
    let error = refusal(&client, "ws://example.com/").await;
    assert!(
        matches!(error, ProxyError::DataUnexpected { bytes: 13 }),
        "{error}"
    );
    let asked = in_time(task).await.unwrap();
    let expected = b"CONNECT example.com:80 HTTP/1.1\r\nHost: example.com:80\r\n\r\n";
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn a_proxy_that_wants_credentials_is_told_apart() {
    let answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
    let (address, task) = answering(answer).await;
    let client = through(&format!("us%20er:p%3Ass@{address}"));
    let error = refusal(&client, "wss://example.com/").await;
    assert!(matches!(error, ProxyError::CredentialsWanted), "{error}");
    let asked = String::from_utf8(in_time(task).await.unwrap()).unwrap();
    // "us er:p:ss" in base64.
    let header = "\r\nProxy-Authorization: Basic dXMgZXI6cDpzcw==\r\n";
    assert!(asked.contains(header), "{asked}");
    assert!(asked.starts_with("CONNECT example.com:443 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_proxy_that_is_silent_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    for scheme in ["http", "socks5h"] {
        let mut timeouts = Timeouts::default();
        timeouts.proxy = Duration::from_millis(50);
        let client = through(&format!("{scheme}://{address}")).with_timeouts(timeouts);
        let error = in_time(client.connect("ws://example.com/"))
            .await
            .unwrap_err();
        let Error::Dial(DialError::TimedOut { phase, limit, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!((phase, limit), (Phase::Proxy, timeouts.proxy));
    }
}

#[tokio::test]
async fn c06_addresses_are_checked_although_the_proxy_could_resolve_names() {
    let (address, task) = answering(b"HTTP/1.1 403 No\r\n\r\n").await;
    let client = through(&address.to_string()).with_address_check(|address| !address.is_loopback());
    for url in ["ws://localhost/", "ws://127.0.0.1/"] {
        let error = in_time(client.connect(url)).await.unwrap_err();
        assert!(
            matches!(error, Error::Dial(DialError::AddressesDenied { .. })),
            "{error}"
        );
    }
    // The client sends an address to the proxy, so that the proxy cannot choose another one.
    let client = client.with_address_check(|address| address.is_loopback() && address.is_ipv4());
    let error = refusal(&client, "ws://localhost/").await;
    assert!(matches!(error, ProxyError::Http(_)), "{error}");
    let asked = in_time(task).await.unwrap();
    assert!(asked.starts_with(b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n"));
}

/// Answers CONNECT, and forwards bytes for as long as its listener lives.
async fn forward<S>(mut stream: S)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut asked).await.unwrap(), 0);
    }
    let asked = String::from_utf8(asked).unwrap();
    let destination = asked.split(' ').nth(1).unwrap();
    let mut server = TcpStream::connect(destination).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
}

#[cfg(feature = "rustls")]
#[tokio::test]
async fn tls_goes_through_a_proxy_over_tls_and_names_are_checked_at_both() {
    use std::sync::Arc;

    use crate::tls::{certificate, secure};
    use linerate::tls;

    let (proxy_config, roots) = certificate("proxy.test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(proxy_config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                tokio::spawn(forward(stream));
            }
        }
    });
    let (server, client) = secure(Default::default()).await;
    let trusting = |name: &str| {
        let proxy: Proxy = format!("https://{name}:{}", proxy.port()).parse().unwrap();
        proxy.with_tls(Arc::new(tls::client_config(roots.clone())))
    };
    let client = client.with_resolver(crate::dial::Fixed(vec![proxy]));
    let url = format!("wss://localhost:{}/", server.address.port());
    assert_echoes(&client.clone().with_proxy(trusting("proxy.test")), &url).await;
    let error = refusal(&client.with_proxy(trusting("other.test")), &url).await;
    assert!(error.to_string().contains("not valid for name"), "{error}");
    server.stop().await;
}
