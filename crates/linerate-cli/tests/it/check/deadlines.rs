//! Tests of `linerate check --patience`, with our servers and with servers that wait forever.

use std::{collections::HashMap, hint::black_box, io::Read, net::TcpStream, thread};

use serde_json::Value;

use super::{check, parrot, serve};
use crate::support::Server;

/// Our servers: the subcommand and flags that start each one, its scheme and its path.
const OURS: [(&str, &[&str], &str, &str); 4] = [
    ("echo", &["--tls-self-signed"], "wss", "/"),
    (
        "echo",
        &["--engine", "reactor", "--tls-self-signed"],
        "wss",
        "/",
    ),
    ("echo", &["--engine", "reactor"], "ws", "/"),
    ("serve", &[], "ws", "/echo"),
];

/// Appends the flags that select these rows.
fn only<'a>(flags: &[&'a str], rows: &[&'a str]) -> Vec<&'a str> {
    let rows = rows.iter().flat_map(|row| ["--only", *row]);
    flags.iter().copied().chain(rows).collect()
}

/// Returns the verdicts for each row.
fn verdicts(lines: &[Value]) -> HashMap<String, Vec<String>> {
    let mut verdicts = HashMap::<String, Vec<String>>::new();
    for line in lines.iter().filter(|line| line["type"] == "input") {
        let [row, verdict] = ["row", "verdict"].map(|key| line[key].as_str().unwrap().to_owned());
        verdicts.entry(row).or_default().push(verdict);
    }
    verdicts
}

/// Checks all our servers at the same time, so that the waiting times overlap.
fn all_give_up(rows: &[&str], inputs: usize) {
    thread::scope(|scope| {
        for (verb, flags, scheme, path) in OURS {
            scope.spawn(move || {
                let server = Server::start_verb(verb, flags);
                let pid = server.child.id().to_string();
                let url = format!("{scheme}://{}{path}", server.address);
                let flags = ["--patience", "60", "--strict", "--insecure", "--pid", &pid];
                let (lines, status) = check(&url, &only(&flags, rows));
                let all = &lines.last().unwrap()["all"];
                assert_eq!(status, Some(0), "{url}: {lines:#?}");
                assert!(all["right"].as_u64() >= Some(inputs as u64), "{all}");
            });
        }
    });
}

#[test]
fn h12_r05_t12_a_handshake_or_close_that_does_not_end_is_given_up_by_all_of_ours() {
    all_give_up(&["H12", "R05", "T12"], 12);
}

#[test]
#[ignore = "waits for 45 s; `make patience` runs it"]
fn f09_r03_r04_a_frame_that_does_not_end_is_given_up_by_all_of_ours() {
    all_give_up(&["R03", "R04"], 23);
}

#[test]
fn a_server_that_waits_for_ever_is_wrong() {
    let flags = ["--patience", "1.5"];
    let (lines, status) = check(&serve(parrot), &only(&flags, &["H12", "R03", "R04", "R05"]));
    assert_eq!(status, Some(1));
    let found = verdicts(&lines);
    for row in ["H12", "R03"] {
        assert!(found[row].iter().all(|it| it == "wrong"), "{row} {found:?}");
    }
    assert_eq!(found["R04"], ["permitted"]);
    assert!(found["R05"].iter().any(|it| it == "wrong"), "{found:?}");
    assert!(found["R05"].iter().any(|it| it == "right"), "{found:?}");
}

/// Allocates memory for the claimed length, and waits for the payload.
fn greedy(mut stream: TcpStream) {
    let mut header = [0; 10];
    if stream.read_exact(&mut header).is_err() {
        return;
    }
    let [_, _, length @ ..] = header;
    let bytes = match header[1] & 0x7F {
        127 => u64::from_be_bytes(length),
        _ => u64::from(u16::from_be_bytes([length[0], length[1]])),
    };
    let room = black_box(vec![0_u8; bytes as usize]);
    while stream.read(&mut header).is_ok_and(|bytes| bytes > 0) {}
    drop(room);
}

#[test]
fn f09_a_server_that_allocates_by_what_is_claimed_is_wrong() {
    let pid = std::process::id().to_string();
    let flags = ["--patience", "1.5", "--pid", &pid];
    let (lines, status) = check(&serve(greedy), &only(&flags, &["R03/claims"]));
    assert_eq!(status, Some(1));
    let found = verdicts(&lines);
    assert_eq!(found["F09"], ["wrong"], "{lines:#?}");
    let (lines, _) = check(&serve(parrot), &only(&flags[..2], &["R03/claims"]));
    assert!(!verdicts(&lines).contains_key("F09"));
}

#[test]
fn a_process_is_looked_at_only_where_something_is_done_to_it() {
    let server = Server::start_verb("echo", &[]);
    let pid = server.child.id().to_string();
    let (_, status) = check(&server.url("/"), &["--only", "V01", "--pid", &pid]);
    assert_eq!(status, Some(2));
}
