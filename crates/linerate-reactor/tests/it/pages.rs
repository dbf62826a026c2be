//! Plain HTTP requests, such as health checks.

use std::time::{Duration, Instant};

use linerate_reactor::{
    Options, Server,
    handshake::{BuildError, HttpResponse, Request},
};

use crate::support::{ACCEPTED, Echo, REQUEST, Raw, Running, driver, wait_until};

/// A request for the page at this path.
fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: example.com\r\n\r\n")
}

/// A response with status 200.
fn ok(body: &str) -> String {
    let bytes = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {bytes}\r\n\r\n{body}"
    )
}

/// Echoes the query of the request.
fn query(request: &Request) -> Result<HttpResponse, BuildError> {
    let query = request.query().unwrap_or("none");
    Ok(HttpResponse::text(query.to_owned()))
}

/// Answers with as many bytes as the query says.
fn many(request: &Request) -> Result<HttpResponse, BuildError> {
    let bytes = request.query().and_then(|query| query.parse().ok());
    HttpResponse::bytes("application/octet-stream", vec![b'x'; bytes.unwrap_or(0)])
}

fn start(mut options: Options) -> Running {
    options.driver = driver();
    let server = Server::new()
        .with_workers(1)
        .with_options(options)
        .with_route("/chat", Echo)
        .with_http("/chat", |_| Ok(HttpResponse::text("not this one")))
        .with_http("/chat", |_| Ok(HttpResponse::text("a page")))
        .with_http("/live", query)
        .with_http("/many", many)
        .with_http("/broken", |_| HttpResponse::text("").with_header("a b", ""));
    Running::serve(server)
}

/// Sends `request` and returns everything up to the end of the stream.
fn answer(server: &Running, request: &str) -> String {
    let mut raw = Raw::connect(server.address);
    raw.send(request.as_bytes());
    String::from_utf8(raw.rest()).unwrap()
}

#[test]
fn requests_for_pages_are_answered_and_end_the_connection() {
    let server = start(Options::default());
    assert_eq!(answer(&server, &get("/live")), ok("none"));
    assert_eq!(answer(&server, &get("/live?a=1")), ok("a=1"));
    assert_eq!(answer(&server, "GET /live HTTP/1.0\r\n\r\n"), ok("none"));
    let empty = get("/live").replacen("\r\n\r\n", "\r\nContent-Length: 0\r\n\r\n", 1);
    assert_eq!(answer(&server, &empty), ok("none"));
    let head = get("/live").replacen("GET", "HEAD", 1);
    assert_eq!(
        answer(&server, &head),
        ok("none").replacen("\r\n\r\nnone", "\r\n\r\n", 1)
    );
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn a_request_in_pieces_is_answered_once_it_is_whole() {
    let server = start(Options::default());
    let mut raw = Raw::connect(server.address);
    get("/live").bytes().for_each(|byte| raw.send(&[byte]));
    assert_eq!(raw.rest(), ok("none").as_bytes());
}

#[test]
fn a_path_can_have_a_websocket_and_a_page() {
    let server = start(Options::default());
    assert_eq!(answer(&server, &get("/chat")), ok("a page"));
    Raw::open(server.address).round_trip();
    // Neither replaces the other.
    let other = REQUEST.replacen("/chat", "/live", 1);
    assert!(answer(&server, &other).starts_with("HTTP/1.1 404 "));
    assert!(answer(&server, &get("/other")).starts_with("HTTP/1.1 404 "));
}

#[test]
fn what_two_parsers_could_read_differently_is_refused_and_never_a_second_request() {
    let server = start(Options::default());
    let with = |headers: &str, behind: &str| {
        let head = get("/live").replacen("\r\n\r\n", &format!("\r\n{headers}\r\n\r\n"), 1);
        head + behind
    };
    let smuggled = get("/chat");
    let chunks = format!("0\r\n\r\n{smuggled}");
    for (request, status) in [
        (with("Content-Length: 5", "Hello"), "413"),
        (
            with(&format!("Content-Length: {}", smuggled.len()), &smuggled),
            "413",
        ),
        (with("Transfer-Encoding: chunked", &chunks), "413"),
        (
            with("Content-Length: 0\r\nTransfer-Encoding: chunked", &chunks),
            "400",
        ),
        (
            with("Transfer-Encoding: chunked\r\nContent-Length: 0", &chunks),
            "400",
        ),
        (with("Transfer-Encoding: chunked, identity", &chunks), "400"),
        (with("Transfer-Encoding: \x0bchunked", &chunks), "400"),
        (with("Transfer-Encoding : chunked", &chunks), "400"),
        (
            with("Content-Length: 0\r\nContent-Length: 5", "Hello"),
            "400",
        ),
        (with("Content-Length: +0", ""), "400"),
        (with("Content-Length: 0, 0", ""), "400"),
        (get("/live").replacen("GET", "POST", 1), "405"),
        (get("/live").replacen("GET", "get", 1), "405"),
        // Requests in a pipeline: only the first is answered.
        (get("/live").repeat(3), "200"),
        (get("/live") + REQUEST, "200"),
        (get("/other") + &get("/live"), "404"),
    ] {
        let answer = answer(&server, &request);
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{request:?}: {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{request:?}");
        if status == "405" {
            assert!(answer.contains("\r\nAllow: GET, HEAD\r\n"), "{answer}");
        }
    }
    // A WebSocket request does not open the door for a page.
    let mut raw = Raw::connect(server.address);
    raw.send((REQUEST.to_owned() + &get("/live")).as_bytes());
    let answer = raw.rest();
    assert!(answer.starts_with(ACCEPTED.as_bytes()));
    assert!(!answer.windows(4).any(|bytes| bytes == b"200 "));
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn a_body_of_the_limit_passes_and_one_byte_more_is_an_error() {
    let mut options = Options::default();
    options.http_body_bytes_max = 1_000;
    let server = start(options);
    let whole = answer(&server, &get("/many?1000"));
    assert!(whole.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(whole.ends_with(&format!("\r\n\r\n{}", "x".repeat(1_000))));
    let longer = answer(&server, &get("/many?1001"));
    assert!(longer.starts_with("HTTP/1.1 500 "));
    assert!(longer.contains("response body of 1001 bytes exceeds the limit of 1000"));
    let broken = answer(&server, &get("/broken"));
    assert!(broken.starts_with("HTTP/1.1 500 "), "{broken}");
}

#[test]
fn a_request_that_takes_too_long_is_refused_with_408() {
    let mut options = Options::default();
    options.handshake.time_max = Duration::from_millis(100);
    let server = start(options);
    let mut raw = Raw::connect(server.address);
    raw.send(&get("/live").as_bytes()[..20]);
    assert!(raw.rest().starts_with(b"HTTP/1.1 408 "));
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn a_client_that_does_not_read_its_answer_is_dropped() {
    let mut options = Options::default();
    options.handshake.time_max = Duration::from_millis(1_500);
    options.http_body_bytes_max = 64 << 20;
    options.backlog_bytes_max = 1 << 20;
    let server = start(options);
    let mut slow = Raw::connect(server.address);
    slow.send(get("/many?50000000").as_bytes());
    // Others are answered meanwhile.
    assert_eq!(answer(&server, &get("/live")), ok("none"));
    let started = Instant::now();
    std::thread::sleep(Duration::from_millis(3_000));
    let mut received = Vec::new();
    let ended = std::io::Read::read_to_end(&mut slow.stream, &mut received);
    assert!(
        ended.is_err() || received.len() < 50_000_000,
        "all of it arrived after {:?}",
        started.elapsed()
    );
    assert!(received.starts_with(b"HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_large_answer_reaches_a_client_that_reads_slowly() {
    let mut options = Options::default();
    options.http_body_bytes_max = 16 << 20;
    let server = start(options);
    let mut raw = Raw::connect(server.address);
    raw.send(get("/many?16000000").as_bytes());
    // Longer than a refusal may take.
    std::thread::sleep(Duration::from_millis(1_600));
    let received = raw.rest();
    assert!(received.len() > 16_000_000, "{} bytes", received.len());
}
