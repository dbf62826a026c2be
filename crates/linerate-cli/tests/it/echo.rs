//! `linerate echo`.

use std::process::Command;

use linerate::{Client, Message, Options};

use crate::support::{Server, linerate};

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
    let server = Server::start_verb("echo", &["--tls-self-signed"]);
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
