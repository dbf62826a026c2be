//! Tests of `linerate check` over TLS, with broken servers and clients.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use linerate::tls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::Value;

use super::{check, listen, open};
use crate::support::{Server, linerate};

/// Returns a certificate for 127.0.0.1 and its key, in PEM.
fn certificate() -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    [made.cert.pem(), made.signing_key.serialize_pem()]
}

fn server_config() -> Arc<ServerConfig> {
    let [certificate, key] = certificate();
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    Arc::new(linerate::tls::server_config(chain, key).unwrap())
}

/// Starts a server that opens a WebSocket on each TLS connection and ignores everything that
/// follows.
fn deaf_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("wss://{}/", listener.local_addr().unwrap());
    let config = server_config();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            thread::spawn(move || {
                if open(&mut stream).is_some() {
                    while stream.sock.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
                }
            });
        }
    });
    url
}

fn verdicts<'a>(lines: &'a [Value], row: &str) -> Vec<&'a str> {
    let of_row = lines.iter().filter(|line| line["row"] == row);
    of_row
        .map(|line| line["verdict"].as_str().unwrap())
        .collect()
}

#[test]
fn t13_t14_a_server_that_hears_nothing_behind_the_handshake_is_wrong() {
    let rows = ["T05", "T13", "T14", "T16"].map(|row| ["--only", row]);
    let flags = [&["--insecure", "--deadline", "0.5"][..], &rows.concat()].concat();
    let (lines, status) = check(&deaf_server(), &flags);
    assert_eq!(status, Some(1));
    assert_eq!(verdicts(&lines, "T05"), ["wrong"; 3], "nothing comes back");
    assert_eq!(verdicts(&lines, "T14"), ["wrong"; 5]);
    assert_eq!(
        verdicts(&lines, "T16"),
        ["right"],
        "it does not renegotiate"
    );
    for line in lines.iter().filter(|line| line["row"] == "T13") {
        // A `close_notify` alert only says that the client sends nothing more. The server may still
        // send.
        let expected = match line["input"].as_str() {
            Some("close-notify") => "permitted",
            _ => "wrong",
        };
        assert_eq!(line["verdict"], expected, "{line}");
    }
}

#[test]
fn serve_is_right_about_tls() {
    let folder = tempfile::tempdir().unwrap();
    let mut flags = Vec::new();
    for (name, pem) in ["certificate", "key"].into_iter().zip(certificate()) {
        let file = folder.path().join(name);
        std::fs::write(&file, pem).unwrap();
        let set = format!("server.tls.{name}={}", file.to_str().unwrap());
        flags.extend(["--set".to_owned(), set]);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start_with(&flags);
    let url = format!("wss://{}/echo", server.address);
    let (lines, status) = check(&url, &["--insecure", "--strict", "--only", "tls"]);
    assert_eq!(status, Some(0), "{lines:#?}");
    let right = lines.last().unwrap()["all"]["right"].as_u64().unwrap();
    assert!(right > 60, "{right}");
}

fn lines_of(checking: std::process::Child) -> Vec<Value> {
    let output = checking.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// Connects over TLS, requests a WebSocket, and ignores everything that follows.
fn deaf_client(address: &str) -> Option<()> {
    let config: Arc<ClientConfig> =
        Arc::new(linerate::tls::danger_client_config_trusting_anybody());
    let connection = ClientConnection::new(config, "localhost".try_into().ok()?).ok()?;
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).ok()?);
    let request =
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    // It also waits if the TLS handshake fails.
    _ = stream.write_all(request).and_then(|()| stream.flush());
    while stream.sock.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
    Some(())
}

/// Sends an empty ClientHello, and ignores everything that follows.
fn mute_client(address: &str) -> Option<()> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .write_all(b"\x16\x03\x01\x00\x04\x01\x00\x00\x00")
        .ok()?;
    while stream.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
    Some(())
}

/// Checks a client that connects repeatedly; returns the lines.
fn check_clients(rows: &[&str], connect: fn(&str) -> Option<()>) -> Vec<Value> {
    let rows = rows.iter().flat_map(|row| ["--only", *row]);
    let mut flags = vec!["--tls-self-signed", "--deadline", "0.5"];
    flags.extend(rows);
    let (url, mut checking) = listen(&flags);
    let address = url.trim_start_matches("wss://").trim_end_matches('/');
    while checking.try_wait().unwrap().is_none() {
        // After the last input, connecting fails.
        _ = connect(address);
    }
    lines_of(checking)
}

#[test]
fn t13_t15_a_client_that_hears_nothing_is_wrong() {
    let lines = check_clients(&["T13/fatal-alert", "T14/alert"], deaf_client);
    for row in ["T13", "T14"] {
        assert_eq!(verdicts(&lines, row), ["wrong"], "{lines:#?}");
    }
    let lines = check_clients(&["T15/tls-1.0", "T15/zeros"], mute_client);
    // A server that does not speak TLS cannot be told so with an alert.
    assert_eq!(
        verdicts(&lines, "T15"),
        ["permitted", "wrong"],
        "{lines:#?}"
    );
}

#[tokio::test]
async fn a_client_is_shown_the_certificate_that_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = certificate();
    let [certificate_file, key_file] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&certificate_file, &certificate).unwrap();
    std::fs::write(&key_file, key).unwrap();
    let files = [&certificate_file, &key_file].map(|path| path.to_str().unwrap());
    let flags = [
        "--certificate",
        files[0],
        "--key",
        files[1],
        "--only",
        "V01/text-0",
    ];
    let (url, checking) = listen(&flags);
    let mut roots = RootCertStore::empty();
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    roots.add(der).unwrap();
    let config = linerate::tls::client_config(roots);
    let client = linerate::Client::new().with_tls(Arc::new(config));
    let mut ws = client.connect(&url).await.unwrap();
    while let Ok(Some(message)) = ws.recv().await {
        ws.send(message).await.unwrap();
    }
    assert_eq!(verdicts(&lines_of(checking), "V01"), ["right"]);
}

#[test]
fn a_certificate_that_is_none_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cert.pem");
    std::fs::write(&file, "no certificate").unwrap();
    let file = file.to_str().unwrap();
    let flags = [
        "check",
        "--listen",
        "127.0.0.1:0",
        "--certificate",
        file,
        "--key",
        file,
    ];
    let output = linerate(&flags).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no certificate in"), "{said}");
}
