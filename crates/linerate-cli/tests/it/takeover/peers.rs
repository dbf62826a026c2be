//! Peers on the takeover socket that must not take over.

use std::{
    env,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream, process::CommandExt},
    path::Path,
    process::Stdio,
};

use super::{Deploys, ask};
use crate::support::{PATIENCE, Server};

/// Sends bytes, and returns the reason why they are refused.
fn refusal(path: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may have closed the connection already.
    _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer);
    // A header of ten bytes, and the length of the text.
    assert_eq!(answer.get(..6), Some(&b"LT\0\x01\x08\0"[..]), "{answer:?}");
    String::from_utf8(answer[14..].to_vec()).unwrap()
}

#[tokio::test]
async fn a_process_with_another_executable_is_refused_however_often_it_asks() {
    let deploys = Deploys::new();
    let server = deploys.start(&[]);
    let reason = refusal(&deploys.socket(), b"");
    assert!(reason.contains("server.takeover_executable"), "{reason}");
    // Neither many peers nor what they send keep the server from being taken over.
    let mut peers = Vec::new();
    for _ in 0..300 {
        let mut peer = UnixStream::connect(deploys.socket()).unwrap();
        _ = peer.write_all(&[b'L'; 5_000]);
        peers.push(peer);
    }
    ask(server.address).await;
    let new = deploys.start(&["--takeover"]);
    ask(new.address).await;
    let (status, log) = super::ended(server).await;
    assert!(status.success(), "{log}");
    let refused = "takeover failed; this process continues to serve";
    assert!(log.contains(refused), "{log}");
}

#[tokio::test]
async fn a_process_that_the_operator_names_must_speak_the_protocol() {
    let deploys = Deploys::new();
    let executable = env::current_exe().unwrap();
    let named = format!("server.takeover_executable={}", executable.display());
    let server = deploys.start(&["--set", &named]);
    for (bytes, expected) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "is the peer linerate?"),
        (b"LT\0\x01\x01\0\xff\0\0\0", "exceeds the limit of 16777216"),
        (
            b"LT\0\x09\x01\0\0\0\0\x15\0\x08\0\x09\0\x01\0\x01\0\0\0\x07\0\0\0\x01x\0\0\0\0",
            "protocol versions 8 to 9, and this one 1 to 1",
        ),
        (
            b"LT\0\x01\x05\0\0\0\0\0",
            "`prepared` arrived in place of `hello`",
        ),
        (b"LT\0\x01\x63\0\0\0\0\0", "unknown message of kind 99"),
    ] {
        let reason = refusal(&deploys.socket(), bytes);
        assert!(reason.contains(expected), "{expected}: {reason}");
        ask(server.address).await;
    }
    // The binary itself is not the one that the operator named.
    let address = server.address.to_string();
    let output = crate::support::linerate(&["serve", "--listen", &address, "--takeover"])
        .args(deploys.flags(&[]))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for expected in [
        "the running process continues to serve",
        "which is not the file",
    ] {
        assert!(errors.contains(expected), "{errors}");
    }
    ask(server.address).await;
    let log = server.stop_and_read_log();
    assert!(log.contains("protocol versions 8 to 9"), "{log}");
}

#[tokio::test]
async fn a_process_of_another_user_is_refused_even_if_it_may_connect() {
    if !nix::unistd::geteuid().is_root() {
        // Only root can start a server as another user, and connect to its socket.
        return;
    }
    let deploys = Deploys::new();
    let folder = deploys.socket().parent().unwrap().to_owned();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    // A copy that this user can read.
    let binary = folder.join("linerate");
    std::fs::copy(env!("CARGO_BIN_EXE_linerate"), &binary).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = std::process::Command::new(&binary);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--workers", "2"])
        .args(deploys.flags(&[]))
        .uid(65_534)
        .stderr(Stdio::piped());
    let server = Server::spawn(&mut command);
    let reason = refusal(&deploys.socket(), b"");
    assert!(
        reason.contains("has user ID 0, and this process has 65534"),
        "{reason}"
    );
    ask(server.address).await;
    let output = std::process::Command::new(&binary)
        .args(["serve", "--listen", "127.0.0.1:0", "--takeover"])
        .args(deploys.flags(&[]))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("has user ID 65534, and this process has 0"),
        "{errors}"
    );
}
