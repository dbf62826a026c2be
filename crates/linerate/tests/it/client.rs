//! Clients: addresses, requests, and the responses that they refuse.

use std::time::Duration;

use linerate::{
    Client, CloseCode, Error, Options, SendError, State,
    dial::{DialError, UrlError},
    handshake::HandshakeError,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{raw::in_time, support::Running};

#[tokio::test]
async fn what_is_no_address_of_a_websocket_is_refused() {
    for (url, expected) in [
        ("http://127.0.0.1/", UrlError::Scheme),
        ("ws://127.0.0.1/#top", UrlError::Fragment),
        ("127.0.0.1", UrlError::Malformed),
    ] {
        let error = linerate::connect(url).await.unwrap_err();
        assert!(
            matches!(error, Error::Url(error) if error == expected),
            "{url}"
        );
    }
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_an_error_of_the_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = linerate::connect(&format!("ws://{address}/"))
        .await
        .unwrap_err();
    assert!(
        matches!(
            &error,
            Error::Dial(DialError::ConnectFailed { attempts }) if attempts.len() == 1
        ),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot connect to {address}: ")),
        "{text}"
    );
}

#[tokio::test]
async fn the_request_is_what_was_asked_for() {
    let (ours, mut theirs) = tokio::io::duplex(1 << 12);
    let client = Client::new()
        .with_header("Authorization", "Bearer secret")
        .with_subprotocol("chat")
        .with_origin("https://example.com".parse().unwrap());
    assert!(!format!("{client:?}").contains("secret"));
    let connecting = tokio::spawn(async move {
        let url = "ws://example.com:8080/room?name=x";
        client.connect_over(ours, url).await
    });
    let mut request = vec![0; 1 << 12];
    let count = in_time(theirs.read(&mut request)).await.unwrap();
    let request = std::str::from_utf8(&request[..count]).unwrap();
    assert!(
        request.starts_with("GET /room?name=x HTTP/1.1\r\n"),
        "{request}"
    );
    for line in [
        "Host: example.com:8080",
        "Authorization: Bearer secret",
        "Sec-WebSocket-Protocol: chat",
        "Origin: https://example.com",
    ] {
        assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
    }
    drop(theirs);
    let error = connecting.await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::Handshake(HandshakeError::HeadTruncated { .. })
        ),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let (ours, mut theirs) = tokio::io::duplex(1 << 12);
    let endless = tokio::spawn(async move {
        let status = b"HTTP/1.1 101 Switching Protocols\r\n";
        theirs.write_all(status).await.unwrap();
        while theirs
            .write_all(b"X: xxxxxxxxxxxxxxxxxxxxxxx\r\n")
            .await
            .is_ok()
        {}
    });
    let connected = Client::new().connect_over(ours, "ws://example.com/").await;
    let Err(Error::Handshake(error)) = connected else {
        panic!("the response was accepted");
    };
    let is_limit = matches!(
        error,
        HandshakeError::HeadTooLarge { .. } | HandshakeError::HeadersTooMany { .. }
    );
    assert!(is_limit, "{error}");
    in_time(endless).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_sent_leaves_the_connection_unharmed() {
    let server = Running::echo().await;
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    let error = ws.ping(&[0; 126]).await.unwrap_err();
    assert!(
        matches!(error, Error::Send(SendError::ControlTooLong { bytes: 126 })),
        "{error}"
    );
    let error = ws
        .close(CloseCode::NORMAL, &"x".repeat(124))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Send(SendError::CloseReasonTooLong { bytes: 124 })
        ),
        "{error}"
    );
    assert_eq!(ws.state(), State::Open);
    ws.ping(&[0; 125]).await.unwrap();
    ws.send_text("Spam").await.unwrap();
    ws.send_binary(b"eggs").await.unwrap();
    ws.flush().await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some(b"eggs".into()));
    ws.close(CloseCode::NORMAL, "").await.unwrap();
    assert_eq!(ws.state(), State::Closed);
    for result in [ws.send("late").await, ws.ping(b"").await] {
        assert!(matches!(result, Err(Error::Send(SendError::Closed))));
    }
    server.stop().await;
}

#[tokio::test]
async fn k09_a_dropped_connection_is_closed_with_1001() {
    let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let server = Running::start(Default::default(), move |mut ws, _| {
        let report = report.clone();
        async move {
            while ws.recv().await?.is_some() {}
            let closed = ws.close(CloseCode::NORMAL, "").await?;
            report.send(closed.code).unwrap();
            Ok(())
        }
    })
    .await;
    drop(linerate::connect(&server.url()).await.unwrap());
    assert_eq!(in_time(reports.recv()).await, Some(1001));
    let (sender, receiver) = linerate::connect(&server.url()).await.unwrap().split();
    drop(receiver);
    sender.send("still open").await.unwrap();
    drop(sender);
    assert_eq!(in_time(reports.recv()).await, Some(1001));
    server.stop().await;
}

#[tokio::test]
async fn latency_is_that_of_the_newest_keepalive() {
    let server = Running::echo().await;
    let mut options = Options::default();
    options.config.ping_interval = Some(Duration::from_millis(20));
    let client = Client::new().with_options(options);
    let ws = client.connect(&server.url()).await.unwrap();
    assert_eq!(ws.latency(), None);
    in_time(async {
        while ws.latency().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    drop(ws);
    server.stop().await;
}
