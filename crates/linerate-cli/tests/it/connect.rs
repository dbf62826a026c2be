//! Tests of `linerate connect`: with pipes here, with a terminal in `prompt`.

mod network;
mod prompt;
mod versions;

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, Output, Stdio},
    sync::Arc,
};

use linerate::{
    CloseCode, Incoming, Message, Request, Result, WebSocket, tls::rustls::pki_types::PrivateKeyDer,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};

use crate::support::{Server, linerate, run_with_input};

/// Runs `linerate connect` with an input that ends.
async fn connect(arguments: &[&str], input: &[u8]) -> Output {
    connect_with(&[], arguments, input).await
}

/// Runs `linerate connect` with these environment variables.
async fn connect_with(variables: &[(&str, &str)], arguments: &[&str], input: &[u8]) -> Output {
    let mut command = linerate(&["connect"]);
    command.args(arguments).envs(variables.iter().copied());
    let input = input.to_vec();
    let run = tokio::task::spawn_blocking(move || run_with_input(&mut command, &input));
    run.await.unwrap()
}

/// Starts a client whose input stays open, and waits until its first line has been echoed.
fn chatting_client(server: &Server) -> (Child, ChildStdin) {
    let mut child = linerate(&["connect", &server.url("/echo")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hi\n").unwrap();
    let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "hi\n");
    (child, stdin)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs a server with this handler in this process until the sender is dropped.
async fn serve<H, F>(server: linerate::Server, handler: H) -> (u16, oneshot::Sender<()>)
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(server.serve(listener, handler, async { _ = stopped.await }));
    (port, stop)
}

/// Runs a server whose handler decides about each request, until the sender is dropped.
async fn serve_incoming<H, F>(handler: H) -> (u16, oneshot::Sender<()>)
where
    H: Fn(Incoming) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { _ = stopped.await };
    tokio::spawn(linerate::Server::new().serve_incoming(listener, handler, shutdown));
    (port, stop)
}

#[tokio::test]
async fn compression_is_offered_and_told_unless_it_is_off() {
    let server = Server::start_verb("echo", &["--compression", "on"]);
    let url = server.url("/");
    let line = "to be or not to be, that is the question ".repeat(5) + "\n";
    for (flags, told) in [
        (&[][..], ", compressed with 12 bits and takeover\n"),
        (
            &["--compression", "each"],
            ", compressed with 12 bits and no takeover\n",
        ),
        (&["--compression", "off"], "\n"),
    ] {
        let arguments = [&[&*url], flags].concat();
        let output = connect(&arguments, line.repeat(2).as_bytes()).await;
        assert_eq!(text(&output.stdout), line.repeat(2));
        let notes = text(&output.stderr);
        assert!(
            notes.starts_with(&format!("connected to {url}{told}")),
            "{notes}"
        );
    }
    let output = connect(&[&url, "--json"], b"").await;
    let first = text(&output.stdout).lines().next().unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(first["compression_window_bits"], json!(12));
}

#[tokio::test]
async fn lines_are_sent_and_their_echoes_shown() {
    let server = Server::start();
    let output = connect(&[&server.url("/echo")], "hi\ngrößer €\n".as_bytes()).await;
    assert_eq!(text(&output.stdout), "hi\ngrößer €\n");
    let notes = text(&output.stderr);
    assert!(notes.starts_with("connected to ws://"), "{notes}");
    assert!(notes.ends_with("closed: 1000\n"), "{notes}");
    assert!(output.status.success());
}

#[tokio::test]
async fn much_input_comes_back_whole() {
    let server = Server::start();
    let input: String = (0..20_000)
        .map(|number| format!("{number} {}\n", "x".repeat(300)))
        .collect();
    let output = connect(&[&server.url("/echo")], input.as_bytes()).await;
    assert!(
        output.stdout == input.as_bytes(),
        "6 MB are echoed unchanged"
    );
    assert!(output.status.success());
}

#[tokio::test]
async fn a_transcript_has_one_json_object_a_line() {
    let server = Server::start();
    let url = server.url("/echo");
    let output = connect(&[&url, "--json"], b"hi").await;
    let events: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            assert!(
                event
                    .as_object_mut()
                    .unwrap()
                    .remove("at_ms")
                    .unwrap()
                    .is_u64()
            );
            event
        })
        .collect();
    assert_eq!(
        events,
        [
            json!({"event": "open", "url": url, "subprotocol": null}),
            json!({"event": "sent", "kind": "text", "text": "hi"}),
            json!({"event": "message", "kind": "text", "text": "hi"}),
            json!({"event": "close", "code": 1000, "reason": "", "clean": true}),
        ]
    );
    assert!(output.stderr.is_empty());
}

#[tokio::test]
async fn the_request_carries_what_was_asked_for() {
    let (port, _stop) = serve_incoming(|incoming| async move {
        let request = incoming.request().clone();
        let mut ws = incoming.with_subprotocols(&["b"]).accept().await?;
        for name in ["x-one", "x-two", "origin", "sec-websocket-protocol"] {
            let value = request.header(name).unwrap_or_default();
            ws.send(String::from_utf8_lossy(value).into_owned()).await?;
        }
        ws.send(vec![0xAB; 40]).await?;
        while ws.recv().await?.is_some() {}
        Ok(())
    })
    .await;
    let (url, origin) = (
        format!("ws://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}"),
    );
    let arguments = [
        "--header",
        "X-One: 1",
        "-H",
        "X-Two:a: b",
        "--origin",
        &origin,
    ];
    let output = connect(
        &[
            &[&*url, "--subprotocol", "a", "--subprotocol", "b"],
            &arguments[..],
        ]
        .concat(),
        b"",
    )
    .await;
    let preview = format!("binary, 40 bytes: {} …", ["ab"; 32].join(" "));
    assert_eq!(
        text(&output.stdout),
        format!("1\na: b\n{origin}\na, b\n{preview}\n")
    );
    assert!(text(&output.stderr).contains(", subprotocol b, compressed with "));
}

#[tokio::test]
async fn pongs_and_a_farewell_of_the_server_are_told() {
    let (port, _stop) = serve(linerate::Server::new(), |mut ws, _| async move {
        let line = ws.recv().await?;
        assert_eq!(line.as_ref().and_then(Message::as_text), Some("go on"));
        // Long enough for several Pings, however slow the machine.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        ws.close(CloseCode::SERVICE_RESTART, "back\u{1b} soon")
            .await?;
        Ok(())
    })
    .await;
    let url = format!("ws://127.0.0.1:{port}/");
    let output = connect(&[&url, "--ping", "0.1", "--wait", "30"], b"go on\n").await;
    let notes = text(&output.stderr);
    assert!(notes.contains("\npong after "), "{notes}");
    assert!(
        notes.ends_with("closed: 1012 back\\u{1b} soon\n"),
        "{notes}"
    );
    assert!(output.status.success());
}

#[tokio::test]
async fn ctrl_c_closes_in_order() {
    let server = Server::start();
    let (child, stdin) = chatting_client(&server);
    let pid = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    // The input stays open, so only the signal can end the client.
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(text(&output.stderr).ends_with("closed: 1000\n"));
    drop(stdin);
}

#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_error() {
    let server = Server::start();
    let (mut client, mut stdin) = chatting_client(&server);
    drop(client.stdout.take());
    stdin.write_all(b"more\n").unwrap();
    let output = client.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(
        text(&output.stderr).lines().count(),
        1,
        "only the line that says that it is connected"
    );
}

#[tokio::test]
async fn what_goes_wrong_is_told_and_an_error() {
    let server = Server::start();
    let echo = server.url("/echo");
    for (arguments, input, expected) in [
        (
            vec!["http://127.0.0.1/"],
            &b""[..],
            "must start with ws:// or wss://",
        ),
        (
            vec!["ws://127.0.0.1:1/"],
            b"",
            "cannot connect to 127.0.0.1:1: Connection refused",
        ),
        (vec![&*server.url("/nothing")], b"", "404"),
        (
            vec![&*echo, "--origin", "https://elsewhere.example"],
            b"",
            "403",
        ),
        (
            vec![&*echo],
            b"a\n\xff\n",
            "line 2 of the input is not valid UTF-8",
        ),
        (
            vec!["wss://127.0.0.1:1/", "--tls-ca", "/nowhere.pem"],
            b"",
            "cannot read /nowhere.pem",
        ),
    ] {
        let output = connect(&arguments, input).await;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let message = text(&output.stderr);
        let error = message.lines().last().unwrap();
        assert!(error.starts_with("Error: "), "{arguments:?}: {message}");
        assert!(error.contains(expected), "{arguments:?}: {message}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_an_error() {
    let mut server = Server::start();
    let (mut client, stdin) = chatting_client(&server);
    server.child.kill().unwrap();
    assert_eq!(client.wait().unwrap().code(), Some(1));
    let mut message = String::new();
    client
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut message)
        .unwrap();
    assert!(message.contains("without a closing handshake"), "{message}");
    drop(stdin);
}

#[tokio::test]
async fn a_certificate_must_be_trusted() {
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = linerate::tls::server_config(vec![certified.cert.der().clone()], key).unwrap();
    let server = linerate::Server::new().with_tls(Arc::new(config));
    let (port, _stop) = serve(server, |mut ws, _| async move {
        while let Some(message) = ws.recv().await? {
            ws.send(message).await?;
        }
        Ok(())
    })
    .await;
    let url = format!("wss://127.0.0.1:{port}/");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("connect-ca.pem");
    std::fs::write(&file, certified.cert.pem()).unwrap();
    let file = file.to_str().unwrap();

    let output = connect(&[&url], b"hi\n").await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("certificate"),
        "{}",
        text(&output.stderr)
    );
    let of_system = [("SSL_CERT_FILE", file)];
    for (variables, trust) in [
        (&[][..], &["--tls-ca", file][..]),
        (&[], &["--tls-insecure"]),
        (&of_system, &[]),
        (&of_system, &["--tls-roots", "system"]),
    ] {
        let output = connect_with(variables, &[&[&*url], trust].concat(), b"hi\n").await;
        assert_eq!(text(&output.stdout), "hi\n", "{}", text(&output.stderr));
        assert!(output.status.success());
    }

    // As in a container without certificates.
    let empty = tempfile::tempdir().unwrap();
    let no_roots = [
        ("SSL_CERT_FILE", "/dev/null"),
        ("SSL_CERT_DIR", empty.path().to_str().unwrap()),
    ];
    for (arguments, expected) in [
        (&[&*url][..], "certificate"),
        (
            &[&url, "--tls-roots", "system"],
            "cannot use the system's root certificates",
        ),
    ] {
        let output = connect_with(&no_roots, arguments, b"").await;
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}
