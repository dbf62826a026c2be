//! Servers whose application decides about each request, and may wait before it does.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use linerate::{Client, Error, Incoming, Options, Result, Server, handshake::Refusal};
use linerate_proto::Role;
use linerate_testkit::Frame;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::{
    polls::{for_all_polls, poll_times},
    raw::{ACCEPTED, REQUEST, Raw, in_time, with_line},
    support::{Running, echo_on},
};

/// Reports when it is dropped.
struct Guard(mpsc::UnboundedSender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        _ = self.0.send(());
    }
}

fn guards() -> (
    impl Fn() -> Guard + Send + Sync,
    mpsc::UnboundedReceiver<()>,
) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (move || Guard(sender.clone()), receiver)
}

fn refusal(status: u16, text: &str) -> Refusal {
    Refusal::new(status, text).unwrap()
}

/// Returns the whole answer to a request that is refused.
async fn answer(server: &Running, request: impl AsRef<[u8]>) -> String {
    let mut raw = Raw::connect(server.address).await;
    raw.send(request).await;
    String::from_utf8(in_time(raw.rest()).await).unwrap()
}

/// A server whose handlers wait until they are told to decide, and then accept.
async fn deciding_later(server: Server) -> (Running, watch::Sender<bool>) {
    let (decide, decided) = watch::channel(false);
    let server = Running::start_incoming(server, move |incoming| {
        let mut decided = decided.clone();
        async move {
            _ = decided.wait_for(|decided| *decided).await;
            echo_on(incoming.accept().await?).await
        }
    })
    .await;
    (server, decide)
}

#[tokio::test]
async fn the_decision_may_wait_and_its_value_is_used_by_the_handler() {
    let server = Running::start_incoming(Server::new(), |incoming| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let Some(user) = incoming.request().cookie("user").map(str::to_owned) else {
            let refusal = refusal(401, "log in first").with_header("WWW-Authenticate", "Bearer")?;
            return incoming
                .refuse(refusal.with_body("application/json", "{}")?)
                .await;
        };
        let incoming = incoming
            .with_subprotocols(&["wamp", "soap"])
            .with_header("X-Seen", "yes");
        assert_eq!(
            incoming.subprotocol(),
            incoming.request().header("X-Expected").map(|_| "wamp")
        );
        let mut ws = incoming.accept().await?;
        let agreed = ws.subprotocol();
        ws.send(format!("{user} {agreed:?}")).await?;
        ws.recv().await.map(drop)
    })
    .await;

    let client = Client::new().with_cookie("user", "ann").unwrap();
    let mut ws = client.connect(&server.url()).await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("ann None".into()));
    let client = client
        .with_header("X-Expected", "wamp")
        .with_subprotocol("soap")
        .with_subprotocol("wamp");
    let mut ws = client.connect(&server.url()).await.unwrap();
    let greeting = in_time(ws.recv()).await.unwrap();
    assert_eq!(greeting, Some("ann Some(\"wamp\")".into()));
    drop(ws);

    let mut raw = Raw::connect(server.address).await;
    raw.send(with_line("Cookie: user=bob")).await;
    assert!(raw.head().await.contains("\r\nX-Seen: yes\r\n"));
    drop(raw);
    assert_eq!(
        answer(&server, REQUEST).await,
        "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nWWW-Authenticate: Bearer\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    );
    let head = REQUEST.replacen("GET", "HEAD", 1);
    assert!(answer(&server, head).await.starts_with("HTTP/1.1 405 "));
    in_time(server.stop()).await;
}

#[tokio::test]
async fn requests_that_break_a_rule_do_not_reach_the_application() {
    let server = Running::start_incoming(Server::new(), |incoming: Incoming| async move {
        panic!("{incoming:?} reached the application");
    })
    .await;
    for (request, status) in [
        (with_line("Origin: https://evil.example"), "403"),
        (with_line("Sec-WebSocket-Version: 13"), "400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), "400"),
    ] {
        let answer = answer(&server, request).await;
        assert_eq!(answer.split(' ').nth(1), Some(status), "{answer}");
    }
    in_time(server.stop()).await;
}

#[tokio::test]
async fn a_request_without_a_decision_is_refused_with_500() {
    let server = Running::start_incoming(Server::new(), |incoming: Incoming| {
        assert_ne!(incoming.request().path(), "/at-once", "on purpose");
        async move {
            match incoming.request().path() {
                "/dropped" => Ok(()),
                "/failed" => Err(Error::Abnormal),
                "/lingers" => {
                    drop(incoming);
                    std::future::pending().await
                }
                "/invalid" => {
                    let error = incoming.with_header("X", "a\r\nY: b").accept().await;
                    assert!(matches!(error, Err(Error::Build(_))), "{error:?}");
                    Ok(())
                }
                "/panics" => panic!("on purpose"),
                _ => incoming.accept().await.map(drop),
            }
        }
    })
    .await;
    for path in [
        "/at-once", "/dropped", "/failed", "/lingers", "/invalid", "/panics",
    ] {
        let answer = answer(&server, REQUEST.replace("/chat", path)).await;
        assert!(
            answer.starts_with("HTTP/1.1 500 Internal Server Error\r\n"),
            "{path}: {answer}"
        );
        assert!(
            answer.ends_with("\r\n\r\ninternal server error\n"),
            "{path}: {answer}"
        );
    }
    drop(Raw::open(server.address).await);
    in_time(server.stop()).await;
}

#[tokio::test]
async fn a_decision_that_takes_too_long_is_refused_with_503_and_dropped() {
    let (guard, mut dropped) = guards();
    let mut options = Options::default();
    options.handshake_timeout = Duration::from_millis(50);
    let server = Running::start_incoming(Server::new().with_options(options), move |incoming| {
        let guard = guard();
        async move {
            let _kept = (guard, incoming);
            std::future::pending().await
        }
    })
    .await;
    let answer = answer(&server, REQUEST).await;
    assert!(
        answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
        "{answer}"
    );
    assert!(
        answer.ends_with("\r\n\r\nserver took too long to decide\n"),
        "{answer}"
    );
    in_time(dropped.recv()).await.unwrap();
    in_time(server.stop()).await;
}

#[tokio::test]
async fn a_client_that_disconnects_drops_the_decision() {
    let (guard, mut dropped) = guards();
    let started = Arc::new(Notify::new());
    let starting = started.clone();
    let server = Running::start_incoming(Server::new().with_connections_max(1), move |incoming| {
        let guard = guard();
        starting.notify_one();
        async move {
            let _kept = (guard, incoming);
            std::future::pending().await
        }
    })
    .await;
    for early in [&b""[..], b"early"] {
        let mut raw = Raw::connect(server.address).await;
        raw.send([REQUEST.as_bytes(), early].concat()).await;
        in_time(started.notified()).await;
        drop(raw);
        in_time(dropped.recv()).await.unwrap();
    }
    in_time(server.stop()).await;
}

#[tokio::test]
async fn frames_before_the_answer_are_received_in_order() {
    const MESSAGES: usize = 2_000;
    let mut options = Options::default().without_compression();
    options.recv_queue_bytes_max = 1_000;
    let (server, decide) = deciding_later(Server::new().with_options(options)).await;
    let mut raw = Raw::connect(server.address).await;
    let messages = (0..MESSAGES).map(|number| [number as u8; 1_000]);
    let frames: Vec<u8> = messages
        .clone()
        .flat_map(|message| Frame::new(0x2, &message).to_role(Role::Server).to_bytes())
        .collect();
    let (mut reading, mut writing) = raw.stream.split();
    let write = async {
        use tokio::io::AsyncWriteExt;
        let (now, later) = frames.split_at(frames.len() / 2);
        writing.write_all(REQUEST.as_bytes()).await.unwrap();
        writing.write_all(now).await.unwrap();
        decide.send(true).unwrap();
        writing.write_all(later).await.unwrap();
    };
    let read = async {
        use tokio::io::AsyncReadExt;
        let mut expected = ACCEPTED.as_bytes().to_vec();
        for message in messages {
            expected.extend_from_slice(&Frame::new(0x2, &message).to_bytes());
        }
        let mut received = vec![0; expected.len()];
        reading.read_exact(&mut received).await.unwrap();
        assert!(received == expected);
    };
    in_time(async { tokio::join!(write, read) }).await;
    drop(raw);
    in_time(server.stop()).await;
}

#[tokio::test]
async fn a_client_cannot_make_the_server_store_much_before_the_answer() {
    let mut options = Options::default();
    options.recv_queue_bytes_max = 1_000;
    let (server, decide) = deciding_later(Server::new().with_options(options)).await;
    let mut raw = Raw::connect(server.address).await;
    raw.send(REQUEST).await;
    let zeros = vec![0; 1 << 20];
    let mut sent = 0;
    // The kernel's buffers have room for a few megabytes; the server must leave the rest to them.
    while let Ok(write) = tokio::time::timeout(
        Duration::from_millis(200),
        tokio::io::AsyncWriteExt::write(&mut raw.stream, &zeros),
    )
    .await
    {
        sent += write.unwrap();
        assert!(sent < 64 << 20, "the server reads without an end");
    }
    drop((raw, decide));
    in_time(server.stop()).await;
}

#[tokio::test]
async fn pending_decisions_count_as_connections() {
    const CONNECTIONS: usize = 200;
    let options = Server::new().with_connections_max(CONNECTIONS);
    let (server, decide) = deciding_later(options).await;
    let mut pending = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut raw = Raw::connect(server.address).await;
        raw.send(REQUEST).await;
        pending.push(raw);
    }
    let refused = answer(&server, REQUEST).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    decide.send(true).unwrap();
    for raw in &mut pending {
        assert_eq!(in_time(raw.head()).await, ACCEPTED);
    }
    drop(pending);
    in_time(server.stop()).await;
}

#[tokio::test]
async fn shutdown_refuses_those_who_wait_for_a_decision() {
    let (server, _decide) = deciding_later(Server::new()).await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut raw = Raw::connect(server.address).await;
        raw.send(REQUEST).await;
        waiting.push(raw);
    }
    // The server has accepted all of these when it answers this one.
    let late = answer(&server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(late.starts_with("HTTP/1.1 400 "), "{late}");
    let clients = async {
        for mut raw in waiting {
            let answer = String::from_utf8(raw.rest().await).unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            assert!(
                answer.ends_with("\r\n\r\nserver shutting down\n"),
                "{answer}"
            );
        }
    };
    in_time(async { tokio::join!(server.stop(), clients) }).await;
}

#[tokio::test]
async fn the_decision_may_be_made_by_another_task() {
    let (sender, mut incomings) = mpsc::unbounded_channel::<Incoming>();
    let server = Running::start_incoming(Server::new(), move |incoming| {
        _ = sender.send(incoming);
        std::future::ready(Ok(()))
    })
    .await;
    let url = server.url();
    let client = tokio::spawn(async move { linerate::connect(&url).await });
    let incoming = in_time(incomings.recv()).await.unwrap();
    let echoing = tokio::spawn(async move { echo_on(incoming.accept().await?).await });
    let mut ws = in_time(client).await.unwrap().unwrap();
    for _ in 0..3 {
        ws.send("Spam").await.unwrap();
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    }
    drop(ws);
    in_time(echoing).await.unwrap().unwrap();

    // A decision about a client that is gone fails.
    let mut raw = Raw::connect(server.address).await;
    raw.send(REQUEST).await;
    let incoming = in_time(incomings.recv()).await.unwrap();
    drop(raw);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let error = in_time(incoming.accept()).await.unwrap_err();
    assert!(matches!(error, Error::Abnormal), "{error}");
    in_time(server.stop()).await;
}

/// Decides in a future that is dropped after a number of polls.
async fn decide_and_drop<F: Future<Output = Result<bool>> + Send>(
    decide: impl Fn(Incoming) -> F + Send + Sync + Copy + 'static,
    check: impl AsyncFn(&mut Raw),
) {
    for_all_polls(0, async |polls| {
        let (report, dropped) = oneshot::channel();
        let report = Arc::new(Mutex::new(Some(report)));
        let server = Running::start_incoming(Server::new(), move |incoming| {
            let report = report.clone();
            async move {
                let decided = poll_times(decide(incoming), polls).await;
                let report = report.lock().unwrap().take();
                _ = report.unwrap().send(usize::from(decided.is_none()));
                Ok(())
            }
        })
        .await;
        let mut raw = Raw::connect(server.address).await;
        raw.send(REQUEST).await;
        match polls {
            0 => assert!(raw.head().await.starts_with("HTTP/1.1 500 ")),
            _ => in_time(check(&mut raw)).await,
        }
        drop(raw);
        let dropped = in_time(dropped).await.unwrap();
        in_time(server.stop()).await;
        dropped
    })
    .await;
}

#[tokio::test]
async fn accept_dropped_after_any_number_of_polls_opens_and_closes() {
    let accept = |incoming: Incoming| async { incoming.accept().await.map(|_| true) };
    decide_and_drop(accept, async |raw| {
        assert_eq!(raw.head().await, ACCEPTED);
        let (first, code) = raw.frame().await.unwrap();
        assert_eq!(first, 0x88);
        assert!([1000_u16, 1001].contains(&u16::from_be_bytes([code[0], code[1]])));
    })
    .await;
}

#[tokio::test]
async fn refuse_dropped_after_any_number_of_polls_refuses() {
    let refuse = |incoming: Incoming| async {
        incoming
            .refuse(refusal(404, "no such room"))
            .await
            .map(|()| true)
    };
    decide_and_drop(refuse, async |raw| {
        let answer = String::from_utf8(raw.rest().await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        assert!(answer.ends_with("\r\n\r\nno such room\n"), "{answer}");
    })
    .await;
}
