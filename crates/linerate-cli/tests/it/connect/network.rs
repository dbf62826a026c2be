//! Tests of binary input, round-trip times, proxies and redirects.

use std::{
    net::SocketAddr,
    process::{Output, Stdio},
};

use linerate_testkit::server::{ServerProcess, free_port};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{connect, serve, serve_incoming, text};
use crate::support::{Server, linerate};

/// The messages in a transcript, sent or received.
fn messages(output: &Output, event: &str) -> Vec<Value> {
    let lines = text(&output.stdout).lines();
    let events = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    events
        .filter(|line| line["event"] == event)
        .map(|line| json!([line["kind"], line.get("hex").or(line.get("text"))]))
        .collect()
}

#[tokio::test]
async fn lines_may_stand_for_bytes_and_files_go_before_them() {
    let server = Server::start();
    let url = server.url("/echo");
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("two");
    std::fs::write(&file, b"\0\xff").unwrap();
    let file = file.to_str().unwrap();
    for (format, input) in [("hex", "de ad\nBEEF\n"), ("base64", "3q0=\nvu8\n")] {
        let arguments = [&url, "--json", "--input", format, "--file", file];
        let output = connect(&arguments, input.as_bytes()).await;
        let expected = ["00ff", "dead", "beef"].map(|hex| json!(["binary", hex]));
        for event in ["sent", "message"] {
            assert_eq!(messages(&output, event), expected, "{format}, {event}");
        }
        assert!(output.status.success());
    }
    let output = connect(&[&url, "--input", "hex"], b"00\nno\n").await;
    assert!(!output.status.success());
    let notes = text(&output.stderr);
    assert!(
        notes.contains("line 2 of the input is not an even number of hex digits"),
        "{notes}"
    );
}

#[tokio::test]
async fn round_trips_are_summed_up() {
    let server = Server::start();
    let arguments = [&server.url("/echo"), "--ping", "0.05", "--wait", "1"];
    let output = connect(&arguments, b"").await;
    let notes = text(&output.stderr);
    let sum = notes
        .lines()
        .find(|line| line.contains(" round trips: "))
        .unwrap();
    assert!(sum.ends_with(" ms (min/mean/max)"), "{notes}");
    let pongs = notes.matches("pong after").count();
    assert!(sum.starts_with(&format!("{pongs} ")), "{notes}");
}

/// Starts a proxy that connects to `server` whatever the request says. Returns its address and the
/// first lines of the requests.
async fn misleading(
    server: SocketAddr,
) -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, requests) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
            }
            let request = String::from_utf8(request).unwrap();
            asked
                .send(request.lines().next().unwrap().to_owned())
                .unwrap();
            let mut server = TcpStream::connect(server).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            tokio::spawn(async move {
                _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (address, requests)
}

/// Runs `linerate connect` with these environment variables and no input.
async fn with_environment(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = linerate(&["connect"]);
    command.args(arguments).stdin(Stdio::null());
    command.envs(variables.iter().copied());
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn the_environment_names_a_proxy_and_flags_overrule_it() {
    let (port, _stop) = serve(linerate::Server::new(), |mut ws, _| async move {
        ws.send("through").await
    })
    .await;
    let (proxy, mut asked) = misleading(([127, 0, 0, 1], port).into()).await;
    let proxy = format!("http://{proxy}");
    let url = "ws://linerate.invalid:81/";
    let output = with_environment(&[url], &[("HTTP_PROXY", &proxy)]).await;
    assert_eq!(
        text(&output.stdout),
        "through\n",
        "{}",
        text(&output.stderr)
    );
    assert_eq!(
        asked.recv().await.unwrap(),
        "CONNECT linerate.invalid:81 HTTP/1.1"
    );
    let proxied = connect(&[url, "--proxy", &proxy], b"").await;
    assert_eq!(text(&proxied.stdout), "through\n");
    for (arguments, variables) in [
        (&[url, "--no-proxy"][..], &[("http_proxy", &*proxy)][..]),
        (&[url], &[("http_proxy", &proxy), ("no_proxy", ".invalid")]),
        (&[url], &[("https_proxy", &proxy)]),
    ] {
        let output = with_environment(arguments, variables).await;
        assert!(!output.status.success());
        let notes = text(&output.stderr);
        assert!(notes.contains("cannot resolve linerate.invalid"), "{notes}");
    }
    let output = with_environment(&[url], &[("all_proxy", "socks4://x")]).await;
    let notes = text(&output.stderr);
    assert!(
        notes.contains("all_proxy: proxy URL must start with"),
        "{notes}"
    );
}

#[tokio::test]
async fn a_socks_proxy_is_a_flag_away() {
    let port = free_port();
    let arguments = format!("-i 127.0.0.1 -p {port} -u user -P pass");
    let arguments = |_: &std::path::Path| arguments.split(' ').map(str::to_owned).collect();
    let Some(proxy) = ServerProcess::start("microsocks", port, arguments) else {
        return;
    };
    let server = Server::start();
    let proxy = format!("socks5h://user:pass@{}", proxy.address());
    let output = connect(&[&server.url("/echo"), "--proxy", &proxy], b"hi\n").await;
    assert_eq!(text(&output.stdout), "hi\n", "{}", text(&output.stderr));
    let wrong = proxy.replace("pass", "wrong");
    let output = connect(&[&server.url("/echo"), "--proxy", &wrong], b"hi\n").await;
    let notes = text(&output.stderr);
    assert!(
        notes.contains("user and password rejected by the proxy"),
        "{notes}"
    );
    assert!(!notes.contains("wrong"), "{notes}");
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_asked_for_and_cookies_stay_behind() {
    let (port, _stop) = serve(linerate::Server::new(), |mut ws, request| async move {
        let cookie = request.header("cookie").unwrap_or(b"no cookie");
        ws.send(String::from_utf8_lossy(cookie).into_owned()).await
    })
    .await;
    let (first, _stop) = serve_incoming(move |incoming| async move {
        let refusal = linerate::handshake::Refusal::new(302, "elsewhere")?;
        let location = format!("ws://127.0.0.1:{port}/");
        incoming
            .refuse(refusal.with_header("Location", &location)?)
            .await
    })
    .await;
    let (direct, url) = (
        format!("ws://127.0.0.1:{port}/"),
        format!("ws://127.0.0.1:{first}/"),
    );
    let cookies = ["--cookie", "a=1", "--cookie", "b=2=3"];
    let output = connect(&[&[&*direct], &cookies[..]].concat(), b"").await;
    assert_eq!(text(&output.stdout), "a=1; b=2=3\n");
    let follow = [&[&*url, "--redirects", "1"], &cookies[..]].concat();
    assert_eq!(text(&connect(&follow, b"").await.stdout), "no cookie\n");
    let output = connect(&[&*url], b"").await;
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("status 302"));
}

#[tokio::test]
async fn a_server_that_is_silent_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let output = connect(&[&url, "--timeout", "0.1"], b"").await;
    assert!(!output.status.success());
    let notes = text(&output.stderr);
    assert!(
        notes.contains("opening handshake timed out after"),
        "{notes}"
    );
    assert!(notes.contains("the limit is 100ms"), "{notes}");
}
