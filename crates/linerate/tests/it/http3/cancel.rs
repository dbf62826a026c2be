//! Futures dropped after any number of polls: no byte is lost and no frame is torn, on streams with
//! room for only a few bytes.

use std::{net::UdpSocket, sync::Arc};

use linerate::{Client, CloseCode, Message, Options, Server, WebSocket, tls};
use tokio::sync::oneshot;

use super::{Running, echo_http3};
use crate::{
    polls::{POLLS_MAX, for_all_polls, poll_times},
    raw::in_time,
    support::outlives,
    tls::certificate,
};

/// Returns options that split a message into many small pieces.
fn narrow() -> Options {
    let mut options = Options::default().without_compression();
    options.http3.stream_window_bytes = 100;
    options.send_queue_bytes_max = 1;
    options
}

fn start() -> Running {
    Running::start(Server::new().with_options(narrow()), echo_http3)
}

async fn connect(server: &Running) -> WebSocket {
    let client = server.client().with_options(narrow());
    in_time(client.connect(&server.url())).await.unwrap()
}

fn messages() -> Vec<Message> {
    vec![
        "größer €".into(),
        vec![7; 1_500].into(),
        "".into(),
        "κόσμε".repeat(50).into(),
    ]
}

#[tokio::test]
async fn recv_dropped_after_any_number_of_polls_loses_nothing() {
    let server = start();
    let mut polls = 0;
    loop {
        let (sender, mut receiver) = connect(&server).await.split();
        let sent = tokio::spawn(async move {
            for message in messages() {
                sender.send(message).await.unwrap();
            }
            sender
        });
        let mut cancelled = 0;
        for message in messages() {
            let received = match poll_times(receiver.recv(), polls).await {
                Some(received) => received,
                None => {
                    cancelled += 1;
                    in_time(receiver.recv()).await
                }
            };
            assert_eq!(received.unwrap(), Some(message), "{polls} polls");
        }
        drop(in_time(sent).await.unwrap());
        if cancelled == 0 {
            break;
        }
        polls += 1;
        assert!(polls < POLLS_MAX);
    }
    assert!(polls > 1, "no future was cancelled");
    server.abort();
}

#[tokio::test]
async fn send_dropped_after_any_number_of_polls_sends_all_or_nothing() {
    let server = start();
    let mut polls = 0;
    loop {
        let (sender, mut receiver) = connect(&server).await.split();
        let sent = tokio::spawn(async move {
            let (mut sent, mut cancelled) = (Vec::new(), 0);
            for message in messages() {
                match poll_times(sender.send(message.clone()), polls).await {
                    Some(result) => {
                        result.unwrap();
                        sent.push(message);
                    }
                    None => cancelled += 1,
                }
            }
            sender.send("last").await.unwrap();
            sent.push("last".into());
            (sent, cancelled, sender)
        });
        let mut received = Vec::new();
        while received.last() != Some(&Message::from("last")) {
            received.push(in_time(receiver.recv()).await.unwrap().unwrap());
        }
        let (sent, cancelled, sender) = in_time(sent).await.unwrap();
        assert_eq!(received, sent, "{polls} polls");
        drop(sender);
        if cancelled == 0 {
            break;
        }
        polls += 1;
        assert!(polls < POLLS_MAX);
    }
    assert!(polls > 1, "no future was cancelled");
    server.abort();
}

#[tokio::test]
async fn flush_and_close_dropped_after_any_number_of_polls_go_on_in_the_background() {
    let server = start();
    // A future that is never polled does nothing.
    let mut polls = 1;
    loop {
        let mut ws = connect(&server).await;
        ws.send(vec![7; 1_500]).await.unwrap();
        let flushed = poll_times(ws.flush(), polls).await;
        let received = in_time(ws.recv()).await.unwrap();
        assert_eq!(received, Some(vec![7; 1_500].into()), "{polls} polls");
        let closed = poll_times(ws.close(CloseCode::NORMAL, ""), polls).await;
        while in_time(ws.recv()).await.unwrap().is_some() {}
        let end = in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
        assert_eq!((end.code, end.clean), (1000, true), "{polls} polls");
        if flushed.is_some() && closed.is_some() {
            break;
        }
        polls += 1;
        assert!(polls < POLLS_MAX);
    }
    assert!(polls > 1, "no future was cancelled");
    server.abort();
}

#[tokio::test]
async fn connect_dropped_after_any_number_of_polls_leaves_the_server_alone() {
    let server = start();
    let client = server.client();
    let mut polls = 0;
    while poll_times(client.connect(&server.url()), polls)
        .await
        .is_none()
    {
        polls += 1;
        assert!(polls < POLLS_MAX);
    }
    assert!(polls > 1, "no future was cancelled");
    let mut ws = connect(&server).await;
    ws.send("Spam").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn serve_dropped_after_any_number_of_polls_leaves_open_connections_alone() {
    let (config, roots) = certificate("localhost");
    let server = Server::new().with_tls(Arc::new(config));
    let trusting = Arc::new(tls::client_config(roots));
    let client = Client::new().with_tls(trusting).with_http3();
    let mut went_on = 0;
    for_all_polls(0, async |polls| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let url = format!("wss://localhost:{}/", socket.local_addr().unwrap().port());
        let (leave, left) = oneshot::channel();
        let serving = server.clone().serve_http3(socket, echo_http3, async {
            _ = left.await;
        });
        let served = tokio::spawn(poll_times(serving, polls));
        // A client that connects after the server is gone gets no response.
        let opened = if polls == 0 {
            None
        } else {
            in_time(client.connect(&url)).await.ok()
        };
        _ = leave.send(());
        let (goes_on, dropped) = outlives(opened, served).await;
        went_on += usize::from(goes_on);
        dropped
    })
    .await;
    assert!(went_on > 0, "no connection outlived its server");
}
