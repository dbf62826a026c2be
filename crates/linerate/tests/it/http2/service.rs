//! Tower services on the streams of a connection: pages, bodies and WebSockets.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::{any, get, post},
};
use futures_util::stream;
use linerate::{
    CloseCode, Error, Http2Limits, Message,
    axum::{WebSocketUpgrade, serve_http2, speaks_http2},
    handshake::HttpVersion,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use super::{client, wire::*};
use crate::{
    polls::{for_all_polls, poll_times},
    raw::in_time,
    support::echo,
};

/// The longest request body in these tests, in bytes.
const BODY_BYTES: usize = 3 << 20;

async fn upgraded(upgrade: WebSocketUpgrade) -> Response {
    let upgrade = upgrade.with_subprotocols(&["wamp"]);
    let request = upgrade.request().clone();
    assert_eq!(request.version(), HttpVersion::Http2);
    upgrade.on_upgrade(|ws| echo(ws, request))
}

/// Responds with the number of bytes that have arrived.
async fn length(body: Bytes) -> String {
    body.len().to_string()
}

async fn host(headers: HeaderMap) -> Vec<u8> {
    headers["host"].as_bytes().to_vec()
}

async fn cookie(headers: HeaderMap) -> Vec<u8> {
    assert_eq!(headers.get_all("cookie").iter().count(), 1);
    headers["cookie"].as_bytes().to_vec()
}

/// Sends endlessly, and counts the bytes.
async fn endless(sent: Arc<AtomicUsize>) -> Body {
    Body::from_stream(stream::repeat_with(move || {
        sent.fetch_add(10_000, Ordering::Relaxed);
        Ok::<_, std::io::Error>(Bytes::from_static(&[7; 10_000]))
    }))
}

fn app(sent: Arc<AtomicUsize>) -> Router {
    Router::new()
        .route("/chat", any(upgraded))
        .route("/host", get(host))
        .route("/cookie", get(cookie))
        .route("/length", post(length))
        .route("/page", get(|| async { vec![7; BODY_BYTES] }))
        .route("/endless", get(move || endless(sent)))
        .route("/refused", any(|| async { StatusCode::UNAUTHORIZED }))
        .layer(axum::extract::DefaultBodyLimit::max(BODY_BYTES))
}

/// Serves connections with our own HTTP/2; the returned sender starts the shutdown.
async fn start() -> (SocketAddr, Arc<AtomicUsize>, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sent = Arc::<AtomicUsize>::default();
    let app = app(sent.clone());
    let (leave, left) = oneshot::channel();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        assert!(speaks_http2(&stream).await.unwrap());
        let limits = Arc::new(Http2Limits::default());
        let goodbye = async { _ = left.await };
        serve_http2(stream, app, &limits, Duration::from_secs(10), goodbye).await
    });
    (address, sent, leave)
}

fn get_of(path: &'static str) -> [(&'static str, &'static str); 4] {
    [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "example.com"),
    ]
}

/// Reads a body to its end, and extends the window by its size.
async fn body(wire: &mut Wire, stream: u32) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let data = wire.next_of(DATA, stream).await;
        body.extend_from_slice(&data.payload);
        if data.flags & END_STREAM != 0 {
            return body;
        }
        let more = (data.payload.len() as u32).to_be_bytes();
        for stream in [0, stream] {
            wire.send_as_far(frame(WINDOW_UPDATE, 0, stream, &more))
                .await;
        }
    }
}

#[tokio::test]
async fn pages_and_websockets_share_a_connection() {
    let (address, _, _leave) = start().await;
    let mut wire = Wire::open(address, &[]).await;
    wire.connect(1).await;
    wire.headers(3, &get_of("/page")).await;
    assert_eq!(wire.next_of(HEADERS, 3).await.status(), "200");
    let page = body(&mut wire, 3).await;
    assert!(page == vec![7; BODY_BYTES]);
    wire.echo(1, "Spam").await;
    wire.headers(5, &get_of("/none")).await;
    assert_eq!(wire.next_of(HEADERS, 5).await.status(), "404");
    wire.headers(7, &get_of("/host")).await;
    wire.next_of(HEADERS, 7).await;
    assert_eq!(body(&mut wire, 7).await, b"example.com");
    wire.echo(1, "Spam").await;
}

/// Browsers send a cookie in parts because these compress better.
#[tokio::test]
async fn the_parts_of_a_cookie_are_one() {
    let (address, _, _leave) = start().await;
    let mut wire = Wire::open(address, &[]).await;
    let parts = [("cookie", "a=b"), ("accept", "*/*"), ("cookie", "c=d; e=f")];
    for (stream, parts, whole) in [(1, &parts[..], "a=b; c=d; e=f"), (3, &parts[..1], "a=b")] {
        let fields: Vec<_> = get_of("/cookie").iter().chain(parts).copied().collect();
        wire.headers(stream, &fields).await;
        assert_eq!(wire.next_of(HEADERS, stream).await.status(), "200");
        assert_eq!(body(&mut wire, stream).await, whole.as_bytes());
    }
}

#[tokio::test]
async fn bodies_of_requests_may_be_longer_than_the_window() {
    let (address, _, _leave) = start().await;
    let (mut send, connection) = h2::client::Builder::new()
        .max_send_buffer_size(BODY_BYTES)
        .handshake::<_, Bytes>(TcpStream::connect(address).await.unwrap())
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = axum::http::Request::post(format!("http://{address}/length"));
    let request = request.body(()).unwrap();
    let (response, mut stream) = send.send_request(request, false).unwrap();
    stream
        .send_data(Bytes::from(vec![7; BODY_BYTES]), true)
        .unwrap();
    let mut response = in_time(response).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("date"));
    let length = in_time(response.body_mut().data()).await.unwrap().unwrap();
    assert_eq!(length, BODY_BYTES.to_string());
}

#[tokio::test]
async fn a_client_opens_a_websocket_among_pages() {
    let (address, _, leave) = start().await;
    let asking = client().with_subprotocol("wamp");
    let mut ws = asking
        .connect(&format!("ws://{address}/chat"))
        .await
        .unwrap();
    assert_eq!(ws.subprotocol().as_deref(), Some("wamp"));
    let message = Message::from(vec![7; 300_000]);
    ws.send(message.clone()).await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some(message));
    // Open streams continue.
    leave.send(()).unwrap();
    ws.send("Spam").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
    assert!(closed.clean);
}

#[tokio::test]
async fn other_answers_to_a_connect_refuse_it() {
    for (path, refused) in [("refused", 401), ("page", 405), ("none", 404)] {
        let (address, _, _leave) = start().await;
        let error = client()
            .connect(&format!("ws://{address}/{path}"))
            .await
            .unwrap_err();
        match error {
            Error::StatusUnexpected(response) => assert_eq!(response.status, refused),
            error => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn s06_an_answer_waits_for_the_window_of_its_reader() {
    let (address, sent, _leave) = start().await;
    let mut wire = Wire::open(address, &[]).await;
    wire.headers(1, &get_of("/endless")).await;
    let mut received = 0;
    while received < 65_535 {
        received += wire.next_of(DATA, 1).await.payload.len();
    }
    assert_eq!(wire.settle().await, []);
    let sent = sent.load(Ordering::Relaxed);
    let bytes_max = received + Http2Limits::default().send_buffer_bytes_max + 20_000;
    assert!(sent <= bytes_max, "{sent} bytes, of at most {bytes_max}");
}

#[tokio::test]
async fn s01_requests_that_are_given_up_count() {
    let (address, _, _leave) = start().await;
    let mut wire = Wire::open(address, &[]).await;
    let code = 'ended: loop {
        for index in 0.. {
            let stream = 1 + 2 * index;
            let mut burst = frame(HEADERS, END_HEADERS, stream, &block(&get_of("/endless")));
            burst.extend(frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
            wire.send_as_far(burst).await;
            if index % 50 == 49 {
                let ping = frame(PING, 0, 0, &[0; 8]);
                wire.send_as_far(ping).await;
                loop {
                    let frame = wire.next().await.expect("the server responds");
                    match frame.kind {
                        GOAWAY => break 'ended frame.code(),
                        PING => break,
                        _ => {}
                    }
                }
            }
            assert!(index < 5_000, "{index} requests");
        }
    };
    assert_eq!(code, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn the_extractor_works_on_the_streams_of_hyper_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/chat", listener.local_addr().unwrap());
    let app = app(Arc::default());
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let service = hyper_util::service::TowerToHyperService::new(app);
        hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new())
            .enable_connect_protocol()
            .serve_connection(hyper_util::rt::TokioIo::new(stream), service)
            .await
    });
    let mut ws = client().connect(&url).await.unwrap();
    ws.send("größer €").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("größer €".into()));
    let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
    assert!(closed.clean);
}

#[tokio::test]
async fn speaks_http2_dropped_after_any_number_of_polls_has_read_nothing() {
    const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for_all_polls(0, async |polls| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let said = tokio::spawn(async move {
            for byte in PREFACE {
                client.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            client
        });
        let told = poll_times(speaks_http2(&stream), polls).await;
        let cancelled = usize::from(told.is_none());
        let told = match told {
            Some(told) => told,
            None => in_time(speaks_http2(&stream)).await,
        };
        assert!(told.unwrap(), "{polls} polls");
        let mut read = [0; PREFACE.len()];
        in_time(stream.read_exact(&mut read)).await.unwrap();
        assert_eq!(&read, PREFACE, "{polls} polls");
        drop(said.await.unwrap());
        cancelled
    })
    .await;
}

#[tokio::test]
async fn serve_http2_dropped_after_any_number_of_polls_ends_what_it_has_begun() {
    for_all_polls(0, async |polls| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/chat", listener.local_addr().unwrap());
        let sent = Arc::<AtomicUsize>::default();
        let app = app(sent.clone());
        let (leave, left) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let limits = Arc::new(Http2Limits::default());
            let goodbye = async { _ = left.await };
            let serving = serve_http2(stream, app, &limits, Duration::from_secs(10), goodbye);
            poll_times(serving, polls).await
        });
        if let Ok(mut ws) = in_time(client().connect(&url)).await {
            for number in 0..3 {
                // The message comes back, or the connection is lost.
                let went = in_time(ws.send(number.to_string())).await.is_ok();
                let came = in_time(ws.recv()).await;
                assert!(!matches!(came, Ok(Some(_))) || went);
            }
        }
        _ = leave.send(());
        let served = in_time(serving).await.unwrap();
        // The tasks that answer requests hold the counter.
        in_time(async {
            while Arc::strong_count(&sent) > 1 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        usize::from(served.is_none())
    })
    .await;
}

#[tokio::test]
async fn a_window_opened_too_far_after_the_answer_is_an_error_of_the_stream() {
    let (address, _, _leave) = start().await;
    let mut wire = Wire::open(address, &[]).await;
    wire.headers(1, &get_of("/page")).await;
    body(&mut wire, 1).await;
    // The request continues, but h2 no longer checks the window of the stream.
    let largest = frame(WINDOW_UPDATE, 0, 1, &(u32::MAX >> 1).to_be_bytes());
    wire.send([&largest[..], &largest].concat()).await;
    let reset = wire.next_of(RST_STREAM, 1).await;
    assert_eq!(reset.code(), FLOW_CONTROL_ERROR);
    wire.connect(3).await;
}
