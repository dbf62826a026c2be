//! WebSockets over HTTP/2 (RFC 8441).

mod choice;
mod faults;
mod floods;
mod flow;
mod rules;
#[cfg(feature = "axum")]
mod service;
mod wire;

use linerate::{
    Client, CloseCode, Error, Incoming, Message, Request, Server, WebSocket,
    handshake::{HttpVersion, Origin, Refusal},
};

use crate::{
    raw::in_time,
    support::{Running, echo, echo_on},
};

/// Returns a client that uses HTTP/2 with prior knowledge.
fn client() -> Client {
    Client::new().with_http2_prior_knowledge()
}

/// Echoes messages, on HTTP/2 streams only.
async fn echo_http2(ws: WebSocket, request: Request) -> linerate::Result<()> {
    assert_eq!(request.version(), HttpVersion::Http2);
    echo(ws, request).await
}

#[tokio::test]
async fn messages_of_any_size_come_back() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut ws = client().connect(&server.url()).await.unwrap();
    for message in [
        Message::from("größer €"),
        Message::from(b""),
        Message::from(vec![7; 16_384]),
        Message::from(vec![8; 1 << 20]),
    ] {
        ws.send(message.clone()).await.unwrap();
        let echoed = in_time(ws.recv()).await.unwrap();
        assert!(echoed == Some(message));
    }
    let closed = ws.close(CloseCode::NORMAL, "done").await.unwrap();
    assert_eq!((closed.code, closed.clean), (1000, true));
    assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    server.stop().await;
}

#[tokio::test]
async fn many_messages_in_flight_keep_their_order() {
    let server = Running::start(Server::new(), echo_http2).await;
    let ws = client().connect(&server.url()).await.unwrap();
    let (sender, mut receiver) = ws.split();
    let send = tokio::spawn(async move {
        for number in 0..20_000 {
            sender.send(number.to_string()).await.unwrap();
        }
        sender
    });
    for number in 0..20_000 {
        let message = in_time(receiver.recv()).await.unwrap().unwrap();
        assert_eq!(message.as_text(), Some(&*number.to_string()));
    }
    drop(send.await.unwrap());
    drop(receiver);
    server.stop().await;
}

/// Refuses one path, and drops the request for another.
async fn deciding(incoming: Incoming) -> linerate::Result<()> {
    assert_eq!(incoming.request().version(), HttpVersion::Http2);
    tokio::task::yield_now().await;
    match incoming.request().path() {
        "/secret" => incoming.refuse(Refusal::new(401, "who are you")?).await,
        "/dropped" => Ok(()),
        _ => echo_on(incoming.with_subprotocols(&["wamp"]).accept().await?).await,
    }
}

#[tokio::test]
async fn a_request_is_judged_as_over_http1() {
    let server = Running::start_incoming(Server::new(), deciding).await;
    let offering = client().with_subprotocol("soap").with_subprotocol("wamp");
    let ws = offering.connect(&server.url()).await.unwrap();
    assert_eq!(ws.subprotocol().as_deref(), Some("wamp"));

    let status = |error| match error {
        Error::StatusUnexpected(response) => (response.status, response.text().into_owned()),
        error => panic!("{error}"),
    };
    let secret = format!("{}secret", server.url());
    let (refused, body) = status(client().connect(&secret).await.unwrap_err());
    assert_eq!((refused, body.is_empty()), (401, false));
    let dropped = format!("{}dropped", server.url());
    assert_eq!(status(client().connect(&dropped).await.unwrap_err()).0, 500);
    let page = "https://evil.example".parse::<Origin>().unwrap();
    let evil = client().with_origin(page);
    assert_eq!(
        status(evil.connect(&server.url()).await.unwrap_err()).0,
        403
    );
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_resets_its_stream_drops_the_decision() {
    let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
    let server = Running::start_incoming(Server::new(), move |incoming| {
        let (alive, dropped) = tokio::sync::oneshot::channel::<()>();
        _ = sender.send(dropped);
        async move {
            let _dropped_with_it = (alive, incoming);
            std::future::pending().await
        }
    })
    .await;
    let mut wire = wire::Wire::open(server.address, &[]).await;
    wire.headers(1, &wire::CONNECT).await;
    let dropped = in_time(started.recv()).await.unwrap();
    let reset = wire::frame(wire::RST_STREAM, 0, 1, &wire::CANCEL.to_be_bytes());
    wire.send(reset).await;
    assert!(in_time(dropped).await.is_err());
    drop(wire);
    server.stop().await;
}

#[tokio::test]
async fn the_end_of_a_handler_closes_its_stream_only() {
    let server = Running::start(Server::new(), |mut ws, request| async move {
        let mut started = ws.recv().await?;
        match request.path() {
            "/ends" => Ok(()),
            "/fails" => Err(Error::Abnormal),
            "/panics" => panic!("on purpose"),
            "/drops" => {
                drop((ws, started.take()));
                std::future::pending().await
            }
            _ => echo(ws, request).await,
        }
    })
    .await;
    let mut wire = wire::Wire::open(server.address, &[]).await;
    let start = wire::masked(linerate_testkit::Frame::new(0x1, b"start"));
    wire.connect(1).await;
    wire.data(1, &start).await;
    for (index, (path, code)) in [
        ("/ends", 1000_u16),
        ("/fails", 1011),
        ("/panics", 1011),
        ("/drops", 1001),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = 3 + 2 * index as u32;
        wire.headers(stream, &wire::connect_with(":path", Some(path)))
            .await;
        wire.data(stream, &start).await;
        let close = (0x88, code.to_be_bytes().to_vec());
        assert_eq!(wire.message(stream).await, close, "{path}");
    }
    wire.echo(1, "Spam").await;
    server.abort();
}

#[tokio::test]
async fn shutdown_says_goodbye_to_streams_and_connection() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut wire = wire::Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    wire.echo(1, "Spam").await;
    let stop = tokio::spawn(server.stop());
    let (kind, reason) = {
        let mut told = false;
        let mut bytes = Vec::new();
        while !told || bytes.len() < 4 {
            let frame = wire.next().await.unwrap();
            match frame.kind {
                wire::GOAWAY => {
                    assert_eq!(frame.code(), 0);
                    told = true;
                }
                wire::DATA => bytes.extend_from_slice(&frame.payload),
                wire::PING => wire.pong(&frame).await,
                _ => {}
            }
        }
        (bytes[0], bytes[2..4].to_vec())
    };
    assert_eq!((kind, reason), (0x88, 1001_u16.to_be_bytes().to_vec()));
    let close = linerate_testkit::Frame::new(0x8, &1001_u16.to_be_bytes());
    let close = wire::frame(wire::DATA, wire::END_STREAM, 1, &wire::masked(close));
    wire.send(close).await;
    in_time(stop).await.unwrap();
    // Nothing more may arrive before the end.
    while let Some(frame) = wire.next().await {
        if frame.kind == wire::PING && frame.flags == 0 {
            wire.pong(&frame).await;
        }
    }
}

#[tokio::test]
async fn each_stream_takes_a_place_among_the_connections() {
    // One place for the connection and two for its streams.
    let server = Running::start(Server::new().with_connections_max(3), echo_http2).await;
    let mut wire = wire::Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    wire.connect(3).await;
    wire.headers(5, &wire::CONNECT).await;
    let refused = wire.next_of(wire::HEADERS, 5).await;
    assert_eq!(refused.status(), "503");
    let text = wire.next_of(wire::DATA, 5).await;
    assert_eq!(text.payload, b"too many connections\n");
    wire.echo(1, "Spam").await;
    drop(wire);
    server.stop().await;
}
