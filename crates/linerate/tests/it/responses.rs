//! The server's response to a client, with its body if it refuses.

use std::time::Duration;

use linerate::{
    Backoff, Client, Error, Options, Server,
    handshake::{Refusal, Response},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    time::{Instant, sleep},
};

use crate::{
    polls::{for_all_polls, poll_times},
    raw::in_time,
    support::{Running, echo},
};

const URL: &str = "ws://example.com/";
const SECOND: Duration = Duration::from_secs(1);

/// Connects to a server in memory, which `serve` runs.
async fn connect<F>(client: &Client, serve: impl FnOnce(DuplexStream) -> F) -> Error
where
    F: Future<Output = ()> + Send + 'static,
{
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    let server = tokio::spawn(serve(theirs));
    let error = in_time(client.connect_over(ours, URL)).await.unwrap_err();
    in_time(server).await.unwrap();
    error
}

/// Returns the response with which a server refuses.
async fn refused<F>(client: &Client, serve: impl FnOnce(DuplexStream) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    match connect(client, serve).await {
        Error::StatusUnexpected(response) => *response,
        error => panic!("{error}"),
    }
}

/// Sends the parts with pauses, and waits until the client closes the stream.
async fn answer(mut stream: DuplexStream, parts: &[&[u8]], is_ended: bool) {
    for part in parts {
        // The client may close the stream as soon as it knows enough.
        _ = stream.write_all(part).await;
        tokio::task::yield_now().await;
    }
    if is_ended {
        _ = stream.shutdown().await;
    }
    let mut request = Vec::new();
    stream.read_to_end(&mut request).await.unwrap();
    assert!(request.starts_with(b"GET / HTTP/1.1\r\n"));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_returned_with_its_headers_and_body_wherever_it_is_cut() {
    let client = Client::new();
    for (answered, is_ended, body) in [
        (
            "403 Forbidden\r\nX: y\r\nContent-Length: 8\r\n\r\nno token",
            false,
            "no token",
        ),
        ("403 Forbidden\r\nX: y\r\n\r\nno token", true, "no token"),
        (
            "403 Forbidden\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nno \r\n5\r\ntoken\r\n0\r\n\r\n",
            false,
            "no token",
        ),
        (
            "403 Forbidden\r\nX: y\r\nContent-Length: 0\r\n\r\n",
            false,
            "",
        ),
    ] {
        let wire = format!("HTTP/1.1 {answered}");
        for cut in 0..wire.len() {
            let begun = Instant::now();
            let wire = wire.clone();
            let response = refused(&client, |stream| async move {
                let (first, second) = wire.as_bytes().split_at(cut);
                answer(stream, &[first, second], is_ended).await;
            })
            .await;
            assert_eq!(response.status, 403);
            assert_eq!(response.headers.first_text("x"), Some("y"));
            assert_eq!(response.text(), body, "{cut}");
            assert!(!response.is_truncated);
            assert!(begun.elapsed() < SECOND, "nothing else is waited for");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_are_cut_off_at_the_limit() {
    for (bytes_max, head) in [
        (4 << 10, ""),
        (4 << 10, "Content-Length: 99999999999999\r\n"),
        (10, "Transfer-Encoding: chunked\r\n"),
        (0, ""),
    ] {
        let mut options = Options::default();
        assert_eq!(options.response_body_bytes_max, 4 << 10);
        options.response_body_bytes_max = bytes_max;
        let client = Client::new().with_options(options);
        let response = refused(&client, |mut stream| async move {
            let head = format!("HTTP/1.1 500 Oops\r\n{head}\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            // An endless body.
            while stream.write_all(b"1\r\nx\r\n").await.is_ok() {}
        })
        .await;
        assert_eq!(response.body.len(), bytes_max, "{head}");
        assert!(response.is_truncated);
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_not_kept_are_empty_wherever_they_are_cut() {
    for (bytes_max, status) in [(0, 403), (4 << 10, 302), (4 << 10, 308)] {
        let mut options = Options::default();
        options.response_body_bytes_max = bytes_max;
        let client = Client::new().with_options(options);
        for framing in [
            "Content-Length: 5\r\n\r\nmoved",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nmoved\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ] {
            let wire = format!("HTTP/1.1 {status} Elsewhere\r\n{framing}");
            for cut in 0..wire.len() {
                let wire = wire.clone();
                let response = refused(&client, |stream| async move {
                    let (first, second) = wire.as_bytes().split_at(cut);
                    answer(stream, &[first, second], false).await;
                })
                .await;
                assert_eq!((response.status, &*response.body), (status, &b""[..]));
                assert!(response.is_truncated, "{cut}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_with_two_lengths_is_not_taken_for_complete() {
    let response = refused(&Client::new(), |stream| async move {
        let lengths = "Content-Length: 3\r\nContent-Length: 8\r\n";
        let wire = format!("HTTP/1.1 403 Forbidden\r\n{lengths}\r\nno token");
        answer(stream, &[wire.as_bytes()], false).await;
    })
    .await;
    assert!(response.body.is_empty() && response.is_truncated);
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_does_not_delay_the_error_for_long() {
    for (timeout, head_after, expected) in [
        (10 * SECOND, SECOND, 2 * SECOND),
        (10 * SECOND, 9_500 * SECOND / 1_000, 10 * SECOND),
    ] {
        let mut options = Options::default();
        options.handshake_timeout = timeout;
        let client = Client::new().with_options(options);
        let begun = Instant::now();
        let response = refused(&client, |mut stream| async move {
            sleep(head_after).await;
            let head = b"HTTP/1.1 429 Slow\r\nContent-Length: 100\r\n\r\n";
            stream.write_all(head).await.unwrap();
            while stream.write_all(b"x").await.is_ok() {
                sleep(SECOND / 10).await;
            }
        })
        .await;
        let elapsed = begun.elapsed();
        assert!(
            elapsed >= expected && elapsed < expected + SECOND / 5,
            "{elapsed:?}"
        );
        assert!((4..=11).contains(&response.body.len()), "{response:?}");
        assert!(response.is_truncated);
    }
}

#[cfg(feature = "http2")]
#[tokio::test(start_paused = true)]
async fn bodies_over_http2_are_cut_off_at_the_limit_or_when_they_are_slow() {
    for (sent, kept, waited) in [(100_000, 4 << 10, 0), (10, 10, 1)] {
        let client = Client::new().with_http2_prior_knowledge();
        let begun = Instant::now();
        let response = refused(&client, |stream| async move {
            let mut builder = h2::server::Builder::new();
            let handshake = builder.enable_connect_protocol().handshake(stream);
            let mut connection = handshake.await.unwrap();
            let mut bodies = Vec::new();
            while let Some(Ok((_request, mut respond))) = connection.accept().await {
                let response = axum::http::Response::builder().status(503);
                let response = response.header("Retry-After", "7").body(()).unwrap();
                let mut body = respond.send_response(response, false).unwrap();
                body.send_data(bytes::Bytes::from(vec![b'x'; sent]), false)
                    .unwrap();
                // The body does not end.
                bodies.push(body);
            }
        })
        .await;
        assert_eq!((response.status, response.body.len()), (503, kept));
        assert_eq!(response.retry_after(), Some(7 * SECOND));
        assert!(response.is_truncated);
        assert_eq!(begun.elapsed().as_secs(), waited);
    }
}

#[tokio::test(start_paused = true)]
async fn backoff_waits_as_long_as_the_server_asks_up_to_a_limit() {
    for (value, at_least) in [
        ("7", 7),
        ("99999999999999999999999", 60),
        ("Mon, 01 Jan 2970 00:00:00 GMT", 60),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("-1", 0),
        ("tomorrow", 0),
    ] {
        let error = connect(&Client::new(), |stream| async move {
            let head =
                format!("HTTP/1.1 503 Busy\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n");
            answer(stream, &[head.as_bytes()], false).await;
        })
        .await;
        assert!(error.is_transient());
        let mut backoff = Backoff::new().with_retry_after_max(60 * SECOND);
        let delay = backoff.next_delay_after(Err(error)).unwrap();
        let delay = delay.continue_value().unwrap();
        assert!(delay >= at_least * SECOND && delay <= (at_least + 1) * SECOND);
    }
}

#[tokio::test]
async fn the_response_that_opens_is_returned_and_refusals_of_our_server_have_a_body() {
    let server = Running::start_incoming(Server::new(), |incoming| async move {
        if incoming.request().path() == "/secret" {
            return incoming.refuse(Refusal::new(401, "unknown token")?).await;
        }
        let request = incoming.request().clone();
        echo(incoming.accept().await?, request).await
    })
    .await;
    let client = Client::new();
    let (mut ws, response) = client.connect_with_response(&server.url()).await.unwrap();
    assert_eq!(response.status, 101);
    assert!(response.headers.first("Sec-WebSocket-Accept").is_some());
    assert!(response.body.is_empty() && !response.is_truncated);
    ws.send("Spam").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    drop(ws);

    let refused = client.connect(&format!("{}secret", server.url())).await;
    let Err(Error::StatusUnexpected(response)) = refused else {
        panic!("the request was accepted");
    };
    assert_eq!(
        (response.status, &*response.text()),
        (401, "unknown token\n")
    );
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn connecting_dropped_while_the_body_arrives_ends_the_stream() {
    for_all_polls(0, async |polls| {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let server = tokio::spawn(async move {
            let head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\n";
            let mut is_open = theirs.write_all(head).await.is_ok();
            for _ in 0..100 {
                is_open = is_open && theirs.write_all(b"x").await.is_ok();
                tokio::task::yield_now().await;
            }
            let mut request = Vec::new();
            theirs.read_to_end(&mut request).await.map(drop)
        });
        let client = Client::new();
        let connected = poll_times(client.connect_over(ours, URL), polls).await;
        _ = in_time(server).await.unwrap();
        assert!(!matches!(connected, Some(Ok(_))));
        usize::from(connected.is_none())
    })
    .await;
}
