//! Tests of `linerate echo`.

use std::{process::Command, time::Duration};

use linerate::{Client, Message, Options};
use linerate_reactor::DriverKind;
use tokio::time::{sleep, timeout};

use crate::support::{PATIENCE, Server, linerate};

#[tokio::test]
async fn messages_up_to_64_mib_come_back_on_any_path() {
    let server = Server::start_verb("echo", &[]);
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 64 << 20;
    let client = Client::new().with_options(options);
    for (path, message) in [
        ("/", Message::from("Spam")),
        ("/any/path?at=all", Message::from(vec![7; 64 << 20])),
    ] {
        let mut ws = client.connect(&server.url(path)).await.unwrap();
        ws.send(message.clone()).await.unwrap();
        assert!(ws.recv().await.unwrap() == Some(message), "{path}");
    }
}

/// Returns the memory of a server, without file-backed pages.
fn memory(server: &Server) -> u64 {
    let status = server.process().status().unwrap();
    status.bytes("RssAnon:").unwrap()
}

#[tokio::test]
async fn memory_of_large_messages_is_kept_for_the_next_but_not_for_ever() {
    let server = Server::start_verb("echo", &[]);
    let before = memory(&server);
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 16 << 20;
    let client = Client::new().with_options(options);
    let url = server.url("/");
    let echo = async || {
        let message = Message::from(vec![7; 16 << 20]);
        let mut ws = client.connect(&url).await.unwrap();
        ws.send(message.clone()).await.unwrap();
        assert!(ws.recv().await.unwrap() == Some(message));
    };
    tokio::join!(echo(), echo(), echo(), echo());
    let enough = before + (32 << 20);
    assert!(
        memory(&server) > enough,
        "the server has kept no buffers, so this test proves nothing"
    );
    let given_back = async {
        while memory(&server) > enough {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, given_back).await.unwrap();
}

#[tokio::test]
async fn messages_are_compressed_if_asked_for() {
    let text = "All work and no play makes Jack a dull boy. ".repeat(10);
    let ways = [("off", None), ("each", Some(false)), ("on", Some(true))];
    let engines = ["tokio", "reactor"];
    let cases = engines
        .iter()
        .flat_map(|engine| ways.map(|way| (engine, way)));
    for (engine, (how, takeover)) in cases {
        let flags = ["--engine", engine, "--compression", how];
        let server = Server::start_verb("echo", &flags);
        let mut ws = linerate::connect(&server.url("/")).await.unwrap();
        assert_eq!(ws.compression().map(|context| context.takeover), takeover);
        for _ in 0..2 {
            ws.send(text.as_str()).await.unwrap();
            let echoed = ws.recv().await.unwrap();
            assert_eq!(echoed, Some(Message::from(text.as_str())));
        }
    }
}

#[test]
fn a_signal_right_after_the_address_stops_in_order() {
    for verb in ["echo", "serve"] {
        let mut server = Server::start_verb(verb, &[]);
        server.signal("-TERM");
        assert!(server.child.wait().unwrap().success(), "{verb}");
    }
}

#[test]
fn tls_needs_no_certificate_of_ones_own() {
    for engine in ["reactor", "tokio"] {
        let flags = ["--tls-self-signed", "--engine", engine];
        let server = Server::start_verb("echo", &flags);
        let url = format!("wss://{}/", server.address);
        let connect = |flags: &[&str]| -> Command {
            let mut command = linerate(&["connect", &url]);
            command.args(flags).stdin(std::process::Stdio::null());
            command
        };
        assert!(connect(&["--tls-insecure"]).status().unwrap().success());
        let refused = connect(&[]).output().unwrap();
        assert_eq!(refused.status.code(), Some(1));
    }
}

#[tokio::test]
async fn the_reactor_sends_messages_back_until_it_is_stopped() {
    for driver in DriverKind::ALL {
        if let Err(missing) = driver.check() {
            linerate_testkit::skip(missing);
            continue;
        }
        let flags = ["--engine", "reactor", "--driver", driver.as_str()];
        sends_messages_back_until_it_is_stopped(&flags).await;
    }
}

async fn sends_messages_back_until_it_is_stopped(flags: &[&str]) {
    let mut server = Server::start_verb("echo", flags);
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 64 << 20;
    let client = Client::new().with_options(options);
    let mut ws = client.connect(&server.url("/any/path")).await.unwrap();
    for message in [
        Message::from("Spam"),
        Message::from("€".repeat(100_000)),
        Message::from(vec![7; 64 << 20]),
    ] {
        ws.send(message.clone()).await.unwrap();
        assert!(ws.recv().await.unwrap() == Some(message));
    }
    server.signal("-TERM");
    assert_eq!(ws.recv().await.unwrap(), None);
    assert_eq!(crate::support::close_code(&mut ws).await, 1001);
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn a_driver_is_refused_without_the_reactor_and_if_it_is_unknown() {
    let flags = ["echo", "--listen", "127.0.0.1:0", "--driver"];
    let complaint = |driver| {
        let output = linerate(&flags).arg(driver).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(complaint("epoll").contains("--engine reactor"));
    assert!(complaint("kqueue").contains("io-uring"));
}
