//! Servers: limits, decisions, and the end of handlers and of the server itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use linerate::{
    Client, CloseCode, Error, MessageKind, Options, Server,
    handshake::{Origin, OriginPolicy},
};
use linerate_testkit::Frame;

use crate::{
    raw::{REQUEST, Raw, in_time, with_line},
    support::{Running, echo},
};

/// Returns the first byte and the payload of a Close frame.
fn close(code: u16) -> (u8, Vec<u8>) {
    (0x88, code.to_be_bytes().to_vec())
}

#[tokio::test]
async fn one_connection_too_many_is_refused_with_503() {
    let server = Running::start(Server::new().with_connections_max(2), echo).await;
    let first = Raw::open(server.address).await;
    let mut second = Raw::open(server.address).await;
    let mut third = Raw::connect(server.address).await;
    third.send(REQUEST).await;
    let answer = String::from_utf8(third.rest().await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
        "{answer}"
    );

    let error = linerate::connect(&server.url()).await.unwrap_err();
    assert!(
        matches!(&error, Error::StatusUnexpected(response) if response.status == 503),
        "{error}"
    );

    drop(first);
    // The place becomes free once the server has noticed the end.
    let mut fourth = loop {
        if let Ok(ws) = linerate::connect(&server.url()).await {
            break ws;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    fourth.send("Spam").await.unwrap();
    assert_eq!(in_time(fourth.recv()).await.unwrap(), Some("Spam".into()));
    second.send_frame(Frame::new(0x1, b"Spam")).await;
    assert_eq!(second.frame().await, Some((0x81, b"Spam".to_vec())));
    drop((second, fourth));
    server.stop().await;
}

#[tokio::test]
async fn k08_the_end_of_a_handler_closes_its_connection_only() {
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
    let mut other = Raw::open(server.address).await;
    other.send_frame(Frame::new(0x1, b"start")).await;
    for (path, code) in [
        ("/ends", 1000),
        ("/fails", 1011),
        ("/panics", 1011),
        ("/drops", 1001),
    ] {
        let mut raw = Raw::connect(server.address).await;
        raw.send(REQUEST.replace("/chat", path)).await;
        raw.head().await;
        raw.send_frame(Frame::new(0x1, b"start")).await;
        assert_eq!(raw.frame().await, Some(close(code)), "{path}");
        raw.send_frame(Frame::new(0x8, &code.to_be_bytes())).await;
        assert_eq!(raw.frame().await, None, "{path}");
    }
    other.send_frame(Frame::new(0x1, b"Spam")).await;
    assert_eq!(other.frame().await, Some((0x81, b"Spam".to_vec())));
    drop(other);
    server.abort();
}

#[tokio::test]
async fn k08_a_handler_that_panics_before_its_first_await_closes_with_1011() {
    let server = Running::start(Server::new(), |ws, request| {
        assert_ne!(request.path(), "/chat", "on purpose");
        echo(ws, request)
    })
    .await;
    let mut raw = Raw::open(server.address).await;
    assert_eq!(raw.frame().await, Some(close(1011)));
    drop(raw);
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    ws.send("Spam").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn a_handler_may_hand_its_connection_to_another_task() {
    let server = Running::start(Server::new(), |ws, request| async move {
        tokio::spawn(echo(ws, request));
        Ok(())
    })
    .await;
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    for _ in 0..3 {
        ws.send("Spam").await.unwrap();
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    }
    let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
    assert!(closed.clean);
    server.stop().await;
}

#[tokio::test]
async fn shutdown_closes_with_1001_and_waits() {
    let ended = Arc::<AtomicUsize>::default();
    let counter = ended.clone();
    let server = Running::start(Server::new(), move |ws, request| {
        let counter = counter.clone();
        async move {
            let result = echo(ws, request).await;
            counter.fetch_add(1, Ordering::Relaxed);
            result
        }
    })
    .await;
    let address = server.address;
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(linerate::connect(&server.url()).await.unwrap());
    }
    // One client has not finished its handshake.
    let handshaking = Raw::connect(address).await;
    let clients = tokio::spawn(async move {
        for mut ws in clients {
            assert_eq!(in_time(ws.recv()).await.unwrap(), None);
            ws.close(CloseCode::NORMAL, "").await.unwrap();
            let closed = ws.closed().unwrap();
            assert_eq!(
                (closed.code, closed.reason()),
                (1001, "server shutting down")
            );
        }
        drop(handshaking);
    });
    in_time(server.stop()).await;
    clients.await.unwrap();
    assert_eq!(
        ended.load(Ordering::Relaxed),
        10,
        "the handlers must end first"
    );
    let refused = tokio::net::TcpStream::connect(address).await;
    assert!(refused.is_err(), "the port is no longer open");
}

#[tokio::test]
async fn shutdown_waits_for_nobody_longer_than_the_budget() {
    let mut options = Options::default();
    options.config.close_timeout = Duration::from_millis(100);
    let server = Running::start(Server::new().with_options(options), echo).await;
    let mut silent = Raw::open(server.address).await;
    in_time(server.stop()).await;
    assert_eq!(silent.frame().await.unwrap().0, 0x88);
}

#[tokio::test]
async fn deadlines_of_a_server_are_kept_on_real_sockets() {
    let mut options = Options::default();
    options.config.ping_interval = Some(Duration::from_millis(100));
    options.config.ping_timeout = Duration::from_millis(100);
    options.config.close_timeout = Duration::from_millis(100);
    let server = Running::start(Server::new().with_options(options), echo).await;
    let mut silent = Raw::open(server.address).await;
    assert_eq!(silent.frame().await.unwrap().0, 0x89);
    assert_eq!(silent.frame().await, Some(close(1011)));
    assert_eq!(silent.frame().await, None);
    drop(silent);
    server.stop().await;
}

#[tokio::test]
async fn deadlines_are_kept_after_the_future_of_the_server_was_dropped() {
    let mut options = Options::default();
    options.config.ping_interval = Some(Duration::from_millis(100));
    let server = Running::start(Server::new().with_options(options), echo).await;
    let mut silent = Raw::open(server.address).await;
    server.abort();
    assert_eq!(silent.frame().await.unwrap().0, 0x89);
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_given_up() {
    let mut options = Options::default();
    options.config.ping_interval = Some(Duration::from_millis(100));
    options.config.ping_timeout = Duration::from_millis(100);
    options.config.close_timeout = Duration::from_millis(100);
    let (report, errors) = tokio::sync::mpsc::unbounded_channel();
    let server = Running::start(Server::new().with_options(options), move |mut ws, _| {
        let report = report.clone();
        async move {
            loop {
                if let Err(error) = ws.send(vec![0; 100_000]).await {
                    report.send(error.to_string()).unwrap();
                    return Err(error);
                }
            }
        }
    })
    .await;
    let mut errors = errors;
    let raw = Raw::open(server.address).await;
    let error = in_time(errors.recv()).await.unwrap();
    assert_eq!(error, "connection is closing or closed");
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn origins_are_those_that_the_policy_allows() {
    let page: Origin = "https://good.example".parse().unwrap();
    let policy = OriginPolicy::List(vec![page.clone()]);
    let server = Running::start(Server::new().with_origins(policy), echo).await;
    let allowed = Client::new().with_origin(page);
    drop(allowed.connect(&server.url()).await.unwrap());
    for line in [
        "Origin: https://evil.example",
        "Origin: http://good.example",
    ] {
        let mut raw = Raw::connect(server.address).await;
        raw.send(with_line(line)).await;
        let answer = String::from_utf8(raw.rest().await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    }
    server.abort();
}

#[tokio::test]
async fn counters_count_what_passes() {
    let mut options = Options::default();
    let counters = Arc::new(linerate::Counters::default());
    options.counters = Some(counters.clone());
    let server = Running::start(Server::new().with_options(options), echo).await;
    let mut raw = Raw::open(server.address).await;
    raw.send_frame(Frame::new(0x1, b"Spam")).await;
    raw.send_frame(Frame::new(0x2, b"eg").with_fin(false)).await;
    raw.send_frame(Frame::new(0x0, b"gs")).await;
    raw.frame().await;
    raw.frame().await;
    assert_eq!(
        (counters.messages_received(), counters.messages_sent()),
        (2, 2)
    );
    assert_eq!((counters.bytes_received(), counters.bytes_sent()), (26, 12));
    assert_eq!(
        (counters.connections(), counters.connections_total()),
        (1, 1)
    );
    drop(raw);
    server.stop().await;
    assert_eq!(
        (counters.connections(), counters.connections_total()),
        (0, 1)
    );
}

#[tokio::test]
async fn many_connections_on_many_threads_lose_nothing() {
    // Other tests run on one thread. Here, handlers, drivers and clients run on several.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    let work = runtime.spawn(async {
        let mut options = Options::default();
        options.config.ping_interval = Some(Duration::from_millis(1));
        options.send_queue_bytes_max = 1_000;
        options.recv_queue_bytes_max = 1_000;
        let server = Server::new().with_options(options.clone());
        let server = Running::start(server, |ws, _| async move {
            let (sender, mut receiver) = ws.split();
            let work = tokio::spawn(async move {
                while let Some(message) = receiver.recv().await? {
                    sender.send(message).await?;
                }
                Ok(())
            });
            work.await.expect("the task does not panic")
        })
        .await;
        let client = Client::new().with_options(options);
        let mut clients = Vec::new();
        for number in 0..16 {
            let (client, url) = (client.clone(), server.url());
            clients.push(tokio::spawn(async move {
                let (sender, mut receiver) = client.connect(&url).await.unwrap().split();
                let send = tokio::spawn(async move {
                    for message in 0..500 {
                        sender.send(format!("{number}/{message}")).await.unwrap();
                        if message % 50 == 0 {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    }
                    sender
                });
                for message in 0..500 {
                    let received = receiver.recv().await.unwrap().unwrap();
                    assert_eq!(received.as_text(), Some(&*format!("{number}/{message}")));
                }
                let sender = send.await.unwrap();
                let closed = sender.close(CloseCode::NORMAL, "").await.unwrap();
                assert!(closed.clean);
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
        server.stop().await;
    });
    in_time(work).await.unwrap();
    runtime.shutdown_background();
}

#[test]
fn k07_round_trips_on_many_threads_never_miss_a_wake_up() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = Running::echo().await;
        let mut clients = Vec::new();
        for _ in 0..4 {
            // Receiving on a client's connection and driving it are different tasks.
            let mut ws = linerate::connect(&server.url()).await.unwrap();
            clients.push(tokio::spawn(async move {
                for number in 0..1_000 {
                    let text = number.to_string();
                    ws.send_text(&text).await.unwrap();
                    let echoed = in_time(ws.recv()).await.unwrap().unwrap();
                    assert_eq!(echoed.as_text(), Some(&*text));
                }
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
        server.stop().await;
    });
}

#[tokio::test]
async fn a_message_of_either_kind_comes_back_from_a_writer() {
    let server = Running::echo().await;
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    for kind in [MessageKind::Text, MessageKind::Binary] {
        let mut writer = ws.writer(kind);
        for piece in "größer".as_bytes().chunks(1) {
            writer.write(piece).await.unwrap();
        }
        writer.finish().await.unwrap();
        let message = in_time(ws.recv()).await.unwrap().unwrap();
        assert_eq!(message.kind(), kind);
        assert_eq!(message.as_bytes(), "größer".as_bytes());
    }
    drop(ws);
    server.stop().await;
}
