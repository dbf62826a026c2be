//! Redirects: off by default, bounded, never to a weaker scheme, and without credentials to other
//! hosts.

use linerate::{
    Client, Error,
    dial::{DialError, RedirectError},
};
use tokio::{net::TcpListener, sync::mpsc};

use crate::{
    raw::{Raw, in_time},
    support::Running,
};

/// A server that answers each request with a redirect, and reports the requests.
async fn redirecting(location: impl Into<String>) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let location = location.into();
    let (asked, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut raw = Raw::new(stream);
            _ = asked.send(raw.head().await);
            let answer = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n");
            raw.send(answer).await;
        }
    });
    (url, requests)
}

async fn refusal(client: &Client, url: &str) -> RedirectError {
    match in_time(client.connect(url)).await.unwrap_err() {
        Error::Dial(DialError::Redirect(error)) => error,
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn c01_no_redirect_is_followed_unless_asked_for() {
    let server = Running::echo().await;
    let (url, _requests) = redirecting(server.url()).await;
    let error = linerate::connect(&url).await.unwrap_err();
    assert!(
        matches!(&error, Error::StatusUnexpected(response) if response.status == 302),
        "{error}"
    );
    assert!(!error.is_transient());
    let client = Client::new().with_redirects_max(1);
    let mut ws = in_time(client.connect(&url)).await.unwrap();
    ws.send("Spam").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn c01_a_loop_of_redirects_ends_at_the_limit() {
    let (url, mut requests) = redirecting("/again").await;
    let client = Client::new().with_redirects_max(3);
    assert_eq!(
        refusal(&client, &url).await,
        RedirectError::TooMany {
            redirects: 4,
            redirects_max: 3
        }
    );
    requests.close();
    let mut lines = Vec::new();
    while let Some(request) = requests.recv().await {
        lines.push(request.lines().next().unwrap().to_owned());
    }
    let again = "GET /again HTTP/1.1";
    assert_eq!(lines, ["GET / HTTP/1.1", again, again, again]);
}

#[tokio::test]
async fn c01_another_origin_is_not_told_who_we_are() {
    let (other, mut told_other) = redirecting("ftp://nowhere/").await;
    let (url, mut told_first) = redirecting(other).await;
    let client = Client::new()
        .with_redirects_max(5)
        .with_subprotocol("chat")
        .with_header("Authorization", "Bearer secret")
        .with_header("X-Api-Key", "secret")
        .with_cookie("id", "secret")
        .unwrap();
    let url = url.replace("ws://", "ws://user:secret@");
    assert_eq!(refusal(&client, &url).await, RedirectError::LocationInvalid);
    let first = told_first.recv().await.unwrap();
    assert_eq!(first.matches("secret").count(), 3, "{first}");
    let other = told_other.recv().await.unwrap();
    assert!(!other.contains("secret"), "{other}");
    for absent in ["Authorization", "Cookie", "X-Api-Key"] {
        assert!(!other.contains(absent), "{other}");
    }
    assert!(other.contains("\r\nSec-WebSocket-Protocol: chat\r\n"));
}

#[tokio::test]
async fn c01_the_same_origin_is_told_who_we_are_again() {
    let (url, mut requests) = redirecting("/again").await;
    let client = Client::new()
        .with_redirects_max(1)
        .with_header("Authorization", "Bearer secret");
    refusal(&client, &url).await;
    for _ in 0..2 {
        assert!(requests.recv().await.unwrap().contains("Bearer secret"));
    }
}

#[tokio::test]
async fn c06_where_a_redirect_leads_is_checked_too() {
    let (url, _requests) = redirecting("ws://127.0.0.2:1/").await;
    let client = Client::new()
        .with_redirects_max(1)
        .with_address_check(|address| address.to_string() == "127.0.0.1");
    let error = in_time(client.connect(&url)).await.unwrap_err();
    assert!(
        matches!(error, Error::Dial(DialError::AddressesDenied { .. })),
        "{error}"
    );
}
