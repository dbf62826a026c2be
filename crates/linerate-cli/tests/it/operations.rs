//! Tests of configuration, monitoring, signals, and resource shortages.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::time::timeout;

use crate::support::{PATIENCE, Server, linerate, until};

const SECRET: &str = "a secret of tests only";

#[tokio::test]
async fn a_server_is_alive_ready_and_measured() {
    let server = Server::start();
    assert_eq!(server.get("/live").await.text(), "alive\n");
    until(&server, "/ready", |text| {
        text == r#"200 {"ready":true,"reasons":[]}"#
    })
    .await;
    let metrics = server.get("/metrics").await;
    assert!(
        metrics
            .header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    assert!(
        metrics.text().contains("linerate_broker_link_up 1.0\n"),
        "{}",
        metrics.text()
    );
    assert!(metrics.text().ends_with("# EOF\n"));
    let forwarded = server
        .request("GET", "/metrics", &["X-Forwarded-For: 192.0.2.1"])
        .await;
    assert_eq!(forwarded.status, 403);
}

#[tokio::test]
async fn a_full_server_is_alive_but_not_ready() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let operations = free.local_addr().unwrap();
    drop(free);
    let listen = operations.to_string();
    let mut server =
        Server::start_with(&["--operations-listen", &listen, "--connections-max", "1"]);
    let _one = server.connect("/echo").await;
    server.address = operations;
    let full = "connection limit reached";
    until(&server, "/ready", |text| {
        text.starts_with("503") && text.contains(full)
    })
    .await;
    assert_eq!(server.get("/live").await.status, 200);
    assert_eq!(server.get("/metrics").await.status, 200);
}

#[tokio::test]
async fn a_broker_that_is_away_makes_a_server_not_ready_but_leaves_it_alive() {
    // No broker listens on port 1.
    let server = Server::start_with(&["--broker", "redis://127.0.0.1:1"]);
    assert_eq!(server.get("/live").await.status, 200);
    let text = server.get("/ready").await;
    assert_eq!(text.status, 503);
    assert!(
        text.text().contains("nothing arrives from the broker"),
        "{}",
        text.text()
    );
}

#[tokio::test]
async fn a_hang_up_loads_limits_and_keys_and_an_error_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linerate.toml");
    let write = |text: &str| fs::write(&path, text).unwrap();
    write("[client]\nping_interval_s = 7\n");
    let server = Server::start_with(&["--config", path.to_str().unwrap()]);
    let info = async || {
        server
            .request("POST", "/api/info", &["Content-Length: 0"])
            .await
            .status
    };
    assert_eq!(info().await, 200);

    write("[auth]\napi_key = \"0123456789abcdef\"\n");
    server.signal("-HUP");
    let started = Instant::now();
    while info().await != 401 {
        assert!(started.elapsed() < PATIENCE, "the key is asked for");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    write("[auth]\napi_kee = \"0123456789abcdef\"\n");
    server.signal("-HUP");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(info().await, 401);
    let key = ["Content-Length: 0", "X-API-Key: 0123456789abcdef"];
    assert_eq!(server.request("POST", "/api/info", &key).await.status, 200);
}

#[tokio::test]
async fn changed_limits_of_logs_require_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linerate.toml");
    fs::write(&path, "[logs]\nresume_s = 1\n").unwrap();
    let server = Server::start_logging(&["--config", path.to_str().unwrap()]);
    let changed = "[logs]\nresume_s = 2\n[auth]\napi_key = \"0123456789abcdef\"\n";
    fs::write(&path, changed).unwrap();
    server.signal("-HUP");
    let started = Instant::now();
    let info = ["Content-Length: 0"];
    while server.request("POST", "/api/info", &info).await.status != 401 {
        assert!(started.elapsed() < PATIENCE, "the key is asked for");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = server.stop_and_read_log();
    let warning = log.lines().find(|line| line.contains("require a restart"));
    assert!(warning.is_some_and(|line| line.contains("logs")), "{log}");
}

#[tokio::test]
async fn a_server_that_drains_says_so_before_it_turns_anybody_away() {
    let mut server = Server::start_with(&["--set", "server.drain.delay_s=3"]);
    server.signal("-TERM");
    until(&server, "/ready", |text| {
        text.starts_with("503") && text.contains("draining")
    })
    .await;
    assert_eq!(server.get("/live").await.status, 200);
    // On a second signal, the server does not wait.
    let started = Instant::now();
    server.signal("-TERM");
    assert!(server.child.wait().unwrap().success());
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_drain_can_be_taken_back() {
    let slow = "server.drain.connections_per_second_min=1";
    let server = Server::start_with(&["--set", slow]);
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(server.connect("/raw?channel=demo:x").await);
    }
    assert_eq!(server.post("/admin/api/drain", "{}").await.status, 200);
    until(&server, "/ready", |text| text.contains("draining")).await;
    assert_eq!(server.post("/admin/api/undrain", "{}").await.status, 200);
    until(&server, "/ready", |text| text.starts_with("200")).await;
    // One client per second would have been disconnected.
    server
        .api("publish", json!({"channel": "demo:x", "data": 1}))
        .await;
    let mut stayed = 0;
    for client in &mut clients {
        let message = timeout(PATIENCE, client.recv()).await.unwrap().unwrap();
        stayed += usize::from(message.is_some());
    }
    assert!(stayed > 10, "{stayed} of 20");
    assert_eq!(server.post("/admin/api/drain", "{}").await.status, 200);
    for client in &mut clients {
        while let Ok(Some(_)) = timeout(PATIENCE, client.recv()).await.unwrap() {}
    }
}

#[tokio::test]
async fn a_server_that_ends_warns_of_nothing() {
    let mut child = linerate(&["serve", "--listen", "127.0.0.1:0", "--workers", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (_, address) = line.trim().split_once("://").unwrap();
    let address = address.trim_end_matches('/').parse().unwrap();
    let mut errors = child.stderr.take().unwrap();
    let mut server = Server { child, address };
    // Clients whose leave events are sent to other clients.
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut ws = server.connect("/connection/websocket").await;
        for command in [
            r#"{"id":1,"connect":{}}"#,
            r#"{"id":2,"subscribe":{"channel":"demo:x","join_leave":true}}"#,
        ] {
            ws.send(command).await.unwrap();
            ws.recv().await.unwrap().unwrap();
        }
        clients.push(ws);
    }
    server.signal("-TERM");
    for client in &mut clients {
        while let Ok(Some(_)) = timeout(PATIENCE, client.recv()).await.unwrap() {}
    }
    assert!(server.child.wait().unwrap().success());
    let mut log = String::new();
    errors.read_to_string(&mut log).unwrap();
    assert!(!log.contains("WARN"), "{log}");
}

#[tokio::test]
async fn r07_a_server_without_file_descriptors_recovers_and_does_not_spin() {
    let (mut server, mut output) = start_with_descriptors("serve", 64);
    let many: Vec<TcpStream> = (0..200)
        .map(|_| TcpStream::connect(server.address).unwrap())
        .collect();
    let before = server.process().cpu().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let spent = server.process().cpu().unwrap() - before;
    assert!(
        spent < Duration::from_millis(500),
        "{spent:?} of CPU time in 2 s"
    );
    drop(many);
    until(&server, "/live", |text| text.starts_with("200")).await;

    server.signal("-TERM");
    assert!(server.child.wait().unwrap().success());
    let mut log = String::new();
    output.read_to_string(&mut log).unwrap();
    let told = log
        .lines()
        .filter(|line| line.contains("cannot accept"))
        .count();
    assert!((1..=3).contains(&told), "r11: {told} lines\n{log}");
}

/// Runs the binary without configuration from the environment; returns whether it succeeded, its
/// output, and its errors.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (bool, String, String) {
    let output = linerate(arguments)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn the_defaults_are_printed_and_pass_the_check() {
    let (is_ok, defaults, _) = run(&["config", "default"], &[]);
    assert!(is_ok && defaults.contains("[server.drain]"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linerate.toml");
    fs::write(&path, defaults).unwrap();
    let (is_ok, said, _) = run(&["config", "check", path.to_str().unwrap()], &[]);
    assert!(
        is_ok && said.contains("configuration is valid") && said.contains("is open:"),
        "{said}"
    );
}

#[test]
fn a_check_warns_of_patterns_that_span_namespaces() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linerate.toml");
    let check = |pattern: bool| {
        let text = format!(
            "[channel]\nallow_pattern = {pattern}\nallow_subscribe = true\n\
             [[namespace]]\nname = \"news\"\n[[namespace]]\nname = \"private\"\nallow_subscribe = false\n"
        );
        fs::write(&path, text).unwrap();
        run(&["config", "check", path.to_str().unwrap()], &[])
    };
    let (is_ok, said, _) = check(true);
    assert!(
        is_ok && said.contains("warning: channel.allow_pattern"),
        "{said}"
    );
    assert!(
        said.contains("delivered without a token: news") && said.contains("with a token: private"),
        "{said}"
    );
    let (is_ok, said, _) = check(false);
    assert!(is_ok && !said.contains("warning"), "{said}");
}

#[test]
fn what_is_wrong_with_a_configuration_is_said_by_check_and_serve() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linerate.toml");
    fs::write(&path, "[client]\nping_intervall_s = 3\n").unwrap();
    let path = path.to_str().unwrap();
    for arguments in [&["config", "check", path][..], &["serve", "--config", path]] {
        let (is_ok, _, error) = run(arguments, &[]);
        assert!(!is_ok && error.contains("line 2"), "{error}");
        assert!(error.contains("did you mean `ping_interval_s`"), "{error}");
    }
    let variable = [("LINERATE_SERVER_LISTEN", "0.0.0.0:1")];
    let (is_ok, _, error) = run(&["config", "check"], &variable);
    assert!(
        !is_ok && error.contains("LINERATE_SERVER_LISTEN"),
        "{error}"
    );
    let (is_ok, _, error) = run(&["serve", "--set", "server.wrokers=1"], &[]);
    assert!(
        !is_ok && error.contains("did you mean `workers`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_token_that_was_made_opens_a_connection_and_others_do_not() {
    let secret = [("LINERATE_AUTH_TOKEN_HMAC_SECRET_KEY", SECRET)];
    let (is_ok, token, error) = run(&["token", "--user", "ann"], &secret);
    assert!(is_ok, "{error}");
    let (is_ok, _, error) = run(&["token", "--user", "ann"], &[]);
    assert!(!is_ok && error.contains("hmac_secret_key"), "{error}");

    let set = format!("auth.token.hmac_secret_key={SECRET}");
    let server = Server::start_with(&["--set", &set]);
    let connect = async |token: &str| {
        let mut ws = server.connect("/connection/websocket").await;
        let command = format!(r#"{{"id":1,"connect":{{"token":"{token}"}}}}"#);
        ws.send(command).await.unwrap();
        let answer = ws.recv().await.unwrap();
        answer.map(|answer| answer.as_text().unwrap().to_owned())
    };
    let welcome = connect(token.trim()).await.unwrap();
    assert!(welcome.contains(r#""id":1,"connect""#), "{welcome}");
    for wrong in ["", "a.b.c", &token.trim()[..token.len() - 5]] {
        let answer = connect(wrong).await;
        assert!(
            answer.is_none_or(|answer| !answer.contains(r#""client""#)),
            "{wrong}"
        );
    }
}

/// Starts a subcommand with few file descriptors. Its log follows the address in `child.stdout`.
fn start_with_descriptors(
    verb: &str,
    count: usize,
) -> (Server, BufReader<std::process::ChildStdout>) {
    let binary = env!("CARGO_BIN_EXE_linerate");
    let limited =
        format!("ulimit -n {count}; exec {binary} {verb} --listen 127.0.0.1:0 --workers 2 2>&1");
    let mut child = Command::new("sh")
        .args(["-c", &limited])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut address = String::new();
    while !address.contains("://") {
        address.clear();
        assert!(output.read_line(&mut address).unwrap() > 0);
    }
    let (_, address) = address.trim().split_once("://").unwrap();
    let address = address.trim_end_matches('/').parse().unwrap();
    // The workers start after the address is printed, and need some file descriptors themselves.
    std::thread::sleep(Duration::from_millis(500));
    (Server { child, address }, output)
}

/// Returns how many of the streams the server has ended.
fn ended(streams: &[TcpStream]) -> usize {
    let is_ended = |stream: &&TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let read = { *stream }.read(&mut [0]);
        !read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    streams.iter().filter(is_ended).count()
}

#[tokio::test]
async fn clients_that_wait_for_file_descriptors_are_closed_at_once_and_logged_once() {
    let (mut server, mut output) = start_with_descriptors("serve", 64);
    let many: Vec<TcpStream> = (0..300)
        .map(|_| TcpStream::connect(server.address).unwrap())
        .collect();
    // If they were ended one at a time with a pause after each, this would take thirteen seconds.
    let started = Instant::now();
    while ended(&many) < 260 {
        assert!(
            started.elapsed() < Duration::from_secs(9),
            "{} ended",
            ended(&many)
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(many);
    until(&server, "/live", |text| text.starts_with("200")).await;
    server.signal("-TERM");
    assert!(server.child.wait().unwrap().success());
    let mut log = String::new();
    output.read_to_string(&mut log).unwrap();
    let told = log
        .lines()
        .filter(|line| line.contains("cannot accept"))
        .count();
    assert!((1..=2).contains(&told), "{told} lines\n{log}");
}

#[tokio::test]
async fn an_echo_server_without_file_descriptors_warns_once() {
    let (mut server, mut output) = start_with_descriptors("echo", 40);
    let many: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(server.address).unwrap())
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(many);
    server.signal("-TERM");
    assert!(server.child.wait().unwrap().success());
    let mut log = String::new();
    output.read_to_string(&mut log).unwrap();
    let told = log.lines().filter(|line| line.contains("WARN")).count();
    assert!((1..=2).contains(&told), "{told} lines\n{log}");
}

#[test]
fn a_secret_that_is_too_short_is_refused_wherever_it_comes_from() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    for (key, variable) in [
        ("auth.api_key", "LINERATE_AUTH_API_KEY"),
        ("auth.admin_key", "LINERATE_AUTH_ADMIN_KEY"),
        (
            "auth.token.hmac_secret_key",
            "LINERATE_AUTH_TOKEN_HMAC_SECRET_KEY",
        ),
    ] {
        // A line ending that an editor adds does not count.
        for short in ["x\n", "", "0123456789abcde\n", "               x\n"] {
            fs::write(&path, short).unwrap();
            let from_file = format!("file:{}", path.display());
            let given = [from_file.as_str(), short];
            for value in given.iter().filter(|value| !value.is_empty()) {
                let (is_ok, _, error) = run(&["config", "check"], &[(variable, value)]);
                assert!(!is_ok && error.contains(key), "{key} {short:?}: {error}");
                assert!(error.contains("at least 16"), "{key} {short:?}: {error}");
                let set = format!("{key}={value}");
                let listen = ["serve", "--listen", "127.0.0.1:0", "--set", &set];
                let (is_ok, _, error) = run(&listen, &[]);
                assert!(
                    !is_ok && error.contains("at least 16"),
                    "{key} {short:?}: {error}"
                );
            }
        }
        fs::write(&path, "0123456789abcdef\n").unwrap();
        let value = format!("file:{}", path.display());
        assert!(run(&["config", "check"], &[(variable, &value)]).0, "{key}");
    }
}

#[tokio::test]
async fn the_log_says_how_refused_pages_and_names_can_be_let_in() {
    let server = Server::start_logging(&[]);
    for headers in [
        "Host: localhost\r\nOrigin: http://elsewhere.example",
        "Host: localhost\r\nOrigin: http://other.example",
        "Host: linerate.example",
    ] {
        let head = format!(
            "GET /raw?channel=demo:a HTTP/1.1\r\n{headers}\r\nConnection: close, upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        assert_eq!(server.request_raw(&head).await.status, 403, "{headers}");
    }
    let log = server.stop_and_read_log();
    for (value, setting) in [
        ("http://elsewhere.example", "server.origins"),
        ("linerate.example", "server.hosts"),
    ] {
        let mut lines = log.lines().filter(|line| line.contains(setting));
        let line = lines.next().unwrap();
        assert!(line.contains("WARN") && line.contains(value), "{line}");
        assert_eq!(lines.next(), None, "one line in ten seconds");
    }
}

#[tokio::test]
async fn wrong_keys_are_counted_logged_and_slowed_down_by_address() {
    let server = Server::start_logging(&[
        "--set",
        "auth.admin_key=0123456789abcdef",
        "--set",
        "auth.api_key=fedcba9876543210",
        "--set",
        "server.trusted_proxies=127.0.0.1/32",
    ]);
    let ask = async |path: &str, from: &str, key: &str| {
        let from = format!("X-Forwarded-For: {from}");
        let method = if path.starts_with("/api") {
            "POST"
        } else {
            "GET"
        };
        server
            .request(method, path, &[&from, key, "Content-Length: 0"])
            .await
    };
    let overview = "/admin/api/overview";
    for (path, key) in [
        (overview, "X-Admin-Key: wrong"),
        (overview, "Authorization: Bearer wrong"),
        ("/api/info", "X-API-Key: wrong"),
        ("/api/info", "Authorization: apikey wrong"),
    ] {
        for _ in 0..5 {
            assert_eq!(ask(path, "192.0.2.1", key).await.status, 401, "{path}");
        }
    }
    let right = "X-Admin-Key: 0123456789abcdef";
    for (path, key) in [
        (overview, "X-Admin-Key: wrong"),
        (overview, right),
        ("/api/info", "X-API-Key: wrong"),
        ("/metrics", right),
        ("/echo", right),
    ] {
        let limited = ask(path, "192.0.2.1", key).await;
        assert_eq!(limited.status, 429, "{path}");
        let seconds: u32 = limited.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    // Other addresses are not locked out, nor are requests without a key.
    assert_eq!(ask(overview, "192.0.2.2", right).await.status, 200);
    assert_eq!(ask(overview, "192.0.2.1", "X-Other: x").await.status, 401);
    assert_eq!(ask("/live", "192.0.2.1", "X-Other: x").await.status, 200);
    let metrics = ask("/metrics", "192.0.2.2", right).await;
    for line in [
        r#"linerate_auth_total{kind="admin_key",result="invalid"} 10"#,
        r#"linerate_auth_total{kind="admin_key",result="limited"} 4"#,
        r#"linerate_auth_total{kind="admin_key",result="ok"} 2"#,
        r#"linerate_auth_total{kind="api_key",result="invalid"} 10"#,
        r#"linerate_auth_total{kind="api_key",result="limited"} 1"#,
    ] {
        assert!(metrics.text().contains(line), "{line}\n{}", metrics.text());
    }
    let log = server.stop_and_read_log();
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("wrong key"))
        .collect();
    assert!((1..=3).contains(&told.len()), "{log}");
    assert!(
        told[0].contains("192.0.2.1") && told[0].contains("count=1"),
        "{log}"
    );
}

#[tokio::test]
async fn metrics_are_not_for_what_a_proxy_on_this_machine_passes_on() {
    for flags in [&[][..], &["--set", "auth.admin_key=0123456789abcdef"]] {
        let server = Server::start_with(flags);
        assert_eq!(server.get("/metrics").await.status, 200);
        for hint in [
            "Forwarded: for=192.0.2.1",
            "Via: 1.1 proxy",
            "X-Forwarded-For: 192.0.2.1",
            "X-Forwarded-Host: example.com",
            "X-Forwarded-Proto: https",
            "X-Real-IP: 192.0.2.1",
            "CF-Connecting-IP: 192.0.2.1",
        ] {
            let response = server.request("GET", "/metrics", &[hint]).await;
            assert_eq!(response.status, 403, "{flags:?} {hint}");
        }
        let head = "GET /metrics HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n";
        assert_eq!(server.request_raw(head).await.status, 403, "{flags:?}");
    }
    // A trusted proxy on this machine adds no header, so its clients do not count as local.
    let server = Server::start_with(&["--set", "server.trusted_proxies=127.0.0.0/8"]);
    assert_eq!(server.get("/metrics").await.status, 403);
    assert_eq!(server.get("/admin/api/overview").await.status, 403);
    let info = server
        .request("POST", "/api/info", &["Content-Length: 0"])
        .await;
    assert_eq!(info.status, 403);
}
