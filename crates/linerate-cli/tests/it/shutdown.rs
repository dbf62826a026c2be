//! The end of the server.

use std::{
    io::Read,
    time::{Duration, Instant},
};

use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};

use crate::support::{PATIENCE, Server, close_code};

#[tokio::test]
async fn sigterm_closes_websockets_with_1001_and_ends_without_an_error() {
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start();
        let mut echo = server.connect("/echo").await;
        let mut counters = server.connect("/counters").await;
        let mut upload = server.connect_upload().await;
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        // All are known to be served, not merely accepted by the kernel.
        echo.send("Spam").await.unwrap();
        echo.recv().await.unwrap();
        upload
            .send(r#"{"type":"start","files":[{"name":"a.log","size":9}]}"#)
            .await
            .unwrap();
        upload.recv().await.unwrap();

        server.signal(signal);
        for ws in [&mut echo, &mut counters, &mut upload] {
            while timeout(PATIENCE, ws.recv())
                .await
                .unwrap()
                .unwrap()
                .is_some()
            {}
            assert_eq!(close_code(ws).await, 1001);
            assert_eq!(ws.closed().unwrap().1, "server shuts down");
        }
        timeout(PATIENCE, idle.read_to_end(&mut Vec::new()))
            .await
            .unwrap()
            .ok();
        let status = tokio::task::spawn_blocking(move || server.child.wait().unwrap());
        assert!(timeout(PATIENCE, status).await.unwrap().unwrap().success());
    }
}

#[tokio::test]
async fn a_client_that_does_not_answer_delays_the_end_by_seconds_only() {
    let mut server = Server::start();
    let mut ws = server.connect("/echo").await;
    ws.send("Spam").await.unwrap();
    ws.recv().await.unwrap();
    // From here on nobody reads: the runtime of this connection stands still.
    let started = Instant::now();
    server.signal("-TERM");
    let status = server.child.wait().unwrap();
    assert!(status.success());
    assert!(started.elapsed() < Duration::from_secs(15));
    drop(ws);
}

#[tokio::test]
async fn g07_who_connects_while_others_are_sent_away_is_sent_on_at_once() {
    let server = Server::start();
    let mut ws = server.connect("/connection/websocket").await;
    server.signal("-TERM");
    let leaves = async { while TcpStream::connect(server.address).await.is_ok() {} };
    timeout(PATIENCE, leaves).await.unwrap();
    ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
    let gone = async { while ws.recv().await.unwrap().is_some() {} };
    timeout(PATIENCE, gone).await.unwrap();
    assert_eq!(close_code(&mut ws).await, 3001);
}

#[test]
fn a_log_that_goes_into_a_file_has_no_colours() {
    let mut server = Server::start_logging();
    server.signal("-TERM");
    let mut log = String::new();
    let mut stderr = server.child.stderr.take().unwrap();
    stderr.read_to_string(&mut log).unwrap();
    assert!(log.contains("serving address=127.0.0.1:"), "{log}");
    assert!(!log.contains('\x1b'), "{log:?}");
}
