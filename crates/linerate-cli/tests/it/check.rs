//! Tests of `linerate check`, with our servers and with broken ones.

mod deadlines;
mod tls;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    process::{Child, Output, Stdio},
    sync::Arc,
    thread,
};

use linerate_reactor::DriverKind;
use serde_json::Value;

use crate::support::{Server, linerate};

/// Checks a server; returns the lines and the exit status.
fn check(url: &str, flags: &[&str]) -> (Vec<Value>, Option<i32>) {
    let output: Output = linerate(&["check", url, "--json", "--jobs", "32"])
        .args(flags)
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (lines.collect(), output.status.code())
}

/// Asserts that everything about a server is right.
fn all_is_right(url: &str, flags: &[&str]) {
    // Sending single bytes in separate TLS records takes a while on a busy machine.
    let flags = [flags, &["--deadline", "10"]].concat();
    let (lines, status) = check(url, &flags);
    let others: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "input")
        .filter(|line| !matches!(line["verdict"].as_str(), Some("right" | "not applicable")))
        .collect();
    assert!(others.is_empty(), "{url}: {others:#?}");
    assert_eq!(status, Some(0));
    let right = lines.last().unwrap()["all"]["right"].as_u64().unwrap();
    assert!(right >= 600, "{right}");
}

#[test]
fn the_library_on_tokio_is_right() {
    let server = Server::start_verb("echo", &["--compression", "on"]);
    all_is_right(&server.url("/"), &["--strict"]);
}

#[test]
fn the_reactor_is_right_with_each_driver() {
    for driver in DriverKind::ALL {
        if let Err(missing) = driver.check() {
            linerate_testkit::skip(missing);
            continue;
        }
        let flags = ["--engine", "reactor", "--driver", driver.as_str()];
        let server = Server::start_verb("echo", &flags);
        all_is_right(&server.url("/"), &["--strict"]);
    }
}

#[test]
fn both_are_right_over_tls() {
    for engine in ["reactor", "tokio"] {
        let server = Server::start_verb("echo", &["--tls-self-signed", "--engine", engine]);
        let url = format!("wss://{}/", server.address);
        all_is_right(&url, &["--strict", "--insecure"]);
        let (_, status) = check(&url, &["--only", "V01"]);
        assert_eq!(status, Some(2), "the certificate is self-signed");
    }
}

#[test]
fn the_echo_of_serve_is_right() {
    let server = Server::start();
    all_is_right(&server.url("/echo"), &["--strict"]);
    all_is_right(&server.url("/echo"), &["--strict", "--http2"]);
}

#[test]
fn websockets_over_http2_are_right() {
    let server = Server::start_verb("echo", &["--compression", "on"]);
    all_is_right(&server.url("/"), &["--strict", "--http2"]);
    let server = Server::start_verb("echo", &["--tls-self-signed"]);
    let url = format!("wss://{}/", server.address);
    all_is_right(&url, &["--strict", "--insecure", "--http2"]);
}

#[test]
fn a_server_without_http2_is_not_asked_about_it() {
    let server = Server::start_verb("echo", &["--engine", "reactor"]);
    let (lines, status) = check(&server.url("/"), &["--only", "V01", "--only", "http2"]);
    assert_eq!(status, Some(0));
    let summary = lines.last().unwrap();
    let why = summary["left_out"][0].as_str().unwrap();
    assert!(why.contains("does not accept WebSockets"), "{why}");
    assert!(summary["areas"].get("http2").is_none(), "{summary}");
    let (_, status) = check(&server.url("/"), &["--http2"]);
    assert_eq!(status, Some(2));
}

#[test]
fn both_survive_floods_and_bombs() {
    // Decompression bombs apply only with compression, and HTTP/2 floods only with HTTP/2.
    for (engine, inputs) in [(["--compression", "on"], 21), (["--engine", "reactor"], 6)] {
        let server = Server::start_verb("echo", &engine);
        let flags = [
            "--stress",
            "--strict",
            "--only",
            "stress",
            "--deadline",
            "30",
        ];
        let (lines, status) = check(&server.url("/"), &flags);
        assert_eq!(status, Some(0), "{lines:#?}");
        assert_eq!(lines.last().unwrap()["all"]["right"], inputs);
    }
    let (_, status) = check("ws://192.0.2.1/", &["--stress"]);
    assert_eq!(status, Some(2), "ownership was not confirmed");
}

#[test]
fn a_process_is_as_before_behind_floods() {
    let server = Server::start_verb("echo", &[]);
    let pid = server.child.id().to_string();
    let flags = [
        "--stress",
        "--only",
        "R18",
        "--only",
        "R84",
        "--deadline",
        "30",
        "--settle",
        "12",
        "--pid",
        &pid,
    ];
    let (lines, status) = check(&server.url("/"), &flags);
    assert_eq!(status, Some(0), "{lines:#?}");
    let process: Vec<&Value> = lines.iter().filter(|line| line["row"] == "R12").collect();
    assert_eq!(process.len(), 3);
    for line in process {
        let figures = line["figures"].as_str().unwrap();
        assert!(
            figures.starts_with("memory ") && figures.contains("files"),
            "{line}"
        );
    }
    let (_, status) = check(
        &server.url("/"),
        &["--stress", "--only", "R18", "--pid", "4194304"],
    );
    assert_eq!(status, Some(2), "there is no such process");
}

/// Starts a server that runs `serve` on each connection after the opening handshake.
fn serve(serve: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                if open(&mut stream).is_some() {
                    serve(stream);
                }
            });
        }
    });
    url
}

/// Accepts any request with the key of the standard's example (RFC 6455 §1.3).
fn open(stream: &mut (impl Read + Write)) -> Option<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let has_key = head.contains("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    let answer =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    has_key.then(|| stream.write_all(answer).ok())?
}

/// Echoes each frame without checking it, whether or not it is masked.
fn parrot(mut stream: TcpStream) {
    while let Some((first, payload)) = short_frame(&mut stream) {
        let answer = [&[first, payload.len() as u8][..], &payload].concat();
        if stream.write_all(&answer).is_err() {
            return;
        }
        if first & 0xF == 0x8 {
            break;
        }
    }
    // Closing with unread input would reset the connection, and the echo might be lost.
    _ = stream.shutdown(Shutdown::Write);
    _ = std::io::copy(&mut stream, &mut std::io::sink());
}

/// Reads a frame of up to 125 bytes.
fn short_frame(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 2];
    stream.read_exact(&mut header).ok()?;
    let mut key = [0; 4];
    if header[1] & 0x80 != 0 {
        stream.read_exact(&mut key).ok()?;
    }
    let mut payload = vec![0; usize::from(header[1] & 0x7F).min(125)];
    stream.read_exact(&mut payload).ok()?;
    let keys = key.iter().cycle();
    payload
        .iter_mut()
        .zip(keys)
        .for_each(|(byte, key)| *byte ^= key);
    Some((header[0], payload))
}

#[test]
fn a_server_that_takes_everything_is_wrong() {
    let url = serve(parrot);
    let flags = [
        "--deadline",
        "0.3",
        "--only",
        "F04",
        "--only",
        "F21",
        "--only",
        "U01",
        "--only",
        "H02",
        "--only",
        "V06",
    ];
    let (lines, status) = check(&url, &flags);
    assert_eq!(status, Some(1));
    for line in lines.iter().filter(|line| line["type"] == "input") {
        let input = line["input"].as_str().unwrap();
        let expected = match line["row"].as_str().unwrap() {
            // This server looks only at the key of the request.
            "H02" => continue,
            // Valid close codes are echoed, as required.
            "V06" => "right",
            // The echoed Close frame could be the server's response to the missing mask.
            "F04" if input.starts_with("close-") => "permitted",
            // The standard does not mention codes of 5000 and above.
            "F21" if line["close_code"].as_u64() >= Some(5_000) => "permitted",
            // Its length needs more than the single byte that `short_frame` reads.
            "F04" if input == "binary-300" => continue,
            _ => "wrong",
        };
        assert_eq!(line["verdict"], expected, "{line}");
    }
    let wrong = lines.last().unwrap()["areas"]["framing"]["wrong"]
        .as_u64()
        .unwrap();
    assert!(wrong >= 30, "{wrong}");
}

/// Closes the connection after the opening handshake.
fn hang_up(stream: TcpStream) {
    drop(stream);
}

#[test]
fn a_server_that_refuses_everything_is_wrong_about_what_is_in_order() {
    let url = serve(hang_up);
    let (lines, status) = check(&url, &["--only", "V01", "--only", "F03"]);
    assert_eq!(status, Some(1));
    for line in lines.iter().filter(|line| line["type"] == "input") {
        let expected = if line["row"] == "F03" {
            "permitted"
        } else {
            "wrong"
        };
        assert_eq!(line["verdict"], expected, "{line}");
    }
    let (_, status) = check(&url, &["--only", "F03"]);
    assert_eq!(status, Some(0));
    let (_, status) = check(&url, &["--only", "F03", "--strict"]);
    assert_eq!(status, Some(1));
}

/// Starts a server that ends when a client sends a length whose top bit is set.
fn mortal() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut header = [0; 3];
            if open(&mut stream).is_some()
                && stream.read_exact(&mut header).is_ok()
                && header[2] >= 0x80
            {
                return;
            }
        }
    });
    url
}

#[test]
fn a_server_that_is_gone_afterwards_is_dangerous_and_left_alone() {
    let flags = [
        "--jobs",
        "1",
        "--only",
        "F06/binary-300",
        "--only",
        "F07",
        "--only",
        "U01",
    ];
    let output = linerate(&["check", &mortal(), "--json"])
        .args(flags)
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let verdicts: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "input")
        .map(|line| line["verdict"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(verdicts[..3], ["permitted", "dangerous", "not applicable"]);
    assert!(
        verdicts[2..]
            .iter()
            .all(|verdict| verdict == "not applicable")
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn where_nothing_is_to_be_checked_the_status_says_so() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (_, status) = check(&format!("ws://{free}/"), &[]);
    assert_eq!(status, Some(2));
    let (_, status) = check("http://127.0.0.1/", &[]);
    assert_eq!(status, Some(2));
    let unknown = linerate(&["check", "--list", "--only", "Q99"])
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8(unknown.stderr).unwrap().contains("Q99"));
}

#[test]
fn the_page_and_the_summary_tell_what_is_wrong() {
    let url = serve(parrot);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("check.html");
    let mut command = linerate(&["check", &url, "--only", "F21/code-1005", "--html"]);
    let output = command.arg(&page).output().unwrap();
    let summary = String::from_utf8(output.stdout).unwrap();
    assert!(
        summary.contains("F21 wrong: close codes that must not be sent"),
        "{summary}"
    );
    assert!(summary.contains("sent       888237fa213d3417"), "{summary}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("which must not be sent"), "{page}");
}

#[tokio::test]
async fn our_client_is_right() {
    let lines = check_our_client(&[]).await;
    assert!(lines.len() > 700, "{}", lines.len());
}

#[tokio::test]
async fn our_client_is_right_over_tls() {
    let flags = ["--tls-self-signed", "--only", "tls", "--only", "V01"];
    let lines = check_our_client(&flags).await;
    let is_tls = |line: &&Value| line["area"] == "tls";
    assert!(lines.iter().filter(is_tls).count() > 30, "{lines:#?}");
}

/// Starts a check of clients with these flags; returns the URL to connect to, and the process.
fn listen(flags: &[&str]) -> (String, Child) {
    let mut command = linerate(&["check", "--listen", "127.0.0.1:0", "--json"]);
    let command = command.args(flags);
    let mut checking = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    let mut stderr = BufReader::new(checking.stderr.take().unwrap());
    stderr.read_line(&mut url).unwrap();
    (url.trim().to_owned(), checking)
}

/// Checks our client and asserts that every verdict is right; returns the lines.
async fn check_our_client(flags: &[&str]) -> Vec<Value> {
    let (url, checking) = listen(&[&["--strict"], flags].concat());
    let output = tokio::task::spawn_blocking(move || checking.wait_with_output().unwrap());
    let mut options = linerate::Options::default();
    options.deflate = Some(linerate::Deflate::default());
    let anybody = linerate::tls::danger_client_config_trusting_anybody();
    let client = linerate::Client::new()
        .with_options(options)
        .with_tls(Arc::new(anybody));
    while !output.is_finished() {
        // Not every response opens a WebSocket, and not every WebSocket ends without an error.
        if let Ok(mut ws) = client.connect(&url).await {
            while let Ok(Some(message)) = ws.recv().await {
                if ws.send(message).await.is_err() {
                    break;
                }
            }
        }
    }
    let output = output.await.unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let inputs = lines.iter().filter(|line| line["type"] == "input");
    let others: Vec<&Value> = inputs.filter(|line| line["verdict"] != "right").collect();
    assert!(others.is_empty(), "{others:#?}");
    assert_eq!(output.status.code(), Some(0));
    lines
}

#[test]
fn a_client_that_never_comes_back_is_wrong() {
    let flags = [
        "check",
        "--listen",
        "127.0.0.1:0",
        "--only",
        "V01/text-0",
        "--deadline",
        "0.5",
    ];
    let output = linerate(&flags)
        .args(["--run", "echo {url} >&2"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let summary = String::from_utf8(output.stdout).unwrap();
    assert!(summary.contains("does not connect"), "{summary}");
}
