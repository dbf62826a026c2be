//! Requests and frames that violate HTTP/2.

use std::sync::Mutex;

use linerate::{Error, Options, Server};
use linerate_testkit::Frame as WebSocketFrame;
use tokio::sync::mpsc;

use super::{echo_http2, wire::*};
use crate::{raw::in_time, support::Running};

/// The reaction of a server to a request.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Verdict {
    Goaway(u32),
    Reset(u32),
    Status(String),
}

async fn verdict(wire: &mut Wire, stream: u32, fields: &[(&str, &str)]) -> Verdict {
    wire.headers(stream, fields).await;
    loop {
        let frame = wire.next().await.expect("the server responds");
        match frame.kind {
            HEADERS if frame.stream == stream => return Verdict::Status(frame.status()),
            RST_STREAM if frame.stream == stream => return Verdict::Reset(frame.code()),
            GOAWAY => return Verdict::Goaway(frame.code()),
            _ => {}
        }
    }
}

#[tokio::test]
async fn s08_a_malformed_connect_is_refused_and_the_next_is_not() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut wire = Wire::open(server.address, &[]).await;
    let malformed = Verdict::Reset(PROTOCOL_ERROR);
    let status = |status: &str| Verdict::Status(status.into());
    let cases = [
        (connect_with(":scheme", None), malformed.clone()),
        (connect_with(":path", None), malformed.clone()),
        (connect_with(":path", Some("")), malformed.clone()),
        (connect_with(":method", Some("GET")), malformed.clone()),
        (
            connect_with("connection", Some("upgrade")),
            malformed.clone(),
        ),
        (
            connect_with("upgrade", Some("websocket")),
            malformed.clone(),
        ),
        (connect_with("te", Some("gzip")), malformed.clone()),
        (connect_with(":status", Some("200")), malformed),
        (
            connect_with(":protocol", Some("connect-udp")),
            status("501"),
        ),
        (connect_with(":protocol", Some("WebSocket")), status("501")),
        (connect_with("sec-websocket-version", None), status("426")),
        (
            connect_with("sec-websocket-version", Some("8")),
            status("426"),
        ),
        (connect_with("content-length", Some("0")), status("200")),
    ];
    let mut stream = 1;
    for (fields, expected) in cases {
        assert_eq!(
            verdict(&mut wire, stream, &fields).await,
            expected,
            "{fields:?}"
        );
        stream += 2;
        wire.connect(stream).await;
        wire.echo(stream, "Spam").await;
        stream += 2;
    }
    server.abort();
}

#[tokio::test]
async fn s08_other_requests_are_told_what_is_served() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut wire = Wire::open(server.address, &[]).await;
    let get = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/chat"),
        (":authority", "example.com"),
    ];
    let answer = verdict(&mut wire, 1, &get).await;
    assert_eq!(answer, Verdict::Status("400".into()));
    let plain = [(":method", "CONNECT"), (":authority", "example.com:80")];
    let answer = verdict(&mut wire, 3, &plain).await;
    assert_eq!(answer, Verdict::Status("400".into()));
    server.abort();
}

/// Returns a server that reports how each connection ended.
async fn telling() -> (Running, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let tell = Mutex::new(tell);
    let server = Running::start(Server::new(), move |mut ws, _| {
        let tell = tell.lock().unwrap().clone();
        async move {
            let end = loop {
                match ws.recv().await {
                    Ok(Some(message)) => ws.send(message).await?,
                    Ok(None) => break "clean".to_owned(),
                    Err(Error::Abnormal) => break "abnormal".to_owned(),
                    Err(Error::Io(error)) => break format!("{:?}", error.kind()),
                    Err(error) => break error.to_string(),
                }
            };
            tell.send(end).unwrap();
            Ok(())
        }
    })
    .await;
    (server, told)
}

#[tokio::test]
async fn s09_the_end_of_a_stream_is_that_of_a_connection() {
    let (server, mut told) = telling().await;
    let mut wire = Wire::open(server.address, &[]).await;
    let message = masked(WebSocketFrame::new(0x1, b"Spam"));

    wire.connect(1).await;
    let torn = frame(DATA, END_STREAM, 1, &message[..7]);
    wire.send(torn).await;
    assert_eq!(in_time(told.recv()).await.unwrap(), "abnormal");

    wire.connect(3).await;
    wire.data(3, &message[..7]).await;
    wire.send(frame(RST_STREAM, 0, 3, &CANCEL.to_be_bytes()))
        .await;
    assert_eq!(in_time(told.recv()).await.unwrap(), "ConnectionReset");

    wire.connect(5).await;
    let close = masked(WebSocketFrame::new(0x8, &1000_u16.to_be_bytes()));
    wire.data(5, &close).await;
    let answer = wire.next_of(DATA, 5).await;
    assert_eq!(answer.payload, b"\x88\x02\x03\xe8");
    let mut last = answer;
    while last.flags & END_STREAM == 0 {
        last = wire.next_of(DATA, 5).await;
        assert_eq!(last.payload, b"", "nothing follows the Close frame");
    }
    assert_eq!(in_time(told.recv()).await.unwrap(), "clean");
    wire.send(frame(DATA, END_STREAM, 5, b"")).await;

    wire.connect(7).await;
    wire.echo(7, "Spam").await;
    server.abort();
}

#[tokio::test]
async fn s09_a_client_that_says_goodbye_keeps_its_streams() {
    let (server, mut told) = telling().await;
    let mut wire = Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    wire.send(frame(GOAWAY, 0, 0, &[0; 8])).await;
    wire.settle().await;
    wire.echo(1, "Spam").await;
    drop(wire);
    let end = in_time(told.recv()).await.unwrap();
    assert_ne!(end, "clean");
    server.abort();
}

#[tokio::test]
async fn s10_unmasked_frames_fail_the_websocket() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut wire = Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    wire.connect(3).await;
    wire.data(1, b"\x81\x04Spam").await;
    let (kind, payload) = wire.message(1).await;
    assert_eq!((kind, &payload[..2]), (0x88, &1002_u16.to_be_bytes()[..]));
    wire.echo(3, "Spam").await;
    server.abort();
}

#[tokio::test]
async fn s11_fields_that_smuggle_are_refused() {
    let server = Running::start(Server::new(), echo_http2).await;
    let reset = Verdict::Reset(PROTOCOL_ERROR);
    // Input that cannot be a field at all ends the connection, which RFC 9113 §5.4 allows.
    let goaway = Verdict::Goaway(PROTOCOL_ERROR);
    let status = |status: &str| Verdict::Status(status.into());
    let cases = [
        (connect_with("cookie", Some("a\r\nb: c")), goaway.clone()),
        (connect_with("cookie", Some("a\nb")), goaway.clone()),
        (connect_with("cookie", Some("a\0b")), goaway.clone()),
        (connect_with("Cookie", Some("a=b")), goaway.clone()),
        (connect_with("a b", Some("c")), goaway),
        (connect_with(":path", Some("/a b")), reset.clone()),
        (connect_with(":path", Some("/\r\nb: c")), reset.clone()),
        (connect_with("cookie", Some(" a")), reset.clone()),
        (connect_with("cookie", Some("a\t")), reset.clone()),
        (connect_with("host", Some("evil.example")), status("400")),
        (connect_with("host", Some("example.com")), status("200")),
    ];
    for (fields, expected) in cases {
        let mut wire = Wire::open(server.address, &[]).await;
        assert_eq!(verdict(&mut wire, 1, &fields).await, expected, "{fields:?}");
    }
    server.abort();
}

#[tokio::test]
async fn s11_fields_over_the_limit_are_refused_with_431() {
    let mut options = Options::default();
    options.http2.header_list_bytes_max = 1_000;
    let server = Running::start(Server::new().with_options(options), echo_http2).await;
    let mut wire = Wire::open(server.address, &[]).await;
    // RFC 9113 §6.5.2: the size of each field is that of its name and value plus 32 bytes.
    let fields = |last: &'static str| {
        let mut fields: Vec<_> = CONNECT.into();
        fields.push(("a", last));
        fields
    };
    let counted: usize = CONNECT
        .iter()
        .map(|(name, value)| name.len() + value.len() + 32)
        .sum();
    // h2 rejects a list whose size equals the limit.
    let room = 1_000 - counted - 33 - 1;
    let most: &'static str = "x".repeat(room).leak();
    let more: &'static str = "x".repeat(room + 1).leak();
    let answer = verdict(&mut wire, 1, &fields(most)).await;
    assert_eq!(answer, Verdict::Status("200".into()));
    let answer = verdict(&mut wire, 3, &fields(more)).await;
    assert_eq!(answer, Verdict::Status("431".into()));
    server.abort();
}

#[tokio::test]
async fn s08_a_body_of_another_length_than_announced_is_an_error_though_nobody_reads_it() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut wire = Wire::open(server.address, &[]).await;
    let mut fields = vec![(":method", "POST"), (":scheme", "http"), (":path", "/")];
    fields.extend([(":authority", "example.com"), ("content-length", "4")]);
    let answer = verdict(&mut wire, 1, &fields).await;
    assert_eq!(answer, Verdict::Status("400".into()));
    wire.send(frame(DATA, END_STREAM, 1, b"Spam!")).await;
    let reset = wire.next_of(RST_STREAM, 1).await;
    assert_eq!(reset.code(), PROTOCOL_ERROR);
    wire.connect(3).await;
    wire.echo(3, "Spam").await;
    server.abort();
}
