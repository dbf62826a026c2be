//! Test support: a server in a separate process, plain HTTP requests, and logs with known
//! statistics.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::SocketAddr,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use linerate::{Client, CloseCode, WebSocket};
use linerate_harness::process::Process;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

pub(crate) use linerate_testkit::PATIENCE;

/// `linerate serve` or `echo` on a free port; killed on drop.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(flags: &[&str]) -> Self {
        Self::start_verb("serve", flags)
    }

    /// Starts a server whose log can be read from `child.stderr`.
    pub(crate) fn start_logging(flags: &[&str]) -> Self {
        Self::spawn(Self::command("serve").args(flags).stderr(Stdio::piped()))
    }

    /// Stops a server started with [`start_logging`](Self::start_logging); returns its log.
    pub(crate) fn stop_and_read_log(mut self) -> String {
        self.signal("-TERM");
        assert!(self.child.wait().unwrap().success());
        let mut log = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut log).unwrap();
        log
    }

    pub(crate) fn start_verb(verb: &str, flags: &[&str]) -> Self {
        Self::spawn(Self::command(verb).args(flags))
    }

    fn command(verb: &str) -> Command {
        let mut command = linerate(&[verb, "--listen", "127.0.0.1:0", "--workers", "2"]);
        // Huge pages of 2 MiB may be mostly unused, but would be counted by tests that measure the
        // memory of `linerate echo`.
        command.env("MIMALLOC_ALLOW_THP", "0");
        command
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (_, address) = line
            .trim()
            .split_once("://")
            .expect("an address is printed");
        Self {
            child,
            address: address.trim_end_matches('/').parse().unwrap(),
        }
    }

    /// Returns the server's process, to read what it uses.
    pub(crate) fn process(&self) -> Process {
        Process::new(self.child.id())
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("ws://{}{path}", self.address)
    }

    pub(crate) async fn connect(&self, path: &str) -> WebSocket {
        linerate::connect(&self.url(path)).await.unwrap()
    }

    /// Opens a connection for uploading a log.
    pub(crate) async fn connect_upload(&self) -> WebSocket {
        let client = Client::new().with_subprotocol("linerate.logs.v1");
        client.connect(&self.url("/logs/upload")).await.unwrap()
    }

    /// Sends a request without a body and reads the response up to the end of the connection.
    pub(crate) async fn request(&self, method: &str, path: &str, headers: &[&str]) -> Response {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for header in headers.iter().chain(&["Connection: close"]) {
            head += header;
            head += "\r\n";
        }
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all((head + "\r\n").as_bytes()).await.unwrap();
        Response::read_from(&mut stream).await
    }

    /// Sends a request head unchanged and reads the response up to the end of the connection.
    pub(crate) async fn request_raw(&self, head: &str) -> Response {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        Response::read_from(&mut stream).await
    }

    /// Like [`get`](Self::get), but returns `None` if the server closes the connection before it
    /// has responded.
    pub(crate) async fn try_get(&self, path: &str) -> Option<Response> {
        let mut stream = TcpStream::connect(self.address).await.ok()?;
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).await.ok()?;
        Response::try_read_from(&mut stream).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request("GET", path, &[]).await
    }

    /// Sends a request with a body and reads the response up to the end of the connection.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Response {
        let address = self.address;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        Response::read_from(&mut stream).await
    }

    /// Calls a method of the server API; returns the result.
    pub(crate) async fn api(&self, method: &str, body: Value) -> Value {
        let path = format!("/api/{method}");
        let response = self.post(&path, &body.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let mut answer: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(answer.get("error"), None);
        answer["result"].take()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Completes the closing handshake that the server has begun; returns the server's close code.
pub(crate) async fn close_code(ws: &mut WebSocket) -> u16 {
    let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
    assert!(closed.clean);
    closed.code
}

/// Reads until the server closes the connection. Returns its close code and reason.
pub(crate) async fn server_close(ws: &mut WebSocket) -> (u16, String) {
    let ends = async { while ws.recv().await.unwrap().is_some() {} };
    timeout(PATIENCE, ends).await.unwrap();
    let code = close_code(ws).await;
    (code, ws.closed().unwrap().reason().to_string())
}

/// Returns a command that runs the binary under test.
pub(crate) fn linerate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(arguments);
    command
}

/// Runs a command with an input that ends.
pub(crate) fn run_with_input(command: &mut Command, input: &[u8]) -> Output {
    let command = command.stdin(Stdio::piped());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that refuses its input does not read it to the end.
    let writing = std::thread::spawn(move || _ = stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output
}

/// An HTTP response.
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Reads a response up to the end of the connection.
    pub(crate) async fn read_from(stream: &mut TcpStream) -> Self {
        let response = Self::try_read_from(stream).await;
        response.expect("a whole response")
    }

    /// Reads a response up to the end of the connection. Returns `None` if it is incomplete.
    pub(crate) async fn try_read_from(stream: &mut TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
        read.ok()?.ok()?;
        let mut windows = bytes.windows(4);
        let end = windows.position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self {
            status,
            head,
            body: bytes[end + 4..].to_vec(),
        })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// Returns a log in the combined format, and the sum of its response sizes. It has one line that is
/// not a request, then `requests` requests from 64 addresses for 8 paths, of which every ninth has
/// status 404.
pub(crate) fn made_log(requests: u64) -> (String, u64) {
    let mut log = String::from("host newsyslog[1]: logfile turned over\n");
    let mut bytes_sent = 0;
    for i in 0..requests {
        let (address, path, status) = (i % 64, i % 8, if i % 9 == 0 { 404 } else { 200 });
        let (minute, second, size) = (i / 60 % 60, i % 60, 100 + i % 900);
        bytes_sent += size;
        log += &format!(
            "10.0.0.{address} - - [22/Jan/2021:01:{minute:02}:{second:02} +0000] \
             \"GET /page/{path} HTTP/1.1\" {status} {size} \"-\" \"test\"\n"
        );
    }
    (log, bytes_sent)
}

/// Returns every path that the server's routers handle, with the names in braces filled in. They
/// are read from the sources (routes, and the paths of client protocols), so that a new path cannot
/// be forgotten.
pub(crate) fn routes() -> Vec<String> {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap();
    let mut folders = vec![
        crates.join("linerate-cli/src/serve"),
        crates.join("linerate-gateway/src"),
    ];
    let mut routes = std::collections::BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("tests.rs") {
                let source = std::fs::read_to_string(path).unwrap();
                for mark in [".route(", " path: ", "PATH: &str = "] {
                    let after = source.split(mark).skip(1).map(str::trim_start);
                    let paths =
                        after.filter_map(|after| after.strip_prefix("\"/")?.split('"').next());
                    routes.extend(paths.map(|path| format!("/{path}")));
                }
            }
        }
    }
    let filled = |route: String| {
        route
            .replace("{name}", "overview.js")
            .replace("{method}", "info")
            .replace("{*path}", "index.html")
    };
    routes.into_iter().map(filled).collect()
}

/// Repeats a request until the response is as wanted.
pub(crate) async fn until(server: &Server, path: &str, wanted: impl Fn(&str) -> bool) -> String {
    let started = Instant::now();
    loop {
        let response = server.try_get(path).await;
        let text = response.map(|response| format!("{} {}", response.status, response.text()));
        let text = text.unwrap_or_default();
        if wanted(&text) {
            return text;
        }
        assert!(started.elapsed() < PATIENCE, "{path} stays at {text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
